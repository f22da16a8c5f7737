"""What peers share: `Peer`, its settings and model, and the parts that several are made of.

A method that is trained is a `Peer`, and `PeerModel` the model around it. A method without epochs
is a `Solver`, and `Solved` its model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias, get_type_hints

import torch
from torch import Tensor, nn

from nlsf.data.dataset import Dataset, Lesson, Level
from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.pooling import Readout, ReadoutName
from nlsf.nn.networks import FeatureLinear, Head, dropped
from nlsf.nn.plans.plan import Examples, Plan, WholeGraph, edges_of
from nlsf.nn.plans.spectral import maybe_sparse
from nlsf.peers.matrices import MatrixKind, Neighbourhood
from nlsf.peers.plans import GraphUnion, KnownOutputs
from nlsf.spectral.kernels.sparse_signal import SparseSignal

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

    search: ClassVar[Mapping[str, Sequence[Any]]] = {"hidden_channels": WIDTHS, "dropout": DROPOUTS}
    """The values that the method's own paper, or the NLSF paper, searches."""


@dataclass(frozen=True)
class LayersConfig(PeerConfig):
    """Settings of methods that are a number of convolutions.

    Attributes:
        num_layers: how many.
    """

    num_layers: int = 2

    search: ClassVar = {**PeerConfig.search, "num_layers": LAYERS}


class Peer(nn.Module, ABC):
    """A method that ``--model`` can name: from features and a graph to one vector a node.

    A subclass says what it is, annotates ``config`` with the class of its settings, and implements
    ``forward(x, graph)``, (N, in_channels) to (N, out_channels). Parameters inside of an attribute
    called ``coefficients`` are those of the filter, and train with the learning rate of Psi.

    Attributes:
        name: what ``--model`` says.
        title: as in papers.
        formula: one layer, in one line.
        reference: authors, venue, year.
        scaling: what an epoch costs, in nodes N, edges E, channels d.
        for_levels: ``"node"``, ``"graph"``, or both.
        preset: settings of the training that its paper uses, where they are not the usual ones.
        together: whether `torch.func.vmap` can compute many of them at once; PyTorch Geometric's
            message passing cannot be asked to. Such a method reads the matrices of the graph, but
            not its edges, which differ in number from one model's graphs to another's.
        pools: whether it makes graphs of nodes itself: then ``forward(x, graph, batch)`` gives
            (G, out_channels), and no readout follows.
        config: its settings.
        input_dropout: acts on the features, before everything else.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    reference: ClassVar[str]
    scaling: ClassVar[str]
    for_levels: ClassVar[tuple[str, ...]] = ("node", "graph")
    preset: ClassVar[Mapping[str, Any]] = {}
    together: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    config: PeerConfig

    def __init__(self, config: PeerConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dropout = Dropout(config.input_dropout)

    @classmethod
    def settings(cls) -> type[PeerConfig]:
        """The class of its settings."""
        found: type[PeerConfig] = get_type_hints(cls)["config"]
        return found

    @abstractmethod
    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The outputs (N, out_channels)."""


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
        self, method: type[Peer], config: PeerConfig, level: Literal["node", "graph"] = "node"
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

    def plan(
        self,
        dataset: Examples,
        rows: Tensor | None = None,
        *,
        dtype: torch.dtype,
        progress: Callable[[str], None],
        **options: Any,
    ) -> Plan:
        """All nodes of the one graph, or batches of graphs; arguments as in `plan_of`."""
        if self.level == "graph":
            return GraphUnion(dataset.graphs, dtype, self.together)
        progress("Preparing the features")
        graph = dataset.graphs[0]
        return WholeGraph(maybe_sparse(graph.x, dtype), edges_of(graph), self.together)

    @property
    def plan_key(self) -> Hashable:
        """What `plan` depends on, beside the data."""
        return self.level, self.together

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
    """Features to class scores, node by node: linear, ReLU, dropout, linear.

    Args:
        config: gives the widths and the dropout.
    """

    def __init__(self, config: PeerConfig) -> None:
        super().__init__()
        self.first = FeatureLinear(config.in_channels, config.hidden_channels)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)

    def forward(self, x: Tensor | SparseSignal) -> Tensor:
        """The scores (N, out_channels)."""
        scores: Tensor = self.last(self.dropout(self.first(x).relu()))
        return scores


class FilteredScores(Peer):
    """Scores of each node by itself, and then a filter: features and propagation are decoupled."""

    def __init__(self, config: PeerConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        return self.filtered(self.scores(dropped(x, self.input_dropout)), graph)

    @abstractmethod
    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """The filter of scores (N, out_channels)."""


def combined(weights: Tensor, terms: Iterable[Tensor]) -> Tensor:
    """The sum of terms (N, d), each times its weight (K,) or its weights (K, d)."""
    weighted = (w * term for w, term in zip(weights, terms, strict=True))
    total: Tensor = reduce(torch.add, weighted)
    return total


def powers(P: SparseSignal, h: Tensor, K: int) -> Iterator[Tensor]:
    """h, P h, ..., P^K h."""
    yield h
    for _ in range(K):
        h = P @ h
        yield h


class Convolutions(Peer):
    """Layers of the signal and the graph, with ReLU and dropout between them.

    A subclass makes its parameters by `for_each`, under the name ``layers`` if they are modules
    that take a signal and a graph; otherwise it says in `layer` what one computes.

    Args:
        config: the settings.
        num_layers: how many.

    Attributes:
        widths: input and output of every layer.
    """

    layers: nn.ModuleList

    def __init__(self, config: PeerConfig, num_layers: int) -> None:
        super().__init__(config)
        inner = [config.hidden_channels] * (num_layers - 1)
        self.widths = list(pairwise([config.in_channels, *inner, config.out_channels]))
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in inner)

    def for_each(self, make: Callable[[int, int], nn.Module]) -> nn.ModuleList:
        """What this makes of the widths of every layer."""
        return nn.ModuleList(make(a, b) for a, b in self.widths)

    def layer(self, i: int, h: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """Layer i, from 0; the input of the first may be sparse."""
        out: Tensor = self.layers[i](h, graph)
        return out

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        h = self.layer(0, dropped(x, self.input_dropout), graph)
        for i, dropout in enumerate(self.dropouts, start=1):
            h = self.layer(i, dropout(h.relu()), graph)
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

    def plan(self, dataset: Examples, rows: Tensor | None = None, **options: Any) -> Plan:
        """Nothing is prepared, for the outputs are known."""
        return KnownOutputs()

    def sees_whole_graph(self, dataset: Examples) -> bool:
        """Whether no step is cheaper for fewer examples: there are no steps."""
        return True

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        stored = state_dict.get(f"{prefix}outputs")
        if stored is not None:  # the base class insists on the number of rows that is there
            self.outputs = self.outputs.new_zeros(len(stored), self.outputs.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *rest)
