"""``nlsf table``: a table of the paper with our numbers in it, and the missing ones run."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nlsf.cli.options import DataRoot, Offline

if TYPE_CHECKING:
    from types import ModuleType

    from rich.console import Console

    from nlsf.tables.fill.fill import Filled
    from nlsf.tables.fill.results import Published, Store
    from nlsf.tables.spec.experiment import Experiment

_BUDGET = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Format(StrEnum):
    """How a table is printed."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    latex = "latex"


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
    form: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.terminal,
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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the table only.")] = False,
) -> None:
    """Print a table of the paper: our numbers, the paper's beside them, paired differences.

    With --run, missing cells are tuned and trained first, the most informative before the others.
    It can be stopped at any time and goes on where it was; several may run at once.
    """
    from rich.console import Console

    seconds = None if budget is None else _seconds(budget)
    if budget is not None and not run:
        raise typer.BadParameter("--budget is for --run.")
    console = Console()
    with console.status("Loading PyTorch and the experiment ..."):
        from nlsf.tables.fill.results import Published, Store
        from nlsf.tables.spec.spec_file import experiment_names, find_experiment

        store = Store(results)
        if document is not None:
            if name or run or methods or data or against or output or form is not Format.terminal:
                raise typer.BadParameter("--document writes whole tables: name the file only.")
            _document(console, document, experiments, store)
            return
        if name is None:
            if run or methods or data or against or output or form is not Format.terminal:
                raise typer.BadParameter("which experiment? Without a name, all are listed.")
            found = [find_experiment(one, experiments) for one in experiment_names(experiments)]
        else:
            whole = find_experiment(name, experiments).at(data_root, offline)
            experiment = whole.select(_names(methods), _names(data))
            if against:  # an unknown name is better known before hours of work
                experiment.select([against])
            published = Published.beside(experiments, experiment)
    if name is None:
        _list(console, found, store)
        return
    # The table itself may be piped: what is said beside it goes elsewhere.
    said = Console(stderr=True) if form is not Format.terminal and output is None else console
    if experiment.measure == "time":
        from nlsf.cli.table_times import run_times
        from nlsf.tables.fill.timing import Timings
        from nlsf.tables.render import time_table

        if run and methods:
            raise typer.BadParameter("--methods: times are measured of all methods together.")
        if against:
            raise typer.BadParameter("--against: times are ratios to those of GCN.")
        timings = Timings(results)
        measured = whole.select(None, _names(data))
        failed = run and not run_times(said, measured, timings, work, seconds, quiet)
        times = time_table.TimeTable.of(measured, timings, published, experiment)
        _print(console, time_table, times, form, output)
        if failed:
            raise typer.Exit(1)
        return
    filled = _fill(said, experiment, store, work, seconds, quiet) if run else None
    _show(console, experiment, store, published, against, form, output)
    if filled is not None:
        _tell(said, filled, name)
        if filled.failed:
            raise typer.Exit(1)


def _fill(
    console: Console,
    experiment: Experiment,
    store: Store,
    work: Path,
    budget: float | None,
    quiet: bool,
) -> Filled:
    from nlsf.display.sinks import progress_for
    from nlsf.tables.fill.fill import fill

    try:
        with progress_for(console, quiet=quiet) as display:
            return fill(experiment, store, work, budget=budget, display=display)
    except KeyboardInterrupt as stopped:
        console.print(
            f"\nStopped: {_filled(experiment, store)} cells are filled and kept in "
            f"{escape(str(store.path))}; what was begun is kept in {escape(str(work))}. Go on with "
            "the same command.",
            soft_wrap=True,
            highlight=False,
        )
        raise typer.Exit(1) from stopped


def _show(
    console: Console,
    experiment: Experiment,
    store: Store,
    published: Published,
    against: str | None,
    form: Format,
    output: Path | None,
) -> None:
    from nlsf.tables.render import result_text
    from nlsf.tables.render.result_table import ResultTable

    results = ResultTable.of(experiment, store, published, against)
    _print(console, result_text, results, form, output)


def _print(
    console: Console, forms: ModuleType, results: Any, form: Format, output: Path | None
) -> None:
    """Prints a table or writes it into a file.

    Args:
        console: where to.
        forms: has ``terminal``, ``to_markdown``, ``to_csv`` and ``to_latex``.
        results: what they take.
        form: which of them.
        output: the file.
    """
    from nlsf.store.files import write_text

    if form is Format.terminal:
        if output is None:
            console.print(forms.terminal(results))
            return
        with console.capture() as capture:
            console.print(forms.terminal(results))
        text = capture.get()
    else:
        text = getattr(forms, f"to_{form.value}")(results)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        console.print(f"Table: [bold]{escape(str(output))}[/]", soft_wrap=True)


def _document(console: Console, path: Path, experiments: Path, store: Store) -> None:
    from nlsf.errors import FormatError
    from nlsf.store.files import write_text
    from nlsf.tables.render.document import update

    old = path.read_text(encoding="utf-8")
    try:
        new = update(old, experiments, store)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    if new != old:
        write_text(path, new)
    same = "" if new != old else " was up to date"
    console.print(f"Tables: [bold]{escape(str(path))}[/]{same}", soft_wrap=True)


def _tell(console: Console, filled: Filled, name: str) -> None:
    """What was not filled, and why."""
    for place, reason in filled.failed:
        console.print(f"Failed: {place.name}: {reason}", markup=False, soft_wrap=True)
    for places, why in (
        (filled.held, "Another process is at"),
        (filled.left, "No time was left for"),
    ):
        if places:
            names = ", ".join(place.name for place in places)
            text = f"{why} {_cells(len(places))}: {names}."
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    if filled.left:
        again = f"nlsf table {name} --run"
        console.print(f"Go on with [bold]{escape(again)}[/]", soft_wrap=True)


def _list(console: Console, experiments: list[Experiment], store: Store) -> None:
    from rich.table import Table

    table = Table("experiment", "cells filled", "title")
    table.columns[1].justify = "right"
    for one in experiments:
        table.add_row(escape(one.name), _filled(one, store), escape(one.title))
    console.print(table)


def _filled(experiment: Experiment, store: Store) -> str:
    """How many cells have all of their rows: ``3 of 12``; data sets, in a table of times."""
    if experiment.measure == "time":
        from nlsf.tables.fill.timing import Timings

        timings = Timings(store.path)
        whole = sum(timings.is_whole(experiment, column) for column in experiment.columns)
        return f"{whole} of {len(experiment.columns)}"
    missing = [
        store.missing(cell, experiment.seeds_of(column)) for _, column, cell in experiment.cells()
    ]
    return f"{sum(not seeds for seeds in missing)} of {len(missing)}"


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


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
