"""What a model is applied to, prepared once: the way that its architecture allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.errors import ModelError
from nlsf.nn import LaplacianAttention
from nlsf.nn.baselines import PeerModel
from nlsf.nn.models import GraphClassifier, NodeClassifier, SignalClassifier
from nlsf.nn.sparse_signal import SparseSignal
from nlsf.nn.spectra import AnyProjector
from nlsf.nn.spectral_layer import SpectralLayer
from nlsf.spectral import (
    BatchProjector,
    PolynomialBands,
    Spectrum,
    batched_eigh,
    laplacian,
    projector_of,
)
from nlsf.spectral.batch_projector import GraphPart
from nlsf.spectral.prepared import PreparedGraphs
from nlsf.spectral.prepared_nodes import NodeBatch, PreparedNodes
from nlsf.train.solvers import Solved

_SPARSE = 0.25
"""Features with a smaller share of nonzeros are multiplied as a sparse matrix: their dropout draws
fewer numbers too (Pubmed, a tenth: half the time)."""

_CHUNK = 256
"""Graphs that are padded to one size at a time, while they are prepared."""


_PROJECTIONS = 500
"""Numbers (bands times channels) that a node's projections may have to be worth keeping: reading
many of them from memory takes longer than to multiply eigenvectors in every step."""


class Inputs(ABC):
    """Fixed inputs of a model: calling them gives its outputs at some examples.

    Attributes:
        together: whether many models can be computed in one call (`torch.func.vmap`).
        whole: whether a call costs the same for few examples as for all of them.
        at_once: how many examples are evaluated at once, where that costs memory.
    """

    together: bool
    whole: bool
    at_once: int = 4096

    def __call__(self, model: nn.Module, rows: Tensor) -> Tensor:
        """The outputs (R, C) of a model at the examples ``rows`` (R,)."""
        return self.apply(model, self.select(rows))

    def select(self, rows: Tensor) -> Any:
        """What `apply` needs to know of the examples (R,), or (M, R) for M models.

        What depends on the examples in its shape is found here, before a `torch.func.vmap`.
        """
        return rows

    @abstractmethod
    def apply(self, model: nn.Module, chosen: Any) -> Tensor:
        """The outputs (R, C) of a model at the examples that were selected."""


class WholeGraph(Inputs):
    """All nodes of one graph, in every step: for models that mix nodes before their last layer.

    Args:
        x: the features, dense or sparse.
        graph: keyword arguments of the model that name the graph: ``spectrum``, or ``edge_index``.
        together: whether the model can be computed with others in one call.
    """

    whole = True

    def __init__(
        self, x: Tensor | SparseSignal, graph: dict[str, Any], together: bool = True
    ) -> None:
        self.x, self.graph, self.together = x, graph, together

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs of all nodes, then those that are asked for."""
        out: Tensor = model(self.x, **self.graph)
        return out[chosen]


