"""What peers share: `Peer`, its settings and model, and the parts that several are made of.

A method that is trained is a `Body`, and `PeerModel` the model around it. A method without epochs
is a `Solver`, and `Solved` its model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from nlsf.data.dataset import Dataset, Lesson, Level
from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.pooling import Readout, ReadoutName
from nlsf.nn.networks import FeatureLinear, Head, dropped
from nlsf.peers.matrices import MatrixKind, Neighbourhood
from nlsf.spectral.sparse_signal import SparseSignal

WIDTHS = (64, 128)
"""Hidden channels."""

DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Dropout rates."""

LAYERS = (1, 2, 3, 4)
"""Layers, of the paper's 1 to 10: a small number of trials is better spent on these."""


@dataclass(frozen=True)
class PeerConfig:
    """Settings that every peer has.

    Attributes:
        in_channels: features of a node.
        out_channels: classes, or targets of a regression.
        hidden_channels: width.
        input_dropout: dropout on the features.
        dropout: dropout elsewhere.
        readout: at the graph level: how nodes become a graph.
    """

    in_channels: int
    out_channels: int
    hidden_channels: int = 64
    input_dropout: float = 0.5
    dropout: float = 0.5
    readout: ReadoutName = "mean"

    search: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """The values that the method's own paper, or the NLSF paper, searches."""


