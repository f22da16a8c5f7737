"""``nlsf compare``: several models on the same splits, ranked."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from nlsf.display.text_table import Head, TextTable

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.display.progress import Progress
    from nlsf.report.runs import Place
    from nlsf.train.run.folder import RunFolder


def compare(
    data: DataArgument,
    models: Annotated[
        str, typer.Option("--models", "-m", help="Names with commas between, or 'all'.")
    ],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", "-n", help="How many splits; 3 by default.", show_default=False),
    ] = None,
    protocol: Protocol = None,
    settings: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the comparison; what is finished there is kept."
        ),
    ] = None,
    data_root: DataRoot = None,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Train several models on the same splits; print them ranked, with paired differences.

    Writes comparison.csv and comparison.html. An interrupted comparison goes on with --output.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for
    from nlsf.errors import ConfigError

    console = Console()
    table = data_table(data, data_root, offline, settings)
    if "model" in table:
        raise ConfigError("A comparison keeps the models' own settings: set them in nlsf train.")
    table = {"seeds": 3, **table}
    table |= {} if seeds is None else {"seeds": seeds}
    table |= {} if protocol is None else {"protocol": protocol}
    progress = progress_for(console, quiet=quiet)
    with progress, progress.phase("Loading PyTorch and the data"):
        names = _names(models, table)
        folder = out_folder(output, f"compare-{Path(data).stem}".lower())
        _check_finished(folder, names, table)
    try:
        done, failed = _train_all(folder, names, table, progress)
    except KeyboardInterrupt as stopped:
        again = ["nlsf", *sys.argv[1:], *(() if output else ("--output", str(folder)))]
        say(console, "\nStopped; what is finished is kept. Go on with ", shlex.join(again))
        raise typer.Exit(1) from stopped
    _show(console, folder, done, failed)
    if failed:
        raise typer.Exit(1)


def _names(models: str, table: dict[str, Any]) -> list[str]:
    from nlsf.train.run.job import load_data
    from nlsf.train.settings.config import DataConfig
    from nlsf.train.settings.models import MODELS, find_model

    level = load_data(DataConfig.from_table(table["data"])).level
    if models == "all":
        return [name for name, kind in MODELS.items() if level in kind.levels]
    names = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    if len(names) < 2:
        raise typer.BadParameter("a comparison needs at least two models: --models gcn,mlp.")
    for name in names:
        find_model(name, level)
    return names


def _check_finished(folder: Path, names: Sequence[str], table: dict[str, Any]) -> None:
    """Refuses runs that lie in the folder already and are not those that are asked for."""
    from nlsf.train.run.folder import RunFolder
    from nlsf.train.run.job import Job
    from nlsf.train.run.run import Run

    for name in names:
        if (folder / name / "config.toml").exists():
            job = Job.of({**table, "model": {"name": name}})
            Run(RunFolder.open(folder / name)).check_asked(job)


def _train_all(
    folder: Path, names: Sequence[str], table: dict[str, Any], progress: Progress
) -> tuple[dict[str, RunFolder], dict[str, str]]:
    """The finished runs by model, and why the other models have none."""
    from nlsf.errors import NLSFError

    done: dict[str, RunFolder] = {}
    failed: dict[str, str] = {}
    with progress, progress.phase(total=len(names), unit="model") as models:
        for name in names:
            models.next(name)
            try:
                done[name] = _train(folder / name, name, table, progress)
            except NLSFError as error:
                failed[name] = " ".join(str(error).split())
                progress.say(f"{name}: {failed[name]}")
    return done, failed


def _train(path: Path, name: str, table: dict[str, Any], display: Progress) -> RunFolder:
    """The finished run of a model: kept, gone on with, or trained."""
    from nlsf import train as training

    if (path / "config.toml").exists():
        return training.resume(path, display=display).folder
    mine = {**table, "model": {"name": name}}
    return training.train(table["data"]["name"], mine, output=path, display=display).folder


def _show(
    console: Console, folder: Path, done: dict[str, RunFolder], failed: dict[str, str]
) -> None:
    """Prints the ranking, and writes it as CSV and as a page."""
    from nlsf.report.compare import comparison_page
    from nlsf.report.runs import ranking, write_ranking

    places = ranking(done)
    if places:
        _ranked(places, failed).print(console)
    for name, reason in failed.items():
        say(console, f"Failed: {name}: {reason}")
    write_ranking(folder / "comparison.csv", places, failed)
    say(console, "Table: ", folder / "comparison.csv")
    page = comparison_page([done[place.name] for place in places], failed)
    say(console, "Page: ", page.write(folder / "comparison.html"))


def _ranked(places: Sequence[Place], failed: Iterable[str]) -> TextTable:
    """The best model first, each with its paired differences to that one."""
    from nlsf.report.numbers import is_share, metric_name, seconds

    first, metric = places[0], places[0].metric
    percent, points = ("\n(%)", "\n(points)") if is_share(metric) else ("", "")
    heads = (
        Head("model"),
        Head(f"test {metric_name(metric)}{percent}"),
        Head(f"validation{percent}"),
        Head(f"minus {first.name}{points}"),
        Head("which is", least=12),
        Head("time"),
    )
    rows = []
    for place in places:
        behind = ("", "")
        if place is not first:
            behind = _spread(metric, place.difference, sign="+"), place.behind.words()[2]
        validation = _spread(metric, (place.validation[0], float("nan")))
        test, time = _spread(metric, place.test), seconds(place.seconds)
        rows.append([place.name, test, validation, *behind, time])
    rows += [[failure, "failed", "", "", "", ""] for failure in failed]
    return TextTable(heads, rows, notes=["+- is half the width of a 95 % interval."])


def _spread(metric: str, value: tuple[float, float], sign: str = "") -> str:
    """``81.25 +- 0.40``, or the mean alone where its interval is not known."""
    from nlsf.report.numbers import is_share

    scale, digits = (100, ".2f") if is_share(metric) else (1, ".4g")
    mean, half = (scale * part for part in value)
    if mean != mean:
        return "unknown"
    return f"{mean:{sign}{digits}}" + ("" if half != half else f" +- {half:{digits}}")
