"""``nlsf compare``: several models on the same splits, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nlsf.cli.options import DataArgument, DataRoot, Offline, Settings, data_table

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.report.ranking import Place
    from nlsf.train.run_folder import RunFolder


def compare(
    data: DataArgument,
    models: Annotated[
        str, typer.Option("--models", "-m", help="Names with commas between, or 'all'.")
    ],
    seeds: Annotated[int, typer.Option("--seeds", "-n", help="How many splits.")] = 3,
    protocol: Annotated[
        str | None, typer.Option("--protocol", "-p", help="How examples are split.")
    ] = None,
    settings: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the comparison; what is finished there is kept."
        ),
    ] = None,
    data_root: DataRoot = None,
    offline: Offline = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
) -> None:
    """Train several models on the same splits; print them ranked, with paired differences.

    Writes comparison.csv and comparison.html. An interrupted comparison goes on with --output.
    """
    from rich.console import Console

    from nlsf.errors import ConfigError, NLSFError

    console = Console()
    table = data_table(data, data_root, offline, settings)
    if "model" in table:
        raise ConfigError("A comparison keeps the models' own settings: set them in nlsf train.")
    table |= {"seeds": seeds} | ({} if protocol is None else {"protocol": protocol})
    with console.status("Loading PyTorch and the data ..."):
        names = _names(models, table)
        folder = _folder(output, data)
    done: dict[str, RunFolder] = {}
    failed: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        if not quiet:
            console.rule(f"{escape(name)}, {number} of {len(names)}")
        try:
            done[name] = _train(folder / name, name, table, console, quiet)
        except NLSFError as error:
            failed[name] = str(error)
            console.print(escape(f"{name}: {error}"), soft_wrap=True)
    _show(console, folder, done)
    if failed:
        console.print(f"Failed: {escape(', '.join(failed))}.", soft_wrap=True)
        raise typer.Exit(1)


def _names(models: str, table: dict[str, Any]) -> list[str]:
    from nlsf.train.config import DataConfig
    from nlsf.train.job import load_data
    from nlsf.train.models import MODELS, find_model

    level = load_data(DataConfig.from_table(table["data"])).level
    if models == "all":
        return [name for name, kind in MODELS.items() if level in kind.levels]
    names = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    if len(names) < 2:
        raise typer.BadParameter("a comparison needs at least two models: --models gcn,mlp.")
    for name in names:
        find_model(name, level)
    return names


def _folder(output: Path | None, data: str) -> Path:
    from nlsf.train.run_folder import RunFolder

    if output is None:
        return RunFolder.create(Path("runs"), f"compare-{Path(data).stem}".lower()).path
    output.mkdir(parents=True, exist_ok=True)
    return output


def _train(
    path: Path, name: str, table: dict[str, Any], console: Console, quiet: bool
) -> RunFolder:
    """The finished run of a model: kept, gone on with, or trained."""
    from nlsf import train as training
    from nlsf.train.display import display_for

    display = display_for(console, quiet=quiet)
    if (path / "config.toml").exists():
        return training.resume(path, display=display).folder
    mine = {**table, "model": {"name": name}}
    return training.train(table["data"]["name"], mine, output=path, display=display).folder


def _show(console: Console, folder: Path, done: dict[str, RunFolder]) -> None:
    from rich.table import Table

    from nlsf.report.compare import comparison_page
    from nlsf.report.ranking import ranking, write_ranking

    places = ranking(done)
    if not places:
        return
    table = Table("model", f"test {places[0].metric}", "validation", "behind the first", "seconds")
    for place in places:
        table.add_row(
            escape(place.name),
            _number(place, place.test),
            _number(place, place.validation),
            _behind(place) if place is not places[0] else "",
            f"{place.seconds:.1f}",
        )
    console.print(table)
    write_ranking(folder / "comparison.csv", places)
    console.print(f"Table: [bold]{escape(str(folder / 'comparison.csv'))}[/]", soft_wrap=True)
    if len(done) > 1:
        best_first = [done[place.name] for place in places]
        page = comparison_page(best_first).write(folder / "comparison.html")
        console.print(f"Page: [bold]{escape(str(page))}[/]", soft_wrap=True)


def _number(place: Place, value: tuple[float, float]) -> str:
    scale, unit = (1.0, "") if place.metric in ("rmse", "mae") else (100.0, " %")
    mean, half = (scale * part for part in value)
    spread = "" if half != half else f" +- {half:.4g}"
    return f"{mean:.4g}{spread}{unit}"


def _behind(place: Place) -> str:
    mean, ends, meaning = place.behind.words()
    return f"{mean} ({ends}), {meaning}" if ends != "-" else f"{mean}, {meaning}"
