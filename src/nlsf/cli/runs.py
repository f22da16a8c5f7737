"""``nlsf report`` and ``nlsf predict``: what a finished run says, on a page and of other data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlsf.cli.options import (
    Cache,
    DataArgument,
    DataRoot,
    Offline,
    Settings,
    data_table,
    load_named,
    say,
)

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.data.dataset import Dataset
    from nlsf.train import RunResult


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="The folder of a run, or of several to compare them.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Page to write (.html); by default report.html in the run's folder, or "
            "comparison.html where all runs lie.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="Which of the run's models to show; by default the best on validation."
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Show the page in the browser.")
    ] = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    cache: Cache = True,
) -> None:
    """Write a page that shows what a model learned: one HTML file that needs nothing else.

    With several runs, the page compares them with the first. A run may be unfinished.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for

    if len(runs) > 1 and (seed is not None or data_root is not None or offline or not cache):
        raise typer.BadParameter(
            "a comparison reads no data: leave --seed, --data-root, --offline and --no-cache out."
        )
    console = Console()
    progress = progress_for(console)
    with progress, progress.phase("Loading PyTorch and the data"):
        from nlsf.report.run_page import report as write

        dataset = _dataset(runs[0], data_root, offline)
    with progress.phase("Writing the page"):
        path = write(list(runs), output, seed=seed, dataset=dataset, cache=cache, open=open_page)
    say(console, "Page: ", path)


def report_after(console: Console, result: RunResult, *, cache: bool) -> None:
    """The page of a run that has just been trained; what goes wrong here costs a sentence only."""
    from nlsf.display.sinks import progress_for

    try:
        with progress_for(console).phase("Writing the page"):
            from nlsf.report.run_page import report as write

            path = write(result, cache=cache)
    except (KeyboardInterrupt, Exception) as error:  # the models are trained and measured already
        reason = "stopped" if isinstance(error, KeyboardInterrupt) else " ".join(str(error).split())
        said = f"No page ({reason.rstrip('.') or type(error).__name__}). Try again with: "
        say(console, said, f"nlsf report {result.folder.path}")
    else:
        say(console, "Page: ", path)


def _dataset(run: Path, root: Path | None, offline: bool) -> Dataset | None:
    """The run's data from another place; ``None`` where the run knows best."""
    from nlsf.train.run.folder import RunFolder
    from nlsf.train.run.job import load_data
    from nlsf.train.settings.config import DataConfig
    from nlsf.train.settings.toml import merged, parse_toml

    if root is None and not offline:
        return None
    folder = RunFolder.open(run)
    table = parse_toml(folder.read_config(), folder.path / "config.toml")
    changed = merged({"data": table.get("data", {})}, data_table(None, root, offline, None))
    return load_data(DataConfig.from_table(changed["data"]))


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV to write; by default in the run's folder."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="Which of the run's models; by default the best on validation."
        ),
    ] = None,
    data_root: DataRoot = None,
    offline: Offline = False,
    settings: Settings = None,
    cache: Cache = True,
) -> None:
    """Write labels and probabilities of every node, graph or signal to a CSV file.

    On the data of the training, accuracy is that of the test examples; on other data, of all
    examples whose label is known.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for

    console = Console()
    progress = progress_for(console)
    with progress, progress.phase("Loading PyTorch and the data"):
        from nlsf.train.run.predict import predict as apply

        dataset = load_named(data, data_root, offline, settings)
    with progress.phase("Predicting"):
        found = apply(run, dataset, seed=seed, cache=cache)
    path = output or run / f"{Path(data).stem.lower()}-predictions.csv"
    found.write_csv(path)
    say(console, f"Model of seed {found.seed}, {len(found.output):,} predictions: ", path)
    if found.measured:
        numbers = ", ".join(f"{name} {value:.4f}" for name, value in found.metrics.items())
        say(console, f"On {found.measured:,} {found.measured_on}: ", numbers)
