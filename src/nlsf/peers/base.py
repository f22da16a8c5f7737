"""What peers share: a `Peer`, its settings, and `PeerModel`, the model around it.

`FilteredScores` are the peers that filter what a network made of each node; `GraphUnion` is how
models of graphs are trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Unpack, get_type_hints

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.pooling import Readout, ReadoutName
from nlsf.nn.networks import FeatureLinear, Head, dropped
from nlsf.nn.plans.plan import (
    Examples,
    Padded,
    Plan,
    PlanOptions,
    WholeGraph,
    edges_of,
    in_parts_of_nodes,
)
from nlsf.nn.plans.spectral import maybe_sparse
from nlsf.peers.matrices import GraphsOfUnion, Neighbourhood, NeighbourhoodUnion
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
        self, dataset: Examples, rows: Tensor | None = None, **options: Unpack[PlanOptions]
    ) -> Plan:
        """All nodes of the one graph, or batches of graphs; arguments as in `plan_of`."""
        dtype = options["dtype"]
        if self.level == "graph":
            return GraphUnion(dataset.graphs, dtype, self.together)
        options["progress"]("Preparing the features")
        graph = dataset.graphs[0]
        return WholeGraph(maybe_sparse(graph.x, dtype), edges_of(graph), self.together)

    @property
    def plan_key(self) -> Hashable:
        """What `plan` depends on, beside the data."""
        return self.level, self.together

    def sees_whole_graph(self, dataset: Examples) -> bool:
        """Whether a step needs all nodes: it does, where examples are nodes."""
        return self.level == "node"

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


class GraphChoice(NamedTuple):
    """Some graphs; or R of them for each of M models, padded to one number n of nodes.

    Attributes:
        x: (n, d) or (M, n, d), the features of their nodes.
        place: (n,) or (M, n), the graph of each node, 0 to R - 1; R for nodes that pad.
        graphs: their matrices.
        num_graphs: R.
    """

    x: Tensor
    place: Tensor
    graphs: GraphsOfUnion
    num_graphs: int


class GraphUnion(Plan):
    """All graphs of a data set side by side, from which batches are gathered.

    Matrices are built once for all graphs; a step picks the rows that it needs. The batches of many
    models are padded with isolated nodes, and a product with the matrices of all is one product.

    Args:
        graphs: all of them.
        dtype: of the training.
        together: whether the model can be computed with others in one call.
    """

    whole = False

    def __init__(self, graphs: Sequence[Data], dtype: torch.dtype, together: bool) -> None:
        self.together = together
        self.x = torch.cat([graph.x for graph in graphs]).to(dtype)
        nodes = [int(graph.num_nodes or 0) for graph in graphs]
        edges = [graph.edge_index for graph in graphs]
        weighted = any("edge_weight" in graph for graph in graphs)
        weights = [graph.edge_weight for graph in graphs] if weighted else None
        self.union = NeighbourhoodUnion(edges, nodes, dtype, weights)

    def select(self, rows: Tensor) -> GraphChoice:
        """The features and matrices of these graphs."""
        take = self.union.batch if rows.ndim == 1 else self.union.batches
        graphs, node, place = take(rows)
        # For rows of a matrix, faster than indexing.
        x = self.x.index_select(0, node.flatten()).unflatten(0, node.shape)
        return GraphChoice(x, place, graphs, rows.shape[-1])

    def apply(self, model: Any, chosen: GraphChoice) -> Tensor:
        """The outputs of a `PeerModel` at these graphs."""
        x, place, graphs, num_graphs = chosen
        if graphs.rows is not None:
            graphs = graphs.seen_by_one(place < num_graphs)
        out: Tensor = model.forward_graphs(x, graphs, place, num_graphs)
        return out

    def padded(self, chosen: GraphChoice) -> Padded | None:
        """The numbers of nodes."""
        graphs = chosen.graphs
        return None if graphs.rows is None else Padded(graphs.rows, graphs.num_nodes)

    def in_parts(self, rows: Tensor) -> Sequence[Tensor]:
        """The graphs (..., R) in parts of few enough nodes."""
        return in_parts_of_nodes(rows, self.union.nodes)