class LabelledRows(Inputs):
    """Only the nodes that have a part in training: the cost does not grow with the graph.

    Args:
        model: a `NodeClassifier` whose way to the filter is linear.
        rows: the nodes that will ever be asked for.
        x: (N, F).
        graph: as in `WholeGraph`.
    """

    together = True
    whole = False

    def __init__(
        self, model: NodeClassifier, rows: Tensor, x: Tensor, graph: dict[str, Any]
    ) -> None:
        self.prepared = model.prepare(rows, x, **graph)
        self.place = torch.full((x.shape[0],), -1)
        self.place[rows] = torch.arange(len(rows))

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these nodes, from what was prepared."""
        assert isinstance(model, NodeClassifier)
        return model.forward_rows(tuple(p[self.place[chosen]] for p in self.prepared))


class PreparedSet(Inputs):
    """A data set of graphs, or of signals, as one tensor a branch: the graph level's fast path."""

    together = True
    whole = False

    def __init__(self, prepared: Sequence[PreparedGraphs]) -> None:
        self.prepared = tuple(prepared)

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these graphs."""
        assert isinstance(model, GraphClassifier)
        return model.forward_prepared([p[chosen] for p in self.prepared])


class PooledNodes(Inputs):
    """The projected nodes of a data set of graphs: the fast path of the pooling level."""

    together = True
    whole = False
    at_once = 64

    def __init__(self, prepared: Sequence[PreparedNodes]) -> None:
        self.prepared = tuple(prepared)

    def select(self, rows: Tensor) -> tuple[NodeBatch, ...]:
        """The nodes of these graphs, one batch a branch."""
        return tuple(p[rows] for p in self.prepared)

    def apply(self, model: nn.Module, chosen: tuple[NodeBatch, ...]) -> Tensor:
        """The outputs at these graphs."""
        assert isinstance(model, GraphClassifier)
        return model.forward_prepared(chosen)


class GraphBatches(Inputs):
    """Graphs that are put together anew for every step.

    Args:
        graphs: all of them.
        spectra: for every branch of the model, one spectrum a graph; none for other models.
        branches: the layers that read them.
    """

    together = False
    whole = False

    def __init__(
        self,
        graphs: Sequence[Data],
        spectra: Sequence[Sequence[Spectrum]],
        branches: Sequence[SpectralLayer],
    ) -> None:
        self.graphs, self.branches = graphs, branches
        self.parts = [
            [GraphPart.of(one, branch.bands, branch.complement) for one in many]
            for many, branch in zip(spectra, branches, strict=True)
        ]

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these graphs."""
        numbers = chosen.tolist()
        x = torch.cat([self.graphs[i].x for i in numbers])
        if self.branches:
            projectors = [
                BatchProjector.of_parts([p[i] for i in numbers], b.bands, complement=b.complement)
                for p, b in zip(self.parts, self.branches, strict=True)
            ]
            out: Tensor = model(x, **_graph(projectors))
            return out
        nodes = torch.tensor([self.graphs[i].num_nodes for i in numbers])
        first = (nodes.cumsum(0) - nodes).tolist()
        pairs = zip(numbers, first, strict=True)
        edges = torch.cat([self.graphs[i].edge_index + start for i, start in pairs], dim=1)
        out = model(x, edges, batch=torch.repeat_interleave(nodes))
        return out


class Signals(Inputs):
    """Many signals on one graph.

    Args:
        signals: (S, N, d).
        graph: as in `WholeGraph`.
    """

    together = True
    whole = False

    def __init__(self, signals: Tensor, graph: dict[str, Any]) -> None:
        self.signals, self.graph = signals, graph

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these signals."""
        out: Tensor = model(self.signals[chosen], **self.graph)
        return out


class KnownOutputs(Inputs):
    """For a model that needs no inputs: it was solved, and knows the output of every example."""

    together = False
    whole = True

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these examples."""
        out: Tensor = model(chosen)
        return out


def inputs_for(
    model: nn.Module,
    dataset: Dataset,
    rows: Tensor | None = None,
    *,
    cache: bool = True,
    dtype: torch.dtype = torch.float32,
    progress: Callable[[str], None] = lambda text: None,
) -> Inputs:
    """Prepares a data set for a model, the fastest way that the model allows.

    Args:
        model: what will be applied; its bands decide which eigenpairs are computed.
        dataset: its graphs, features and signals; labels are not looked at.
        rows: the examples that will ever be asked for; all by default.
        cache: keep spectra on disk.
        dtype: of the training.
        progress: is told what is being computed.
    """
    if isinstance(model, Solved):
        return KnownOutputs()
    if isinstance(model, SignalClassifier):
        return _signals(model, dataset, cache, dtype, progress)
    branches = spectral_branches(model)
    if dataset.level == "graph":
        return _graphs(model, dataset, branches, dtype, progress)
    projectors = []
    for branch in branches:
        shift = laplacian(
            dataset.graphs[0].edge_index,
            dataset.graphs[0].get("edge_weight"),
            dataset.graphs[0].num_nodes,
            branch.normalization,
            self_loops=branch.self_loops,
        )
        polynomial = isinstance(branch.bands, PolynomialBands)
        work = "Polynomial bands" if polynomial else "Eigendecomposition"
        progress(f"{work} of {shift.name}, {shift.num_nodes:,} nodes")
        projectors.append(
            projector_of(
                shift, branch.bands, complement=branch.complement, dtype=dtype, cache=cache
            )
        )
    graph = _graph(projectors) if branches else {"edge_index": dataset.graphs[0].edge_index}
    progress("Preparing the features")
    if dataset.signals is not None:
        signals = dataset.signals.to(dtype)
        if isinstance(model, GraphClassifier) and _prepared_as(model) is PreparedGraphs:
            return PreparedSet(cast("tuple[PreparedGraphs, ...]", model.prepare(signals, **graph)))
        return Signals(signals, graph)
    x = dataset.graphs[0].x
    x = x.to(dtype) if x.layout == torch.strided else x
    if isinstance(model, NodeClassifier) and model.can_prepare and x.layout == torch.strided:
        every = torch.arange(dataset.num_examples) if rows is None else rows.unique()
        return LabelledRows(model, every, x, graph)
    if isinstance(model, NodeClassifier | PeerModel):
        x = _maybe_sparse(x, dtype)
    return WholeGraph(x, graph, getattr(model, "together", True))


