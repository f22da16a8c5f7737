"""``nlsf tune``: settings that are good on validation data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from nlsf.cli.options import (
    DataArgument,
    DataRoot,
    Offline,
    Protocol,
    Quiet,
    Settings,
    data_table,
    out_folder,
    say,
)

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.tables.tune.space import Space
    from nlsf.tables.tune.trials import Tuned

_PATIENCE = 30.0
"""Seconds that a process has to put its trial back."""


def tune(
    data: DataArgument,
    model: Annotated[str, typer.Option("--model", "-m", help="As in nlsf train.")],
    trials: Annotated[
        int, typer.Option("--trials", "-t", help="Points to try, the defaults included.")
    ] = 20,
    splits: Annotated[
        int, typer.Option("--splits", help="Splits that every point is trained on.")
    ] = 3,
    protocol: Protocol = None,
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
    quiet: Quiet = False,
    helper: Annotated[bool, typer.Option("--helper", hidden=True)] = False,
) -> None:
    """Find settings of a model on validation data; test parts of the splits are out of reach.

    Writes best.toml, for nlsf train --config best.toml, and a page, tuning.html. The same command
    with --output goes on with what is there; on many machines, give all the same --storage.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for
    from nlsf.errors import ConfigError

    console = Console()
    table = data_table(data, data_root, offline, settings)
    if "seeds" in table or "name" in table.get("model", {}):
        raise ConfigError("A tuning has --splits for its splits and --model for its model.")
    table = {**table, "model": {**table.get("model", {}), "name": model}}
    table |= {} if protocol is None else {"protocol": protocol}
    progress = progress_for(console, quiet=quiet or helper)
    with progress, progress.phase("Loading PyTorch and the data"):
        from nlsf.tables.tune.search import tune as search
        from nlsf.tables.tune.trials import Tuning

        tuning = Tuning(trials, splits)
        choices = _space(table, space)
        name = study or f"{Path(data).stem}-{model}".lower()
        folder = out_folder(output, f"tune-{name}")
    place = storage or str(folder / "study.journal")
    if helper:
        search(table, choices, tuning, storage=place, study=name)
        return
    same = [
        *(data, "--model", model, "--trials", str(trials), "--splits", str(splits)),
        *(() if protocol is None else ("--protocol", protocol)),
        *(word for setting in settings or [] for word in ("--set", setting)),
        *(() if space is None else ("--space", str(space))),
        *("--study", name, "--output", str(folder)),
        *(() if data_root is None else ("--data-root", str(data_root))),
        *(("--offline",) if offline else ()),
    ]
    try:
        with _helpers(workers - 1, place, same):
            search(table, choices, tuning, storage=place, study=name, display=progress)
    except KeyboardInterrupt as stopped:
        # The storage is not repeated, because a password may stand in it.
        again = f"--output {folder}{'' if storage is None else ' and the same --storage'}"
        over = "\nStopped; all trials that were over are kept."
        say(console, f"{over} Go on with the same command, {again}.")
        raise typer.Exit(1) from stopped
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
    say(console, "Train with ", f"nlsf train --config {folder / 'best.toml'} --seeds 10")
    page = tuning_page(study, tuned.metric, tuned.trials, importances(storage, study))
    say(console, "Page: ", page.write(folder / "tuning.html"))


def _print(console: Console, tuned: Tuned) -> None:
    """The best point beside the defaults."""
    from nlsf.display.text_table import Cell, Head, TextTable
    from nlsf.report.numbers import metric_value
    from nlsf.tables.tune.space import encode

    first = next((one for one in tuned.trials if one.point == tuned.default), None)
    rows: list[list[Cell] | None] = []
    for key, value in tuned.point.items():
        before, after = encode(tuned.default[key]), encode(value)
        style = "bold" if before != after else "dim"
        rows.append([[[(text, style)]] for text in (key, before, after)])
    known = metric_value(tuned.metric, None if first is None else first.value)
    best = metric_value(tuned.metric, tuned.value)
    rows += [None, [f"validation {tuned.metric}", known, best]]
    heads = Head("setting"), Head("default", least=20), Head("best", least=20)
    TextTable(heads, rows).print(console)
    states = [trial.state for trial in tuned.trials]
    counts = [f"{states.count(s)} {s}" for s in ("complete", "pruned", "failed") if s in states]
    console.print(
        f"Validation {tuned.metric} [bold]{best}[/], defaults {known}; trials: {', '.join(counts)}",
        soft_wrap=True,
    )


@contextmanager
def _helpers(count: int, storage: str, arguments: Sequence[str]) -> Iterator[None]:
    """Runs further processes on the same storage, waits for them, and stops them after an error.

    Args:
        count: how many; the cores are divided among them and this process.
        storage: of the trials; it is handed over in the environment, where no other user sees it.
        arguments: of ``nlsf tune``.

    Raises:
        ConfigError: one failed, with what it said.
    """
    from nlsf.errors import ConfigError

    running: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    if count:
        import torch

        threads = max(1, torch.get_num_threads() // (count + 1))
        torch.set_num_threads(threads)
        changed = {"OMP_NUM_THREADS": str(threads), "NLSF_STORAGE": storage}
    try:
        for _ in range(count):
            said = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe, which blocks when it is full
            process = subprocess.Popen(
                [sys.executable, "-m", "nlsf", "tune", *arguments, "--helper"],
                env={**os.environ, **changed},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            running.append((process, said))
        yield
        for process, errors in running:
            if process.wait():
                errors.seek(0)
                lines = errors.read().decode(errors="replace").strip().splitlines()
                reason = lines[-1] if lines else f"it ended with {process.returncode}."
                raise ConfigError(f"A worker failed: {reason.removeprefix('nlsf: ')}")
    except BaseException:
        for process, _ in running:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)  # as Ctrl-C does
        for process, _ in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        raise
