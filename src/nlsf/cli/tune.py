"""``nlsf tune``: settings that are good on validation data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nlsf.cli.options import DataArgument, DataRoot, Offline, Settings, data_table
from nlsf.cli.report import say_where

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.tables.tune.space import Space
    from nlsf.tables.tune.trials import Tuned, Tuning


def tune(
    data: DataArgument,
    model: Annotated[str, typer.Option("--model", "-m", help="As in nlsf train.")],
    trials: Annotated[
        int, typer.Option("--trials", "-t", help="Points to try, the defaults included.")
    ] = 20,
    splits: Annotated[
        int, typer.Option("--splits", help="Splits that every point is trained on.")
    ] = 3,
    protocol: Annotated[
        str | None, typer.Option("--protocol", "-p", help="How examples are split.")
    ] = None,
    settings: Settings = None,
    space: Annotated[
        Path | None,
        typer.Option(
            "--space", help="A TOML with other choices, in \\[space]: 'training.lr' = [0.1]."
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            envvar="NLSF_STORAGE",
            help="A journal file, or postgresql://USER:PASSWORD@HOST/DATABASE for many machines; "
            "by default study.journal in the folder.",
        ),
    ] = None,
    study: Annotated[
        str | None, typer.Option("--study", help="Name of the trials; by default DATA-MODEL.")
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, max=256, help="Processes on this machine.")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder; by default a new one in ./runs. Trials there are kept."
        ),
    ] = None,
    data_root: DataRoot = None,
    offline: Offline = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    helper: Annotated[bool, typer.Option("--helper", hidden=True)] = False,
) -> None:
    """Find settings of a model on validation data; test parts of the splits are out of reach.

    Writes best.toml, for nlsf train --config best.toml, and a page, tuning.html. The same command
    with --output goes on with what is there; on many machines, give all the same --storage.
    """
    from rich.console import Console

    from nlsf.errors import ConfigError

    console = Console()
    table = data_table(data, data_root, offline, settings)
    if "seeds" in table or "name" in table.get("model", {}):
        raise ConfigError("A tuning has --splits for its splits and --model for its model.")
    table = {**table, "model": {**table.get("model", {}), "name": model}}
    table |= {} if protocol is None else {"protocol": protocol}
    with console.status("Loading PyTorch and the data ..."):
        from nlsf.tables.tune.trials import Tuning

        tuning = Tuning(trials, splits)
        choices = _space(table, space)
        name = study or f"{Path(data).stem}-{model}".lower()
        folder = _folder(output, f"tune-{name}")
    place = storage or str(folder / "study.journal")
    if helper:
        _tune(console, table, choices, tuning, place, name, quiet=True)
        return
    from nlsf.cli.tune_workers import Workers

    helpers = Workers(workers, place)
    try:
        helpers.start(
            [
                *(data, "--model", model, "--trials", str(trials), "--splits", str(splits)),
                *(() if protocol is None else ("--protocol", protocol)),
                *(word for setting in settings or [] for word in ("--set", setting)),
                *(() if space is None else ("--space", str(space))),
                *("--study", name, "--output", str(folder)),
                *(() if data_root is None else ("--data-root", str(data_root))),
                *(("--offline",) if offline else ()),
            ]
        )
        _tune(console, table, choices, tuning, place, name, quiet=quiet)
        helpers.wait()
    except KeyboardInterrupt as stopped:
        helpers.stop()
        _say_stopped(console, folder, storage)
        raise typer.Exit(1) from stopped
    except BaseException:
        helpers.stop()
        raise
    _finish(console, folder, table, choices, place, name, trials)


def _space(table: dict[str, Any], path: Path | None) -> Space:
    """The choices of the model, those of the file on top, without what --set decides."""
    from nlsf.errors import ConfigError
    from nlsf.tables.tune.space import Space, space_of
    from nlsf.train.run.job import Job
    from nlsf.train.settings.toml import read_toml

    job = Job.of({**table, "seeds": 1})
    name = job.config.model["name"]
    # Where defaults are polynomials, the graph has too many nodes for all of its eigenvectors.
    large = job.config.model.get("value_bands", {}).get("kind") == "polynomial"
    space = space_of(name, job.dataset.level, large=large).without(table)
    if path is None:
        return space
    given = read_toml(path)
    if list(given) != ["space"] or not isinstance(given["space"], dict):
        raise ConfigError(f"{path} must have one table, [space], and nothing else.")
    removed: dict[str, tuple[()]] = {k: () for k, v in given["space"].items() if v == []}
    new = Space.from_table({k: v for k, v in given["space"].items() if v != []})
    new.check(name)
    return space.merged({**new.choices, **removed})


def _folder(output: Path | None, stem: str) -> Path:
    from nlsf.errors import ConfigError
    from nlsf.train.run.folder import RunFolder

    if output is None:
        return RunFolder.create(Path("runs"), stem).path
    try:
        output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError(
            f"{output} cannot be a folder, because a file is in its place: choose another --output."
        ) from error
    return output


def _tune(
    console: Console,
    table: dict[str, Any],
    space: Space,
    tuning: Tuning,
    storage: str,
    study: str,
    *,
    quiet: bool,
) -> None:
    from nlsf.display.sinks import progress_for
    from nlsf.tables.tune.search import tune as search

    display = progress_for(console, quiet=quiet)
    search(table, space, tuning, storage=storage, study=study, display=display)


def _say_stopped(console: Console, folder: Path, storage: str | None) -> None:
    """How to go on; the storage is not repeated, because a password may stand in it."""
    same = "" if storage is None else " and the same --storage"
    again = f"Go on with the same command, --output {folder}{same}."
    console.print(f"\nStopped; all trials that were over are kept. {escape(again)}", soft_wrap=True)


def _finish(
    console: Console,
    folder: Path,
    table: dict[str, Any],
    space: Space,
    storage: str,
    study: str,
    trials: int,
) -> None:
    """Prints the best point, and writes best.toml and the page."""
    from nlsf.report.tuning_page import tuning_page
    from nlsf.store.files import write_text
    from nlsf.tables.tune.trials import importances, read_tuned
    from nlsf.train.run.job import Job
    from nlsf.train.settings.toml import merged, write_toml

    tuned = read_tuned(storage, study, trials)
    _print(console, tuned)
    best = Job.of({**merged(table, space.table(tuned.point)), "seeds": 1}).config.to_table()
    del best["seeds"]
    write_text(folder / "best.toml", write_toml(best))
    again = f"nlsf train --config {folder / 'best.toml'} --seeds 10"
    console.print(f"Train with [bold]{escape(again)}[/]", soft_wrap=True)
    page = tuning_page(study, tuned.metric, tuned.trials, importances(storage, study))
    say_where(console, page.write(folder / "tuning.html"))


def _print(console: Console, tuned: Tuned) -> None:
    """The best point beside the defaults."""
    from rich.table import Table

    from nlsf.report.numbers import metric_value
    from nlsf.tables.tune.space import encode

    first = next((one for one in tuned.trials if one.point == tuned.default), None)
    shown = Table("setting", "default", "best")
    for key, value in tuned.point.items():
        before, after = encode(tuned.default[key]), encode(value)
        style = "bold" if before != after else "dim"
        shown.add_row(escape(key), escape(before), escape(after), style=style)
    known = metric_value(tuned.metric, None if first is None else first.value)
    best = metric_value(tuned.metric, tuned.value)
    shown.add_section()
    shown.add_row(f"validation {tuned.metric}", known, best)
    console.print(shown)
    states = [trial.state for trial in tuned.trials]
    counts = [f"{states.count(s)} {s}" for s in ("complete", "pruned", "failed") if s in states]
    console.print(
        f"Validation {tuned.metric} [bold]{best}[/], defaults {known}; trials: {', '.join(counts)}",
        soft_wrap=True,
    )