def spectral_branches(model: nn.Module) -> list[SpectralLayer]:
    """The layers whose bands a model's ``spectrum`` argument is for; none for other models."""
    if isinstance(model, SignalClassifier):  # its argument is a `Pyramid`
        return []
    for part in model.modules():
        if isinstance(part, LaplacianAttention):
            return [*spectral_branches(part.first), *spectral_branches(part.second)]
        if isinstance(part, SpectralLayer):
            return [part]
    return []


def _signals(
    model: SignalClassifier,
    dataset: Dataset,
    cache: bool,
    dtype: torch.dtype,
    progress: Callable[[str], None],
) -> Inputs:
    assert dataset.signals is not None
    graph = dataset.graphs[0]
    progress(f"Eigendecompositions of {graph.num_nodes:,} nodes and of their clusters")
    edges, weights = graph.edge_index, graph.get("edge_weight")
    pyramid = model.pyramid(edges, weights, cache=cache, dtype=dtype)
    return Signals(dataset.signals.to(dtype), {"spectrum": pyramid})


def _graphs(
    model: nn.Module,
    dataset: Dataset,
    branches: list[SpectralLayer],
    dtype: torch.dtype,
    progress: Callable[[str], None],
) -> Inputs:
    graphs = [
        Data(x=g.x.to(dtype), edge_index=g.edge_index, num_nodes=g.num_nodes)
        for g in dataset.graphs
    ]
    spectra = []
    if any(isinstance(branch.bands, PolynomialBands) for branch in branches):
        raise ModelError(
            "Polynomial bands are for one graph: use their base for a data set of graphs."
        )
    for branch in branches:
        shifts = [
            laplacian(
                g.edge_index,
                g.get("edge_weight"),
                g.num_nodes,
                branch.normalization,
                self_loops=branch.self_loops,
            )
            for g in dataset.graphs
        ]
        progress(f"Eigendecompositions of {len(shifts):,} graphs, {shifts[0].name}")
        spectra.append([s.to(dtype=dtype) for s in batched_eigh(shifts, bands=branch.bands)])
    kind = _prepared_as(model)
    if kind is PreparedNodes:
        bands = sum(branch.n_bands for branch in branches)
        kind = kind if bands * dataset.num_features <= _PROJECTIONS else None
    if kind is None:
        return GraphBatches(graphs, spectra, branches)
    progress("Preparing the graphs")
    parts = []
    for start in range(0, len(graphs), _CHUNK):
        some = slice(start, start + _CHUNK)
        projectors = [
            BatchProjector(s[some], b.bands, complement=b.complement)
            for s, b in zip(spectra, branches, strict=True)
        ]
        x = torch.cat([g.x for g in graphs[some]])
        assert isinstance(model, GraphClassifier)
        parts.append(model.prepare(x, **_graph(projectors)))
    joined: list[Any] = [kind.cat(branch) for branch in zip(*parts, strict=True)]
    return PreparedSet(joined) if kind is PreparedGraphs else PooledNodes(joined)


def _prepared_as(model: nn.Module) -> type[PreparedGraphs] | type[PreparedNodes] | None:
    """What a model's fast path reads; ``None`` where it has none."""
    if not (isinstance(model, GraphClassifier) and model.can_prepare):
        return None
    return PreparedGraphs if model.config.level == "graph" else PreparedNodes


def _graph(projectors: Sequence[AnyProjector]) -> dict[str, Any]:
    """The models take one projector, or a pair of them."""
    return {"spectrum": projectors[0] if len(projectors) == 1 else tuple(projectors)}


def _maybe_sparse(x: Tensor, dtype: torch.dtype) -> Tensor | SparseSignal:
    if x.layout == torch.strided and int((x != 0).sum()) > _SPARSE * x.numel():
        return x
    return SparseSignal.of(x).to(dtype=dtype)
