"""Data prepared for a model, the fastest way that its architecture allows: `inputs_for`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.nn import LaplacianAttention
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.models import GraphClassifier, NodeClassifier, SignalClassifier
from nlsf.peers import PeerModel, Solved
from nlsf.spectral import (
    PolynomialBands,
    PolynomialProjector,
    ShiftOperator,
    batched_eigh,
    laplacian,
    projector_of,
)
from nlsf.spectral.batch_projector import GraphPart
from nlsf.spectral.eigen.cache import SpectrumCache
from nlsf.spectral.prepared_graphs import PreparedGraphs
from nlsf.spectral.prepared_nodes import PreparedNodes
from nlsf.spectral.sparse_signal import SparseSignal
from nlsf.train.plan.graph_union import GraphUnion
from nlsf.train.plan.inputs import (
    GraphBatches,
    Inputs,
    KnownOutputs,
    LabelledRows,
    PreparedSet,
    Signals,
    WholeGraph,
    batch_projector,
    graph_arguments,
)

_SPARSE = 0.25
"""Features with a smaller share of nonzeros are multiplied as a sparse matrix: their dropout draws
fewer numbers too (Pubmed, a tenth: half the time)."""

_CHUNK = 256
"""Graphs that are padded to one size at a time, while they are prepared."""


_PROJECTIONS = 500_000_000
"""Numbers (nodes times bands times channels) that the projections of a data set may take: 2 GB in
single precision. With more, eigenvectors are multiplied in every step, in about twice the time."""


def inputs_for(
    model: nn.Module,
    dataset: Dataset,
    rows: Tensor | None = None,
    *,
    cache: bool = True,
    dtype: torch.dtype = torch.float32,
    progress: Callable[[str], None] = lambda text: None,
    memory: int | None = None,
) -> Inputs:
    """Prepares a data set for a model, the fastest way that the model allows.

    Args:
        model: what will be applied; its bands decide which eigenpairs are computed.
        dataset: its graphs, features and signals; labels are not looked at.
        rows: the examples that will ever be asked for; all by default.
        cache: keep spectra on disk.
        dtype: of the training.
        progress: is told what is being computed.
        memory: bytes for the projections of one graph on polynomial bands while they are computed;
            where they need more than half of it they are kept in files, beside the cached spectra.
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
    graph = graph_arguments(projectors) if branches else _edges(dataset.graphs[0])
    progress("Preparing the features")
    if dataset.signals is not None:
        signals = dataset.signals.to(dtype)
        if isinstance(model, GraphClassifier) and _prepared_as(model) is PreparedGraphs:
            return PreparedSet(cast("tuple[PreparedGraphs, ...]", model.prepare(signals, **graph)))
        return Signals(signals, graph)
    x = dataset.graphs[0].x
    x = x.to(dtype) if x.layout == torch.strided else x
    if isinstance(model, NodeClassifier) and _by_rows(model, dataset):
        every = torch.arange(dataset.num_examples) if rows is None else rows.unique()
        streamed: dict[str, Any] = {"progress": progress}
        if memory is not None:
            streamed["memory"] = memory
        if cache:
            streamed["folder"] = SpectrumCache().root / "projections"
        exact = not any(isinstance(branch.bands, PolynomialBands) for branch in branches)
        given = _maybe_sparse(x, dtype) if exact else x
        prepared = model.prepare(every, given, **graph, **streamed)
        # Filters of sparse features themselves are faster one by one than dense and together.
        first = model.config.encoder == "none" and isinstance(given, SparseSignal)
        return LabelledRows(prepared, every, len(x), together=not first)
    if isinstance(model, NodeClassifier | PeerModel):
        x = _maybe_sparse(x, dtype)
    return WholeGraph(x, graph, getattr(model, "together", True))


def sees_whole_graph(model: nn.Module, dataset: Dataset) -> bool:
    """Whether the inputs of a model will be `Inputs.whole`, known before they are prepared."""
    return isinstance(model, Solved) or (dataset.level == "node" and not _by_rows(model, dataset))


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
    graphs = [Data(x=g.x.to(dtype), num_nodes=g.num_nodes, **_edges(g)) for g in dataset.graphs]
    if not branches:
        return GraphUnion(graphs, together=isinstance(model, PeerModel) and model.together)
    graph_parts = []
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
        graph_parts.append(_parts(shifts, branch, dtype, progress))
    kind = _prepared_as(model)
    if kind is PreparedNodes:
        numbers = sum(branch.n_bands for branch in branches) * dataset.num_features
        numbers *= sum(graph.num_nodes for graph in graphs)
        kind = kind if numbers <= _PROJECTIONS else None
    if kind is None:
        return GraphBatches(graphs, graph_parts, branches)
    progress("Preparing the graphs")
    parts = []
    for start in range(0, len(graphs), _CHUNK):
        some = slice(start, start + _CHUNK)
        projectors = [
            batch_projector(p[some], b) for p, b in zip(graph_parts, branches, strict=True)
        ]
        x = torch.cat([g.x for g in graphs[some]])
        assert isinstance(model, GraphClassifier)
        parts.append(model.prepare(x, **graph_arguments(projectors)))
    joined: list[Any] = [kind.cat(branch) for branch in zip(*parts, strict=True)]
    return PreparedSet(joined)


def _edges(graph: Data) -> dict[str, Tensor]:
    """What a model is told of a graph: its edges, and their weights where it has any."""
    return {key: graph[key] for key in ("edge_index", "edge_weight") if key in graph}


def _parts(
    shifts: list[ShiftOperator],
    branch: SpectralLayer,
    dtype: torch.dtype,
    progress: Callable[[str], None],
) -> list[GraphPart] | list[PolynomialProjector]:
    """What each graph brings to a `batch_projector`."""
    count, bands, complement = f"{len(shifts):,} graphs", branch.bands, branch.complement
    if isinstance(bands, PolynomialBands):
        progress(f"Polynomial bands of {count}, {shifts[0].name}")
        made = (PolynomialProjector(shift, bands, complement=complement) for shift in shifts)
        return [one.to(dtype) for one in made]
    progress(f"Eigendecompositions of {count}, {shifts[0].name}")
    spectra = (spectrum.to(dtype=dtype) for spectrum in batched_eigh(shifts, bands=bands))
    return [GraphPart.of(spectrum, bands, complement) for spectrum in spectra]


def _prepared_as(model: nn.Module) -> type[PreparedGraphs] | type[PreparedNodes] | None:
    """What a model's fast path reads; ``None`` where it has none."""
    if not (isinstance(model, GraphClassifier) and model.can_prepare):
        return None
    return PreparedGraphs if model.config.level == "graph" else PreparedNodes


def _by_rows(model: nn.Module, dataset: Dataset) -> bool:
    """Whether a model of nodes needs the labelled rows only."""
    dense = dataset.graphs[0].x.layout == torch.strided
    return isinstance(model, NodeClassifier) and model.can_prepare and dense


def _maybe_sparse(x: Tensor, dtype: torch.dtype) -> Tensor | SparseSignal:
    if x.layout == torch.strided and int((x != 0).sum()) > _SPARSE * x.numel():
        return x
    return SparseSignal.of(x).to(dtype=dtype)
