"""``nlsf predict``: apply a trained model, to the data that it knows and to others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nlsf.cli.options import DataArgument, DataRoot, Offline, Settings, load_named


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
    cache: Annotated[bool, typer.Option(help="Keep spectra on disk for the next time.")] = True,
) -> None:
    """Write labels and probabilities of every node, graph or signal to a CSV file.

    On the data of the training, accuracy is that of the test examples; on other data, of all
    examples whose label is known.
    """
    from rich.console import Console

    console = Console()
    with console.status("Loading PyTorch and the data ..."):
        from nlsf.train.run.predict import predict as apply

        dataset = load_named(data, data_root, offline, settings)
    with console.status("Predicting ..."):
        found = apply(run, dataset, seed=seed, cache=cache)
    path = output or run / f"{Path(data).stem.lower()}-predictions.csv"
    found.write_csv(path)
    said = f"Model of seed {found.seed}, {len(found.output):,} predictions"
    console.print(f"{said}: [bold]{escape(str(path))}[/]", soft_wrap=True)
    if found.measured:
        numbers = ", ".join(f"{name} {value:.4f}" for name, value in found.metrics.items())
        console.print(f"On {found.measured:,} {found.measured_on}: [bold]{numbers}[/]")
