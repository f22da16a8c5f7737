"""The contract between a model and its training: `Plan`; and the plans that suit any model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict

import torch
from torch import Tensor, nn

from nlsf.spectral.kernels.sparse_signal import SparseSignal

if TYPE_CHECKING:
    from torch_geometric.data import Data

_NODES = 32_768
"""Nodes of graphs that are evaluated at once, those of all models together."""


class Examples(Protocol):
    """What a plan reads of its data: graphs, features and signals, but no labels."""

    @property
    def level(self) -> str:
        """What an example is: ``"node"``, ``"graph"`` or ``"signal"``."""

    @property
    def graphs(self) -> Sequence[Data]:
        """The graphs, with features ``x`` where nodes have any."""

    @property
    def signals(self) -> Tensor | None:
        """(n, N, d), where examples are signals."""

    @property
    def num_examples(self) -> int:
        """How many there are."""

    @property
    def num_features(self) -> int:
        """Channels of the input."""


class PlanOptions(TypedDict):
    """What a model's ``plan`` is told of the training, beside the data.

    Attributes:
        cache: keep spectra on disk.
        dtype: of the training.
        progress: is told what is being computed.
        memory: bytes for the projections of one graph on polynomial bands while they are computed;
            where they need more than half of it they are kept in files, beside the cached spectra.
    """

    cache: bool
    dtype: torch.dtype
    progress: Callable[[str], None]
    memory: int | None


class Padded(NamedTuple):
    """Signals of M models that are padded to one number of rows.

    Attributes:
        rows: how many each model has.
        width: how many there are with padding; no other signals have so many.
    """

    rows: list[int]
    width: int


class Plan(ABC):
    """How a model is trained on a data set: called with examples, it gives the model's outputs.

    What does not change during the training is computed before it, and kept here. A subclass says
    how a model is applied to some examples (`apply`), and sets the attributes.

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


class WholeGraph(Plan):
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


class Signals(Plan):
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


class GraphBatches(Plan):
    """Graphs that are put side by side anew for every step.

    The model is told the edges, their weights where they have any, and the graph of each node.

    Args:
        graphs: all of them.
        dtype: of the training.
    """

    together = False
    whole = False

    def __init__(self, graphs: Sequence[Data], dtype: torch.dtype) -> None:
        self.graphs, self.features = graphs, [graph.x.to(dtype) for graph in graphs]
        self.nodes = torch.tensor([graph.num_nodes for graph in graphs], dtype=torch.int64)

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these graphs."""
        numbers, nodes = chosen.tolist(), self.nodes[chosen]
        some = [self.graphs[i] for i in numbers]
        counts = torch.tensor([graph.edge_index.shape[1] for graph in some], dtype=torch.int64)
        first = (nodes.cumsum(0) - nodes).repeat_interleave(counts)
        told = {key: torch.cat([g[key] for g in some], dim=-1) for key in edges_of(some[0])}
        told["edge_index"] = told["edge_index"] + first
        x = torch.cat([self.features[i] for i in numbers])
        out: Tensor = model(x, batch=torch.repeat_interleave(nodes), **told)
        return out

    def in_parts(self, rows: Tensor) -> Sequence[Tensor]:
        """The graphs in parts of few enough nodes."""
        return in_parts_of_nodes(rows, self.nodes)


def in_parts_of_nodes(rows: Tensor, nodes: Tensor) -> Sequence[Tensor]:
    """The graphs (R,) or (M, R) in parts of few enough nodes to be evaluated at once.

    Args:
        rows: the graphs.
        nodes: (G,), how many nodes each graph has.
    """
    sizes = nodes[rows] if rows.ndim == 1 else nodes[rows].sum(0)
    starts: list[int] = []
    held = 0
    for number, size in enumerate(sizes.tolist()):
        if number and held + size > _NODES:
            starts.append(number)
            held = 0
        held += size
    return rows.tensor_split(starts, dim=-1)


def edges_of(graph: Data) -> dict[str, Tensor]:
    """What a model without a spectrum is told of a graph: edges, and weights where it has any."""
    return {key: graph[key] for key in ("edge_index", "edge_weight") if key in graph}
