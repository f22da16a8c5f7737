"""What every peer shares: `PeerConfig`, `Body`, `Peer`, and the model around it, `PeerModel`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.models.head import Head
from nlsf.nn.readout import Readout, ReadoutName
from nlsf.spectral.sparse_signal import SparseSignal


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
