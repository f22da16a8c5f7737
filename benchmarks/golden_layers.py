"""The layers of the golden runs, and what a call of each gives: dicts of numbers.

Layers get their parameters from the names of these, so that the order in which a module makes them
does not matter. What two announced changes of defaults would move (a = 1 of `NodeNLSF`, the empty
complement) is said explicitly.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import nlsf.nn as nn
from nlsf.data import load, random_geometric
from nlsf.spectral import (
    AffineGeometricBands,
    DyadicBands,
    IndexBands,
    PolynomialBands,
    QuantileBands,
    UniformBands,
    batched_eigh,
    laplacian,
    magnetic_laplacian,
    partial_eigh,
)
from nlsf.testing.graphs import path, star, torus, weighted

# --- What differs between checkouts ---------------------------------------------------------------


def trials_of(storage: Path, study: str) -> list[Any]:
    """The trials of a study, in their order."""
    try:
        from nlsf.tables import read_trials
    except ImportError:
        from nlsf.experiments import read_trials
    return read_trials(storage, study)


# The mean of absolute values as the norm of a band.
_MEAN: dict[str, Any] = {"norm_p": 1.0, "norm_per_node": True}
if "norm_p" not in signature(nn.NodeNLSF).parameters:  # version 0.1
    _MEAN = {"norm": 1.0, "normalize": True}

# Version 0.1 had no argument for the complement here: there always was one.
_WHOLE = {"complement": True} if "complement" in signature(nn.MixingNLSF).parameters else {}


def in_blocks(shift: Any, bands: PolynomialBands, client: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Norms of a signal by block rows, and the signal filtered by their tanh."""
    try:
        from nlsf.cluster import BlockLens
        from nlsf.spectral import Lens
    except ImportError:
        return _in_blocks_before(shift, bands, client, x)
    view = BlockLens(Lens.of(shift, bands), client, blocks=2)(x)
    norms = view.norms()
    return norms, view.synthesize(torch.tanh(norms))


def _in_blocks_before(
    shift: Any, bands: PolynomialBands, client: Any, x: Tensor
) -> tuple[Tensor, Tensor]:
    from nlsf.cluster import BlockProjector
    from nlsf.spectral import PolynomialProjector, analyze, synthesize

    blocks = BlockProjector(PolynomialProjector(shift, bands), client, blocks=2)
    norms = analyze(x, blocks)
    return norms, synthesize(torch.tanh(norms), x, blocks)


# --------------------------------------------------------------------------------------------------

Numbers = dict[str, Any]


