"""``nlsf train``: from data to a trained and measured model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlsf.cli.options import (
    DATA_HELP,
    Cache,
    DataRoot,
    Offline,
    Protocol,
    Quiet,
    Settings,
    data_table,
    is_follower,
    parse_size,
    say,
)
from nlsf.cli.runs import report_after

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.train import RunResult


def train(
    data: Annotated[
        str | None,
        typer.Argument(
            help=DATA_HELP,
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="att-node, index, value; graph, pooling.", show_default=False
        ),
    ] = None,
    protocol: Protocol = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", "-n", help="How many splits, one model each.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="One seed, instead of many.")] = None,
    settings: Settings = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="A TOML with any of the settings.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the run; by default a new one in ./runs."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Go on with an interrupted run, as it was.")
    ] = None,
    data_root: DataRoot = None,
    offline: Offline = False,
    cache: Cache = True,
    checkpoint_seconds: Annotated[
        float, typer.Option("--checkpoint-seconds", help="Time between checkpoints.")
    ] = 10.0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", help="For preparing a large graph, beside the graph itself: 8GB, 500MB."
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard scalars into the run.")
    ] = False,
    report: Annotated[
        bool, typer.Option(help="Also write a page, report.html, that shows what was learned.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Train a model on every split of a data set and measure it on the test examples.

    All settings have defaults that suit the data; each is a key of the run's config.toml.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for

    console = Console(quiet=is_follower())
    table = _table(data, model, protocol, seeds, seed, settings, config, data_root, offline)
    options: dict[str, Any] = {
        "tensorboard": tensorboard,
        "cache": cache,
        "checkpoint_seconds": checkpoint_seconds,
        "memory": None if memory is None else parse_size(memory),
    }
    if resume is not None and (output is not None or table != {"data": {}}):
        raise typer.BadParameter("--resume goes on with a run as it was: leave the rest out.")
    if resume is None and "name" not in table["data"]:
        raise typer.BadParameter("which data? Name a data set, a path, --config or --resume.")
    progress = options["display"] = progress_for(console, quiet=quiet)
    with progress.phase("Loading PyTorch"):
        from nlsf import train as training
    try:
        with progress, training.Group.joined() as group:
            options["group"] = group
            if resume is not None:
                result = training.resume(resume, **options)
            else:
                result = training.train(table["data"]["name"], table, output=output, **options)
    except training.Interrupted as stopped:
        say(console, "\nStopped. Go on with ", f"nlsf train --resume {stopped.folder.path}")
        raise typer.Exit(1) from stopped
    _print_result(console, result)
    if report and group.first:
        report_after(console, result, cache=cache)


def _table(
    data: str | None,
    model: str | None,
    protocol: str | None,
    seeds: int | None,
    seed: int | None,
    settings: list[str] | None,
    config: Path | None,
    root: Path | None,
    offline: bool,
) -> dict[str, Any]:
    """All that was said: the file first, then options, then --set."""
    from nlsf.train.settings.config import apply_settings, check_keys
    from nlsf.train.settings.toml import merged, read_toml

    if seed is not None and seeds is not None:
        raise typer.BadParameter("--seed and --seeds exclude each other.")
    table = read_toml(config) if config is not None else {}
    check_keys(table)
    table = merged(table, data_table(data, root, offline, None))
    if model is not None:
        table = merged(table, {"model": {"name": model}})
    if protocol is not None:
        table["protocol"] = protocol
    if seeds is not None:
        table["seeds"] = seeds
    if seed is not None:
        table["seeds"] = [seed]
    return apply_settings(table, settings or [])


def _print_result(console: Console, result: RunResult) -> None:
    from nlsf.display.text_table import TextTable
    from nlsf.report.numbers import metric_value

    if len(result.rows) > 1:
        rows = [
            [
                str(row["seed"]),
                metric_value(result.metric, row[f"val_{result.metric}"]),
                metric_value(result.metric, row[f"test_{result.metric}"]),
                str(row["best_epoch"]),
            ]
            for row in result.rows
        ]
        heads = ("seed>", f"validation {result.metric}>", f"test {result.metric}>", "best epoch>")
        TextTable.of(*heads, rows=rows).print(console)
    mean, half = result.summary()
    spread = "" if half != half else f" +- {metric_value(result.metric, half)} (95 % of the mean)"
    sizes = result.rows[0]["sizes"]
    console.print(
        f"Test {result.metric} [bold]{metric_value(result.metric, mean)}[/]{spread}, "
        f"{len(result.rows)} split(s) of {sizes[0]:,} / {sizes[1]:,} / {sizes[2]:,} examples",
        soft_wrap=True,
    )
    say(console, "Run: ", result.folder.path)
