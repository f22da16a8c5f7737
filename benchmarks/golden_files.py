"""The files that later versions must read; ``golden.py --fixtures`` has `write` make them.

| in tests/golden | what it is |
|---|---|
| ``settings.toml`` | settings as a user writes them |
| ``run`` | the run folder of these settings, two seeds |
| ``predictions.csv`` | what ``nlsf predict`` says with that run |
| ``interrupted`` | the same run, stopped in the sixth of its eight epochs |
| ``cache`` | the spectra of that run |
| ``magnetic`` | a complex spectrum, in a cache of its own |
| ``compared`` | a folder of ``nlsf compare``, without its page |
| ``small`` | experiment, results and CSV of a table |
| ``study.journal``, ``space.toml`` | a tuning of three trials, and its choices |
| ``layers.safetensors`` | of every layer: state dict, and the output for a signal |
| ``graph.pt`` | a graph with its spectrum, as ``torch.save`` pickles it |

They were written by version 0.1 and hold its formats. No path of a machine is in them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch_geometric.data import Data

import golden_layers
from golden_runs import EXPERIMENT, nlsf
from nlsf.spectral import DyadicBands, ShiftOperator, laplacian, magnetic_laplacian, partial_eigh
from nlsf.testing.graphs import torus, weighted
from nlsf.train import Interrupted, train
from nlsf.transforms import AddSpectrum

DATA = {"num_nodes": 60, "num_features": 6, "separation": 2.0, "seed": 3}
SETTINGS = f"""# A model of few parameters on a generated graph.
protocol = "60-20-20"
seeds = 2

[data]
name = "csbm"
{chr(10).join(f"{key} = {value}" for key, value in DATA.items())}

[model]
name = "att-node"
hidden_channels = 6
index_bands = {{kind = "index", J = 4}}
value_bands = {{kind = "dyadic", r = 0.5, S = 3}}
start = {{name = "heat", t = 2.0}}

[training]
epochs = 8
monitor = "loss"
lr = 0.05
psi_lr = 0.01
"""
COMPARED = ("csbm", "--models", "gcn,mlp", "--seeds", 2, "--set", "epochs=3")
SMALL = ("--set", "data.num_nodes=60")
TUNED = ("csbm", "--model", "mlp", "--trials", 3, "--splits", 2, "--set", "epochs=3", *SMALL)
SPACE = """[space]
"features.row_normalize" = []
"model.dropout" = [0.5, 0.2]
"model.hidden_channels" = []
"model.input_dropout" = []
"training.lr" = [0.01, 0.05]
"training.weight_decay" = []
"""
ONE_WAY = torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 3, 5]])


def data_options() -> list[str]:
    """The data of `SETTINGS` on the command line."""
    return [word for key, value in DATA.items() for word in ("--set", f"data.{key}={value}")]


def write(folder: Path) -> None:
    """Writes all of them into a folder."""
    (folder / "settings.toml").write_text(SETTINGS)
    with cache_at(folder / "cache"):
        nlsf("train", "-c", folder / "settings.toml", "-o", folder / "run", "--no-report")
        nlsf("predict", folder / "run", "csbm", *data_options(), "-o", folder / "predictions.csv")
    with tempfile.TemporaryDirectory() as place, cache_at(Path(place) / "cache"):
        interrupted(folder / "settings.toml", folder / "interrupted")
        nlsf("compare", *COMPARED, *SMALL, "-o", folder / "compared")
        (folder / "compared" / "comparison.html").unlink()
        table(folder / "small")
        (folder / "space.toml").write_text(SPACE)
        nlsf("tune", *TUNED, "--space", folder / "space.toml", "-o", Path(place))
        journal = (Path(place) / "study.journal").read_text()
        (folder / "study.journal").write_text(journal.replace(f"{gethostname()}:", "machine:"))
    partial_eigh(magnetic(), bands=DyadicBands(S=3), cache=folder / "magnetic")
    save_file(layers(), folder / "layers.safetensors")
    torch.save(graph_with_spectrum(), folder / "graph.pt")
    for lock in folder.rglob(".lock"):
        lock.unlink()


def magnetic() -> ShiftOperator:
    """A complex operator whose numbers every processor computes alike, so that keys agree."""
    return magnetic_laplacian(ONE_WAY, q=0.25)


def table(folder: Path) -> None:
    """An experiment with its results, and the table as CSV."""
    (folder / "experiments").mkdir(parents=True)
    (folder / "experiments" / "small.toml").write_text(EXPERIMENT)
    with tempfile.TemporaryDirectory() as work:
        places = table_places(folder, Path(work))
        nlsf("table", "small", "--run", *places)
        nlsf("table", "small", "-f", "csv", "-o", folder / "small.csv", *places)


def table_places(folder: Path, work: Path) -> list[Any]:
    """Where ``nlsf table`` looks and writes."""
    places = {"experiments": folder / "experiments", "results": folder / "results", "work": work}
    return [word for name, place in places.items() for word in (f"--{name}", place)]


def interrupted(settings: Path, folder: Path) -> None:
    """A run that was stopped, with the checkpoint of its last whole epoch."""
    import tomllib

    from nlsf.display.progress import Phase, Progress

    class Stop(Progress):
        def advanced(self, phase: Phase) -> None:
            if phase.done == 6:
                raise KeyboardInterrupt

    chosen = tomllib.loads(settings.read_text())
    try:
        train("csbm", chosen, output=folder, display=Stop(), checkpoint_seconds=0.0)
    except Interrupted:
        return
    raise RuntimeError("The run came to its end.")


def layers() -> dict[str, Tensor]:
    """State dict and output of every layer: ``NAME/state/KEY``, ``NAME/x``, ``NAME/output``."""
    found = {}
    for name in golden_layers.LAYERS:
        layer, graph = golden_layers.layer_of(name), graph_of(name)
        x = golden_layers.random(20, 2, seed=1)
        with torch.no_grad():
            found[f"{name}/output"] = layer(x, *graph)
        found |= {f"{name}/state/{k}": v.clone() for k, v in layer.state_dict().items()}
        found |= {f"{name}/x": x, f"{name}/edge_index": graph[0]}
        if len(graph) > 1:
            found[f"{name}/edge_weight"] = graph[1]
    return {key: value.contiguous() for key, value in found.items()}


def graph_of(name: str) -> tuple[Tensor, ...]:
    """Edges and, but for a grid, weights."""
    if name == "signal classifier":
        return (torus(4, 5).edge_index,)
    graph = weighted(20)
    return graph.edge_index, graph.edge_weight.double()


def graph_with_spectrum() -> Data:
    """A torus after `AddSpectrum`."""
    graph = torus(4, 5)
    data = Data(x=golden_layers.random(20, 2), edge_index=graph.edge_index, num_nodes=20)
    added: Data = AddSpectrum(DyadicBands(S=3), operator=laplacian)(data)
    return added


@contextmanager
def cache_at(folder: Path) -> Iterator[None]:
    """Keeps spectra in a folder."""
    before = os.environ.get("NLSF_CACHE")
    os.environ["NLSF_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["NLSF_CACHE"]
        if before is not None:
            os.environ["NLSF_CACHE"] = before