def digest(*tensors: Tensor) -> str:
    """A hash of every bit."""
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
        real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        found.update(real.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def norm(*tensors: Tensor) -> float:
    """The Euclidean norm of all of them together."""
    return sum(float(t.detach().abs().double().square().sum()) for t in tensors) ** 0.5


_EVEN, _FEW = UniformBands(4), IndexBands(4)
_SMOOTH = {"hidden": 4, "activation": "tanh"}
_SOFT = PolynomialBands(DyadicBands(S=3), order=10)
_PAIRS = PolynomialBands(UniformBands(S=4), order=8, pairs=3)


def _node(bands: Any = None, out: int = 2, width: int = 2, **options: Any) -> nn.NodeNLSF:
    known = {"a": 1.0, "complement": True, "normalization": "sym", **_SMOOTH}
    return nn.NodeNLSF(width, out, bands or _FEW, **{**known, **options})


LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "node": lambda: _node(start="heat", self_loops=True),
    "node, a = 0": lambda: _node(DyadicBands(S=4), 3, a=0.0, start="ppr"),
    "node, bandwise": lambda: _node(_EVEN, 3, normalization=None, response="bandwise"),
    "node, constant": lambda: _node(_EVEN, 3, response="constant", mode="multiplicative"),
    "node, full": lambda: _node(out=3, response="full", complement=False),
    "node, additive": lambda: _node(QuantileBands(3), mode="additive", **_MEAN),
    "node, polynomial": lambda: _node(_SOFT, 3),
    "node, polynomial with pairs": lambda: _node(_PAIRS, a=0.5, self_loops=True),
    "mixing": lambda: nn.MixingNLSF(2, 3, _EVEN, "diagonal", 3, 0.5, **_WHOLE, **_SMOOTH),
    "graph": lambda: nn.GraphNLSF(2, 3, bands=_FEW, complement=True, **_SMOOTH),
    "graph, mapped": lambda: nn.GraphNLSF(
        2, 3, bands=AffineGeometricBands(3), complement=True, channels=4, **_SMOOTH
    ),
    "pooling": lambda: nn.PoolingNLSF(
        2, 3, readout="rms", activation="tanh", bands=_FEW, a=1.0, complement=True, hidden=4
    ),
    "pooling, polynomial": lambda: nn.PoolingNLSF(
        2, 3, readout="mean", activation="tanh", bands=_SOFT, a=0.0, complement=True, hidden=4
    ),
    "attention": lambda: nn.LaplacianAttention(
        _node(normalization=None), _node(_EVEN, 3), "spectral", 4
    ),
    "attention, graphs": lambda: nn.LaplacianAttention(
        nn.GraphNLSF(2, 2, bands=_FEW, complement=True, channels=3, **_SMOOTH),
        nn.GraphNLSF(2, 3, bands=_FEW, complement=True, **_SMOOTH),
        "scalar",
    ),
    "stack": lambda: nn.NLSFStack([_node(_EVEN), _node(width=2), _node(_SOFT)]),
    "node classifier": lambda: nn.NodeClassifier(
        in_channels=2, out_channels=3, hidden_channels=4, complement=True, score="spectral"
    ),
    "graph classifier": lambda: nn.GraphClassifier(
        in_channels=2, out_channels=3, hidden_channels=4, level="pooling", head=(5,)
    ),
    "signal classifier": lambda: nn.SignalClassifier(
        in_channels=2, out_channels=3, num_nodes=20, widths=(2, 3), bands=_EVEN, head=(5,)
    ),
}  # fmt: skip
ONE_GRAPH = ("mixing", "signal classifier", "node, polynomial with pairs")


def layer_of(name: str) -> torch.nn.Module:
    """The layer in float64, with parameters that depend on their names alone."""
    layer = LAYERS[name]().double().eval()
    with torch.no_grad():
        for key, parameter in layer.named_parameters():
            parameter.copy_(0.5 * random(*parameter.shape, seed=zlib.crc32(key.encode())))
    return layer


