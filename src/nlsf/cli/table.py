"""``nlsf table``: a table of the paper with our numbers in it, and the missing ones run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlsf.cli.options import DataRoot, Offline, Quiet, say
from nlsf.display.text_table import Form, Head, TextTable

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.display.progress import Progress
    from nlsf.tables.fill.fill import Outcome
    from nlsf.tables.fill.results import Store
    from nlsf.tables.render.document import Written
    from nlsf.tables.spec.experiment import Experiment

_BUDGET = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def table(
    name: Annotated[
        str | None,
        typer.Argument(help="An experiment; without, all are listed.", show_default=False),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Tune and train what is missing.")] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            help="Time after which no trial and no run begins: 2h, 30m, 90s.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", "-m", help="Some rows: labels or models, with commas between."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="Some columns, with commas between.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="The row that all others are compared with: a label or model. Ours by default.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[Form, typer.Option("--format", "-f", help="How to print.")] = Form.terminal,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write instead of printing.")
    ] = None,
    document: Annotated[
        Path | None,
        typer.Option(
            "--document",
            help="A Markdown file: write its tables, marked by <!-- table NAME -->, anew.",
            show_default=False,
        ),
    ] = None,
    experiments: Annotated[
        Path, typer.Option("--experiments", help="Folder of the experiments (NAME.toml).")
    ] = Path("experiments"),
    results: Annotated[Path, typer.Option("--results", help="Folder of the rows.")] = Path(
        "results/tables"
    ),
    work: Annotated[Path, typer.Option("--work", help="Folder of studies and runs.")] = Path(
        "runs/tables"
    ),
    data_root: DataRoot = None,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Print a table of the paper: our numbers, the paper's beside them, paired differences.

    With --run, missing cells are tuned and trained first, the most informative before the others.
    It can be stopped at any time and goes on where it was; several may run at once.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for

    seconds = None if budget is None else _seconds(budget)
    if budget is not None and not run:
        raise typer.BadParameter("--budget is for --run.")
    narrowed = run or methods or data or against or output or form is not Form.terminal
    if document is not None and (name or narrowed):
        raise typer.BadParameter("--document writes whole tables: name the file only.")
    if document is None and name is None and narrowed:
        raise typer.BadParameter("which experiment? Without a name, all are listed.")
    console = Console()
    progress = progress_for(console, quiet=quiet)
    with progress.phase("Loading PyTorch and the experiment"):
        from nlsf.tables.fill.fill import fill
        from nlsf.tables.fill.results import Published, Store
        from nlsf.tables.fill.timing import Timings, time_all
        from nlsf.tables.render.document import written
        from nlsf.tables.spec.spec_file import find_experiment

        store = Store(results)
        if name is not None:
            whole = find_experiment(name, experiments).at(data_root, offline)
            shown = whole.select(_names(methods), _names(data))
            if against:  # an unknown name is better known before hours of work
                shown.select([against])
            published = Published.beside(experiments, shown)
    if document is not None:
        _document(console, progress, document, experiments, store)
        return
    if name is None:
        _list(console, progress, experiments, store)
        return
    is_time, outcome = shown.measure == "time", None
    if is_time and run and methods:
        raise typer.BadParameter("--methods: times are measured of all methods together.")
    if is_time and against:
        raise typer.BadParameter("--against: times are ratios to those of GCN.")
    measured = whole.select(None, _names(data)) if is_time else shown
    if run:
        # The table itself may be piped: what is said beside it goes elsewhere.
        said = Console(stderr=True) if form is not Form.terminal and output is None else console
        runner: Callable[..., Outcome] = time_all if is_time else fill
        options = {"budget": seconds, "display": progress_for(said, quiet=quiet)}
        rows = Timings(results) if is_time else store
        try:
            outcome = runner(measured, rows, work, **options)
        except KeyboardInterrupt as stopped:
            kept = f"{_filled(measured, store)} are filled and kept in {results}"
            begun = f"what was begun is kept in {work}"
            say(said, f"\nStopped: {kept}; {begun}. Go on with the same command.")
            raise typer.Exit(1) from stopped
    _print(console, written(measured, results, published, shown, against), form, output)
    if outcome is not None:
        _tell(said, outcome, name)
        if outcome.failed:
            raise typer.Exit(1)


def _print(console: Console, found: Written, form: Form, output: Path | None) -> None:
    """Prints a table in a form, or writes it into a file."""
    from rich.console import Console

    from nlsf.store.files import write_text

    if form is Form.terminal and output is None:
        found.sheet(form).print(console)
        return
    if form is Form.csv:
        text = found.to_csv()
    elif form is Form.terminal:
        plain = Console(force_terminal=False)
        with plain.capture() as capture:
            found.sheet(form).print(plain)
        text = capture.get()
    else:
        text = getattr(found.sheet(form), form.value)()
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        say(console, "Table: ", output)


def _document(
    console: Console, progress: Progress, path: Path, experiments: Path, store: Store
) -> None:
    from nlsf.errors import FormatError
    from nlsf.store.files import write_text
    from nlsf.tables.render.document import update

    old = path.read_text(encoding="utf-8")
    try:
        with progress.phase("Reading the rows of all tables"):
            new = update(old, experiments, store)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    if new != old:
        write_text(path, new)
    say(console, "Tables: " if new != old else "Tables, which were up to date: ", path)


def _tell(console: Console, outcome: Outcome, name: str) -> None:
    """What was not filled, and why."""
    if outcome.unit == "cell":  # below a table of times it is said anyway
        for failed, reason in outcome.failed:
            say(console, f"Failed: {failed}: {reason}")
    for names, why in (
        (outcome.held, "Another process is at"),
        (outcome.left, "No time was left for"),
    ):
        if names:
            count = f"{len(names)} {outcome.unit}{'' if len(names) == 1 else 's'}"
            say(console, f"{why} {count}: {', '.join(names)}.")
    if outcome.left:
        say(console, "Go on with ", f"nlsf table {name} --run")


def _list(console: Console, progress: Progress, experiments: Path, store: Store) -> None:
    from nlsf.tables.spec.spec_file import experiment_names, find_experiment

    with progress.phase("Reading the rows of all tables"):
        found = [find_experiment(name, experiments) for name in experiment_names(experiments)]
        rows = [[one.name, _filled(one, store), one.title] for one in found]
    heads = Head("experiment"), Head("filled", number=True), Head("title", least=20)
    TextTable(heads, rows).print(console)


def _filled(experiment: Experiment, store: Store) -> str:
    """How many cells have all of their rows: ``3 of 12 cells``; of times, how many data sets."""
    if experiment.measure == "time":
        from nlsf.tables.fill.timing import Timings

        timings = Timings(store.path)
        whole = sum(timings.is_whole(experiment, column) for column in experiment.columns)
        return f"{whole} of {len(experiment.columns)} data sets"
    missing = [
        store.missing(cell, experiment.seeds_of(column)) for _, column, cell in experiment.cells()
    ]
    return f"{sum(not seeds for seeds in missing)} of {len(missing)} cells"


def _names(text: str | None) -> list[str] | None:
    """The names between commas; a comma in parentheses or brackets is part of a name."""
    if text is None:
        return None
    names, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            names.append("")
        else:
            names[-1] += character
    return [name.strip() for name in names if name.strip()]


def _seconds(text: str) -> float:
    """The seconds of ``2h``, ``30m``, ``90s`` or ``1h30m``."""
    found = _BUDGET.fullmatch(text.strip())
    if not text.strip() or found is None:
        raise typer.BadParameter(f"--budget expects a time, as in 2h, 30m or 90s, not {text!r}.")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds
