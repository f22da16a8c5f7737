"""The plans of models with spectral filters; and `plan_of`, which asks any model for its plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import torch
from torch import Tensor, nn

from nlsf.nn.layers.spectral_layer import SpectralLayer, spectral_branches
from nlsf.nn.plans.plan import (
    Examples,
    GraphBatches,
    Plan,
    PlanOptions,
    Signals,
    WholeGraph,
    edges_of,
)
from nlsf.spectral import Lens, ShiftOperator, laplacian
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.lens import FixedBands, FixedRows

if TYPE_CHECKING:
    from torch_geometric.data import Data

_SPARSE = 0.25
"""Features with a smaller share of nonzeros are multiplied as a sparse matrix: their dropout draws
fewer numbers too (Pubmed, a tenth: half the time)."""

_REMEMBERED = 64
"""Sets of rows that stay prepared: two a model, and most of them while batches differ."""


def _silent(text: str) -> None:
    """Tells nobody."""


def plan_of(
    model: nn.Module,
    dataset: Examples,
    rows: Tensor | None = None,
    *,
    cache: bool = True,
    dtype: torch.dtype = torch.float32,
    progress: Callable[[str], None] = _silent,
    memory: int | None = None,
) -> Plan:
    """How a model is trained on a data set fastest: what its ``plan`` method says.

    The method has the same arguments. A model without it gets `usual_plan`.

    Args:
        model: what will be applied; its bands decide which eigenpairs are computed.
        dataset: its graphs, features and signals.
        rows: the examples that will ever be asked for; all by default.
        cache: as in `PlanOptions`, and the others too.
        dtype: of the training.
        progress: is told what is being computed.
        memory: bytes that preparing a large graph may take.
    """
    options = PlanOptions(cache=cache, dtype=dtype, progress=progress, memory=memory)
    own = getattr(model, "plan", None)
    plan: Plan = own(dataset, rows, **options) if own else usual_plan(model, dataset, **options)
    return plan


def plan_key_of(model: nn.Module) -> Hashable:
    """What of a model's settings decides its plan: with equal keys, one plan is good for both.

    A model with a plan of its own says it as ``plan_key``; ``None`` where it does not.
    """
    key: Hashable = getattr(model, "plan_key", None)
    if not hasattr(model, "plan"):
        key = getattr(model, "together", True), bands_key(model)
    return None if key is None else (type(model), key)


def bands_key(model: nn.Module) -> Hashable:
    """The settings of a model's filters that its projections depend on."""
    return tuple(
        (repr(b.bands), b.normalization, b.self_loops, b.complement, b.norm_p, b.norm_per_node)
        for b in spectral_branches(model)
    )


def sees_whole_graph(model: nn.Module, dataset: Examples) -> bool:
    """Whether the plan of a model will be `Plan.whole`, known before it is made.

    A model with a plan of its own says it in a method of this name. Where it does not, its plan
    has to be made to know.
    """
    said = getattr(model, "sees_whole_graph", None)
    if said is None:
        return dataset.level == "node" and not hasattr(model, "plan")
    return bool(said(dataset))


def usual_plan(model: nn.Module, dataset: Examples, **options: Unpack[PlanOptions]) -> Plan:
    """The plan for any model: it sees the whole graph, or whole graphs, in every step.

    A model with spectral layers is called with ``spectrum=``, others with ``edge_index=``.
    """
    branches, dtype = spectral_branches(model), options["dtype"]
    progress, cache = options["progress"], options["cache"]
    if dataset.level == "graph":
        if not branches:
            return GraphBatches(dataset.graphs, dtype)
        features = [graph.x.to(dtype) for graph in dataset.graphs]
        parts = [_parts(dataset.graphs, branch, dtype, progress) for branch in branches]
        return SpectralBatches(features, parts, branches)
    graph, lenses = dataset.graphs[0], []
    for branch in branches:
        shift = operator_of(graph, branch)
        work = "Eigendecomposition" if branch.bands.exact else "Polynomial bands"
        progress(f"{work} of {shift.name}, {shift.num_nodes:,} nodes")
        lenses.append(
            Lens.of(shift, branch.bands, complement=branch.complement, dtype=dtype, cache=cache)
        )
    told = spectrum_argument(lenses) if branches else edges_of(graph)
    progress("Preparing the features")
    if dataset.signals is not None:
        return Signals(dataset.signals.to(dtype), told)
    x = graph.x.to(dtype) if graph.x.layout == torch.strided else graph.x
    return WholeGraph(x, told, getattr(model, "together", True))


def spectrum_argument(lenses: Sequence[Lens]) -> dict[str, Any]:
    """The keyword argument of a model: one lens, or a pair of them."""
    return {"spectrum": lenses[0] if len(lenses) == 1 else tuple(lenses)}