class Body(nn.Module, ABC):
    """A method: from features and a graph to one vector a node.

    A subclass takes its config and implements ``forward(x, graph)``, (N, in_channels) to
    (N, out_channels). Parameters inside of an attribute called ``coefficients`` are those of the
    filter, and train with the learning rate of Psi.

    Attributes:
        together: whether `torch.func.vmap` can compute many of them at once; PyTorch Geometric's
            message passing cannot be asked to. Such a method reads the matrices of the graph, but
            not its edges, which differ in number from one model's graphs to another's.
        pools: whether it makes graphs of nodes itself: then ``forward(x, graph, batch)`` gives
            (G, out_channels), and no readout follows.
    """

    together: ClassVar[bool] = True
    pools: ClassVar[bool] = False

    def __init__(self, config: PeerConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The outputs (N, out_channels)."""


@dataclass(frozen=True)
class Peer:
    """A method that ``--model`` can name.

    Attributes:
        name: that name.
        title: as in papers.
        method: its class.
        config: its settings.
        formula: one layer, in one line.
        reference: authors, venue, year.
        scaling: what an epoch costs, in nodes N, edges E, channels d.
        levels: ``"node"``, ``"graph"``, or both.
        training: settings of the training that its paper uses, where they are not the usual ones.
    """

    name: str
    title: str
    method: type[Body]
    config: type[PeerConfig]
    formula: str
    reference: str
    scaling: str
    levels: tuple[str, ...] = ("node", "graph")
    training: Mapping[str, Any] = field(default_factory=dict)


class PeerModel(nn.Module):
    """A method as a model for nodes, or for graphs: then readout and head follow.

    Args:
        method: the class of the method.
        config: its settings.
        level: ``"node"`` or ``"graph"``.

    Shapes:
        - x: (N, in_channels), dense or sparse
        - output: (N, out_channels), or (G, out_channels)
    """

    def __init__(
        self, method: type[Body], config: PeerConfig, level: Literal["node", "graph"] = "node"
    ) -> None:
        super().__init__()
        if level not in ("node", "graph"):
            raise ModelError(f"A peer is for nodes or graphs, not for examples that are {level}s.")
        self.config, self.level = config, level
        self.together = method.together
        self.head: Head | None = None
        if level == "graph":
            width = config.hidden_channels
            self.readout = Readout(config.readout)
            self.head = Head([width, width, config.out_channels], dropout=config.dropout)
            config = replace(config, out_channels=width)
        self.body = method(config)

    def forward(
        self,
        x: Tensor | SparseSignal,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """The outputs; arguments as in PyTorch Geometric."""
        graph = Neighbourhood.of(edge_index, x.shape[0], edge_weight, x.dtype)
        if self.head is None:
            h: Tensor = self.body(x, graph)
            return h
        if batch is None:
            batch = torch.zeros(x.shape[0], dtype=torch.int64)
        return self.forward_graphs(x, graph, batch, int(batch[-1]) + 1 if len(batch) else 0)

    def forward_graphs(
        self, x: Tensor | SparseSignal, graph: Neighbourhood, batch: Tensor, num_graphs: int
    ) -> Tensor:
        """The outputs (G, out_channels) of graphs whose matrices are at hand.

        Args:
            x: (N, in_channels).
            graph: the graphs side by side.
            batch: (N,), the graph of each node; G for nodes that pad, if there are any.
            num_graphs: G.
        """
        assert self.head is not None
        if self.body.pools:
            pooled = self.body(x, graph, batch)
        else:
            count = num_graphs if graph.inside is None else num_graphs + 1
            pooled = self.readout(self.body(x, graph).relu(), batch, count)[:num_graphs]
        out: Tensor = self.head(pooled)
        return out


class Scores(nn.Module):
    """Features to class scores, node by node: dropout, linear, ReLU, dropout, linear.

    Methods that decouple features from propagation filter what comes out.

    Args:
        config: gives the widths and the dropouts.
    """

    def __init__(self, config: PeerConfig) -> None:
        super().__init__()
        self.input_dropout = Dropout(config.input_dropout)
        self.first = FeatureLinear(config.in_channels, config.hidden_channels)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)

    def forward(self, x: Tensor | SparseSignal) -> Tensor:
        """The scores (N, out_channels)."""
        h = self.first(dropped(x, self.input_dropout)).relu()
        scores: Tensor = self.last(self.dropout(h))
        return scores


class Convolutions(Body):
    """Layers of the signal and the graph, with ReLU and dropout between them.

    Args:
        config: the settings.
        num_layers: how many.
        layer: makes one, from its widths of input and output; it is called as ``layer(h, graph)``,
            where the first one's input may be sparse.
    """

    def __init__(
        self, config: PeerConfig, num_layers: int, layer: Callable[[int, int], nn.Module]
    ) -> None:
        super().__init__(config)
        inner = [config.hidden_channels] * (num_layers - 1)
        sizes = [config.in_channels, *inner, config.out_channels]
        self.input_dropout = Dropout(config.input_dropout)
        self.layers = nn.ModuleList(layer(a, b) for a, b in pairwise(sizes))
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in inner)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        h: Tensor = self.layers[0](dropped(x, self.input_dropout), graph)
        for layer, dropout in zip(self.layers[1:], self.dropouts, strict=True):
            h = layer(dropout(h.relu()), graph)
        return h


@dataclass(frozen=True)
class NodeRowsConfig(PeerConfig):
    """Settings of methods that read a node's row of the adjacency matrix as features.

    Attributes:
        num_nodes: of the graph, which is fixed; the data decide it.
    """

    num_nodes: int = 0


def rows_of(
    graph: Neighbourhood, config: NodeRowsConfig, kind: MatrixKind = "adjacency"
) -> SparseSignal:
    """A matrix (N, N) of the graph as features, if it is of the size that the model is for."""
    if graph.num_nodes != config.num_nodes:
        raise ModelError(
            f"This model has parameters for each of {config.num_nodes} nodes, and cannot be "
            f"applied to a graph of {graph.num_nodes}."
        )
    return graph.matrix(kind)


Solve: TypeAlias = "Callable[[Dataset, Lesson, Any, int], Tensor]"
"""From data without labels, a lesson, settings and a seed to outputs (n, C) of all examples."""


@dataclass(frozen=True)
class SolverConfig:
    """Settings that every solver has.

    Attributes:
        in_channels: features of a node.
        out_channels: classes, or targets of a regression.
    """

    in_channels: int
    out_channels: int


@dataclass(frozen=True)
class Solver:
    """A method that ``--model`` can name.

    Attributes:
        name: that name.
        title: one line for the help.
        levels: what an example may be.
        config: its settings.
        solve: the method itself. The data that it gets have no labels: it learns from the lesson.
        reference: authors, venue, year.
    """

    name: str
    title: str
    levels: tuple[Level, ...]
    config: type[SolverConfig]
    solve: Solve
    reference: str = ""


class Solved(nn.Module):
    """What a solver has found: the outputs of all examples of its data, and no way to others.

    Args:
        config: the settings of the solver.

    Attributes:
        outputs: (n, out_channels); no rows until a state is loaded, which decides their number.
    """

    outputs: Tensor

    def __init__(self, config: SolverConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("outputs", torch.zeros(0, config.out_channels))

    def forward(self, rows: Tensor) -> Tensor:
        """The outputs (m, out_channels) of these examples (m,)."""
        return self.outputs[rows]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        stored = state_dict.get(f"{prefix}outputs")
        if stored is not None:  # the base class insists on the number of rows that is there
            self.outputs = self.outputs.new_zeros(len(stored), self.outputs.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *rest)