def random(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def many() -> tuple[Tensor, Tensor, Tensor]:
    """Edges and owners of a batch: a torus, a path, a star, one node."""
    edges, owner, first = [], [], 0
    parts = [(g.edge_index, g.num_nodes) for g in (torus(4, 5), path(7), star(6))]
    for number, (edge_index, size) in enumerate([*parts, (torch.zeros(2, 0).long(), 1)]):
        edges.append(edge_index + first)
        owner.append(torch.full((size,), number))
        first += size
    return torch.cat(edges, dim=1), torch.cat(owner), random(first, 2, seed=3)


def called(layer: torch.nn.Module, x: Tensor, *graph: Any, **options: Any) -> Numbers:
    """Output and gradients of a layer's second call."""
    layer(x, *graph, **options)
    x = x.clone().requires_grad_()
    y = layer(x, *graph, **options)
    y.abs().square().sum().backward()
    named = sorted(layer.named_parameters())
    slopes = [p.grad if p.grad is not None else torch.zeros_like(p) for _, p in named]
    return {
        "output": _listed(y.reshape(-1)[:4]),
        "norm": norm(y),
        "slope of signal": norm(x.grad),
        "slopes": {name: norm(slope) for (name, _), slope in zip(named, slopes, strict=True)},
        "digest": digest(y, x.grad, *slopes),
    }


def _listed(y: Tensor) -> list[float]:
    y = y.detach()
    return (torch.view_as_real(y).flatten() if y.is_complex() else y).tolist()


def layers_on_one_graph(folder: Path) -> Numbers:
    """Every layer on a torus, whose eigenspaces have many dimensions, or on a weighted graph."""
    found = {}
    for name in LAYERS:
        graph = torus(4, 5) if name == "signal classifier" else weighted(20)
        weight = None if name == "signal classifier" else graph.edge_weight.double()
        x = random(20, 2)
        found[name] = called(layer_of(name), x, graph.edge_index, weight)
    return {"outputs": found}


def layers_on_a_batch(folder: Path) -> Numbers:
    """Every layer that takes one."""
    edges, owner, x = many()
    names = [name for name in LAYERS if name not in ONE_GRAPH]
    return {"outputs": {n: called(layer_of(n), x, edges, None, owner) for n in names}}


def layers_on_signals(folder: Path) -> Numbers:
    """Many signals on one graph, in single precision."""
    found, edges, x = {}, torus(4, 5).edge_index, random(3, 20, 2).float()
    for name in ("node", "node, polynomial", "mixing", "graph", "attention", "signal classifier"):
        found[name] = called(layer_of(name).float(), x, edges)
    return {"outputs": found}


def layers_on_a_directed_graph(folder: Path) -> Numbers:
    """Layers that take a magnetic Laplacian, whose signals are complex."""
    one_way = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 5], [1, 2, 3, 4, 0, 3, 5, 6]])
    found, x = {}, random(7, 2)
    for charge, normalization in ((0.2, None), (0.1, "sym")):
        spectrum = partial_eigh(magnetic_laplacian(one_way, normalization=normalization, q=charge))
        for name in ("node", "node, bandwise", "node, full", "mixing", "graph"):
            found[f"{name}, q = {charge}"] = called(layer_of(name), x, spectrum=spectrum)
        pair = {"spectrum": (spectrum, spectrum)}
        found[f"attention, q = {charge}"] = called(layer_of("attention"), x, **pair)
    return {"outputs": found}


def spectra(folder: Path) -> Numbers:
    """The block solver, components, dense solves, a batch."""
    large = random_geometric(1500, 7.0, seed=1)
    found = {
        "geometric N": partial_eigh(laplacian(large, normalization="sym"), k=12),
        "geometric L": partial_eigh(laplacian(large), bands=IndexBands(6)),
        "torus": partial_eigh(laplacian(torus(6, 7), self_loops=True, normalization="sym")),
    }
    shifts = [laplacian(g) for g in load("digits-graphs").graphs[:12]]
    found |= {f"batch {i}": s for i, s in enumerate(batched_eigh(shifts, bands=DyadicBands(S=4)))}
    return {
        "outputs": {
            name: {"values": s.values.tolist(), "digest": digest(s.values, s.vectors)}
            for name, s in found.items()
        }
    }


def block_rows(folder: Path) -> Numbers:
    """Polynomial bands by block rows, on a cluster inside of this process."""
    import dask
    from distributed import Client, LocalCluster

    shift = laplacian(torus(8, 9), normalization="sym", self_loops=True)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with (
        dask.config.set({"distributed.worker.memory.target": False}),
        LocalCluster(**options, memory_limit=0, dashboard_address="127.0.0.1:0") as local,
        Client(local) as client,
    ):
        norms, y = in_blocks(shift, _SOFT, client, random(72, 3))
    return {
        "outputs": {
            "norms": norms.flatten().tolist(),
            "filtered": y.flatten()[:6].tolist(),
            "digest": digest(norms, y),
        }
    }


RUNS: dict[str, Callable[[Path], Numbers]] = {
    "layers on one graph": layers_on_one_graph,
    "layers on a batch": layers_on_a_batch,
    "layers on signals": layers_on_signals,
    "layers on a directed graph": layers_on_a_directed_graph,
    "spectra": spectra,
    "block rows": block_rows,
}