def operator_of(graph: Data, branch: SpectralLayer) -> ShiftOperator:
    """The Laplacian of a graph that a layer reads."""
    return laplacian(
        graph.edge_index,
        graph.get("edge_weight"),
        graph.num_nodes,
        branch.normalization,
        self_loops=branch.self_loops,
    )


def maybe_sparse(x: Tensor, dtype: torch.dtype) -> Tensor | SparseSignal:
    """The features in this dtype, as a sparse matrix where that is faster."""
    if x.layout == torch.strided and int((x != 0).sum()) > _SPARSE * x.numel():
        return x.to(dtype)
    return SparseSignal.of(x).to(dtype=dtype)


class LabelledRows(Plan):
    """Only the nodes that have a part in training: the cost does not grow with the graph.

    Args:
        prepared: what the model's ``prepare`` gave for them; its ``forward_rows`` takes it.
        rows: these nodes.
        num_nodes: N.
        together: whether models are computed in one call; otherwise rows that come again, those of
            a split, are prepared further for each.
    """

    whole = False

    def __init__(
        self,
        prepared: tuple[FixedRows | FixedBands, ...],
        rows: Tensor,
        num_nodes: int,
        together: bool = True,
    ) -> None:
        self.prepared, self.together = prepared, together
        # No place for other nodes: an error if one is asked for, and not the row of another.
        self.place = torch.full((num_nodes,), num_nodes)
        self.place[rows] = torch.arange(len(rows))
        self._settled: dict[bytes, tuple[FixedRows | FixedBands, ...] | None] = {}

    def select(self, rows: Tensor) -> Any:
        """The nodes, or what is prepared of them where they were asked for before."""
        if self.together:
            return rows
        key = rows.numpy().tobytes()
        if key not in self._settled:
            if len(self._settled) >= _REMEMBERED:
                del self._settled[next(iter(self._settled))]
            self._settled[key] = None
            return rows
        if self._settled[key] is None:
            index = self.place[rows]
            self._settled[key] = tuple(p.settle(index) for p in self.prepared)
        return self._settled[key]

    def apply(self, model: Any, chosen: Any) -> Tensor:
        """The outputs at these nodes, from what was prepared."""
        if isinstance(chosen, Tensor):
            chosen = tuple(p[self.place[chosen]] for p in self.prepared)
        out: Tensor = model.forward_rows(chosen)
        return out


class PreparedSet(Plan):
    """A data set of graphs, or of signals, projected: the fast path of models of graphs.

    Args:
        prepared: one a branch, what the model's ``prepare`` gave; ``forward_prepared`` takes it.
        at_once: graphs that are evaluated at once.
    """

    together = True
    whole = False

    def __init__(self, prepared: Sequence[Any], at_once: int = Plan.at_once) -> None:
        self.prepared, self.at_once = tuple(prepared), at_once

    def select(self, rows: Tensor) -> tuple[Any, ...]:
        """These graphs, one batch a branch."""
        return tuple(p[rows] for p in self.prepared)

    def apply(self, model: Any, chosen: tuple[Any, ...]) -> Tensor:
        """The outputs at these graphs."""
        out: Tensor = model.forward_prepared(chosen)
        return out


class SpectralBatches(Plan):
    """Graphs whose lenses are put together anew for every step.

    Args:
        features: the features (N_g, d) of each graph.
        parts: for every branch of the model, the lens of each graph.
        branches: the layers that read them.
    """

    together = False
    whole = False

    def __init__(
        self,
        features: Sequence[Tensor],
        parts: Sequence[Sequence[Lens]],
        branches: Sequence[SpectralLayer],
    ) -> None:
        self.features, self.parts, self.branches = features, parts, branches

    def batch(self, rows: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """The features of these graphs, and the model's keyword arguments that name them."""
        numbers = rows.tolist()
        lenses = [
            Lens.of([each[i] for i in numbers], branch.bands, complement=branch.complement)
            for each, branch in zip(self.parts, self.branches, strict=True)
        ]
        return torch.cat([self.features[i] for i in numbers]), spectrum_argument(lenses)

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these graphs."""
        x, graph = self.batch(chosen)
        out: Tensor = model(x, **graph)
        return out


def _parts(
    graphs: Sequence[Data],
    branch: SpectralLayer,
    dtype: torch.dtype,
    progress: Callable[[str], None],
) -> list[Lens]:
    """The lens of each graph."""
    shifts = [operator_of(graph, branch) for graph in graphs]
    work = "Eigendecompositions" if branch.bands.exact else "Polynomial bands"
    progress(f"{work} of {len(shifts):,} graphs, {shifts[0].name}")
    return Lens.each(shifts, branch.bands, complement=branch.complement, dtype=dtype)
