"""What a model is applied to, prepared once: the way that its architecture allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.nn.layers.spectra import AnyProjector
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.models import GraphClassifier, NodeClassifier
from nlsf.spectral import (
    BatchProjector,
    PolynomialBands,
    PolynomialBatchProjector,
    PolynomialProjector,
)
from nlsf.spectral.batch_projector import GraphPart
from nlsf.spectral.prepared_bands import PreparedBands
from nlsf.spectral.prepared_graphs import PreparedGraphs, RowBatch
from nlsf.spectral.prepared_nodes import NodeBatch, PreparedNodes
from nlsf.spectral.prepared_rows import PreparedRows
from nlsf.spectral.sparse_signal import SparseSignal

_REMEMBERED = 64
"""Sets of rows that stay prepared: two a model, and most of them while batches differ."""


class Padded(NamedTuple):
    """Signals of M models that are padded to one number of rows.

    Attributes:
        rows: how many each model has.
        width: how many there are with padding; no other signals have so many.
    """

    rows: list[int]
    width: int


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

        What depends on the examples in its shape is found here, before a `torch.func.vmap`. Its
        tensors have a leading dimension of M; all else is seen by every model.
        """
        return rows

    def padded(self, chosen: Any) -> Padded | None:
        """How the choice of M models is padded; ``None`` where all have the same numbers."""
        return None

    def in_parts(self, rows: Tensor) -> Sequence[Tensor]:
        """The examples (..., R) in as many parts as memory asks for in an evaluation."""
        return (rows,) if self.whole else rows.split(self.at_once, dim=-1)

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
        prepared: what `NodeClassifier.prepare` gave for them.
        rows: these nodes.
        num_nodes: N.
        together: whether models are computed in one call; otherwise rows that come again, those of
            a split, are prepared further for each.
    """

    whole = False

    def __init__(
        self,
        prepared: tuple[PreparedRows | PreparedBands, ...],
        rows: Tensor,
        num_nodes: int,
        together: bool = True,
    ) -> None:
        self.prepared, self.together = prepared, together
        self.place = torch.full((num_nodes,), -1)
        self.place[rows] = torch.arange(len(rows))
        self._settled: dict[bytes, tuple[PreparedRows | PreparedBands, ...] | None] = {}

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
            self._settled[key] = tuple(
                p.settle(index) if isinstance(p, PreparedRows) else p[index] for p in self.prepared
            )
        return self._settled[key]

    def apply(self, model: nn.Module, chosen: Any) -> Tensor:
        """The outputs at these nodes, from what was prepared."""
        assert isinstance(model, NodeClassifier)
        if isinstance(chosen, Tensor):
            chosen = tuple(p[self.place[chosen]] for p in self.prepared)
        return model.forward_rows(chosen)


class PreparedSet(Inputs):
    """A data set of graphs, or of signals, projected: the fast path of models of graphs.

    Args:
        prepared: one a branch; of graphs at the graph level, of nodes at the pooling level.
    """

    together = True
    whole = False

    def __init__(self, prepared: Sequence[PreparedGraphs] | Sequence[PreparedNodes]) -> None:
        self.prepared: tuple[PreparedGraphs | PreparedNodes, ...] = tuple(prepared)
        if any(isinstance(one, PreparedNodes) for one in prepared):
            self.at_once = 64

    def select(self, rows: Tensor) -> tuple[RowBatch | NodeBatch, ...]:
        """These graphs, one batch a branch."""
        return tuple(p[rows] for p in self.prepared)

    def apply(self, model: nn.Module, chosen: tuple[RowBatch | NodeBatch, ...]) -> Tensor:
        """The outputs at these graphs."""
        assert isinstance(model, GraphClassifier)
        return model.forward_prepared(chosen)


class GraphBatches(Inputs):
    """Graphs whose projectors are put together anew for every step.

    Args:
        graphs: all of them.
        parts: for every branch of the model, what each graph brings to a `batch_projector`.
        branches: the layers that read them.
    """

    together = False
    whole = False

    def __init__(
        self,
        graphs: Sequence[Data],
        parts: Sequence[Sequence[GraphPart] | Sequence[PolynomialProjector]],
        branches: Sequence[SpectralLayer],
    ) -> None:
        self.graphs, self.parts, self.branches = graphs, parts, branches

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these graphs."""
        numbers = chosen.tolist()
        x = torch.cat([self.graphs[i].x for i in numbers])
        projectors = [
            batch_projector([p[i] for i in numbers], b)
            for p, b in zip(self.parts, self.branches, strict=True)
        ]
        out: Tensor = model(x, **graph_arguments(projectors))
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


def graph_arguments(projectors: Sequence[AnyProjector]) -> dict[str, Any]:
    """The keyword arguments of a model: one projector, or a pair of them."""
    return {"spectrum": projectors[0] if len(projectors) == 1 else tuple(projectors)}


def batch_projector(
    parts: Sequence[GraphPart] | Sequence[PolynomialProjector], branch: SpectralLayer
) -> BatchProjector | PolynomialBatchProjector:
    """The projector of some graphs for a layer, of what each of them brings to it."""
    bands, complement = branch.bands, branch.complement
    if isinstance(bands, PolynomialBands):
        smooth = cast("Sequence[PolynomialProjector]", parts)
        return PolynomialBatchProjector(smooth, bands, complement=complement)
    return BatchProjector.of_parts(cast("Sequence[GraphPart]", parts), bands, complement=complement)
