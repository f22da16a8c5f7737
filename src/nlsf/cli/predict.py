"""``nlsf predict``: apply a trained model, to the data that it knows and to others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlsf.cli.options import Cache, DataArgument, DataRoot, Offline, Settings, load_named, say


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
