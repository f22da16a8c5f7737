"""Convolutions that sum over neighbours: `GCN`, `SAGE`, `GIN`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.batch_norm import NodeBatchNorm
from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import DROPOUTS, LAYERS, WIDTHS, Body, Peer, PeerConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class GCNConfig(PeerConfig):
    """Settings of `GCN`.

    Attributes:
        num_layers: how many convolutions.
    """

    num_layers: int = 2

    search: ClassVar = {"hidden_channels": WIDTHS, "dropout": DROPOUTS, "num_layers": LAYERS}


class GCN(Body):
    r"""Graph convolutional network (Kipf and Welling, ICLR 2017).

    .. math::
        H' = \sigma\bigl( \tilde D^{-1/2} (A + I) \tilde D^{-1/2} H W \bigr)

    One sparse product a layer; there is no :math:`\sigma` after the last one.
    """

    config: GCNConfig

    def __init__(self, config: GCNConfig) -> None:
        super().__init__(config)
        inner = [config.hidden_channels] * (config.num_layers - 1)
        sizes = [config.in_channels, *inner, config.out_channels]
        self.input_dropout = Dropout(config.input_dropout)
        self.lins = nn.ModuleList(FeatureLinear(a, b) for a, b in pairwise(sizes))
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in inner)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        A = graph.matrix("gcn")
        h: Tensor = A @ self.lins[0](dropped(x, self.input_dropout))
        for lin, dropout in zip(self.lins[1:], self.dropouts, strict=True):
            h = A @ lin(dropout(h.relu()))
        return h


GCN_PEER = Peer(
    "gcn",
    "GCN",
    GCN,
    GCNConfig,
    formula="H' = s(D~^-1/2 (A + I) D~^-1/2 H W)",
    reference="Kipf and Welling, ICLR 2017",
    scaling="O(E d + N d^2)",
)


@dataclass(frozen=True)
class SAGEConfig(PeerConfig):
    """Settings of `SAGE`.

    Attributes:
        num_layers: how many convolutions.
    """

    num_layers: int = 2

    search: ClassVar = {"hidden_channels": WIDTHS, "dropout": DROPOUTS, "num_layers": LAYERS}


class SAGE(Body):
    r"""GraphSAGE with the mean aggregator (Hamilton, Ying, Leskovec, NeurIPS 2017).

    .. math::
        H' = \sigma\bigl( H W_1 + D^{-1} A H W_2 \bigr)

    All neighbours count: none are sampled. Rows are not brought to unit length, and there is no
    :math:`\sigma` after the last layer.
    """

    config: SAGEConfig

    def __init__(self, config: SAGEConfig) -> None:
        super().__init__(config)
        inner = [config.hidden_channels] * (config.num_layers - 1)
        sizes = [config.in_channels, *inner, config.out_channels]
        self.input_dropout = Dropout(config.input_dropout)
        self.own = nn.ModuleList(FeatureLinear(a, b) for a, b in pairwise(sizes))
        self.near = nn.ModuleList(FeatureLinear(a, b, bias=False) for a, b in pairwise(sizes))
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in inner)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        mean = graph.matrix("row")
        x = dropped(x, self.input_dropout)
        h: Tensor = self.own[0](x) + mean @ self.near[0](x)
        for own, near, dropout in zip(self.own[1:], self.near[1:], self.dropouts, strict=True):
            h = dropout(h.relu())
            h = own(h) + mean @ near(h)
        return h


SAGE_PEER = Peer(
    "sage",
    "GraphSAGE",
    SAGE,
    SAGEConfig,
    formula="H' = s(H W1 + D^-1 A H W2)",
    reference="Hamilton, Ying, Leskovec, NeurIPS 2017",
    scaling="O(E d + N d^2)",
)


@dataclass(frozen=True)
class GINConfig(PeerConfig):
    """Settings of `GIN`.

    Attributes:
        num_layers: how many convolutions.
    """

    num_layers: int = 3

    search: ClassVar = {
        "hidden_channels": (16, 32, 64, 128),
        "dropout": (0.0, 0.5),
        "num_layers": (2, 3, 4, 5),
    }


class GIN(Body):
    r"""Graph isomorphism network (Xu et al., ICLR 2019).

    .. math::
        H' = \mathrm{MLP}\bigl( (1 + \epsilon) H + A H \bigr)

    Each network has two linear layers, batch normalisation and ReLU between them and ReLU behind;
    a linear map of the last :math:`H` ends the stack, where the paper reads out all of them. The
    first linear map stands before the sum, which commutes with it, so that features may be sparse.
    """

    config: GINConfig

    def __init__(self, config: GINConfig) -> None:
        super().__init__(config)
        d = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        widths = [config.in_channels, *[d] * (config.num_layers - 1)]
        self.first = nn.ModuleList(FeatureLinear(width, d, bias=False) for width in widths)
        self.norms = nn.ModuleList(NodeBatchNorm(d) for _ in widths)
        self.second = nn.ModuleList(nn.Linear(d, d) for _ in widths)
        self.eps = nn.Parameter(torch.zeros(config.num_layers))
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(d, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        A = graph.matrix("adjacency")
        h: Tensor | SparseSignal = dropped(x, self.input_dropout)
        layers = zip(self.first, self.norms, self.second, strict=True)
        for i, (first, norm, second) in enumerate(layers):
            z = first(h)
            z = norm((1 + self.eps[i]) * z + A @ z, graph.inside)
            h = second(z.relu()).relu()
        y: Tensor = self.last(self.dropout(h))
        return y


GIN_PEER = Peer(
    "gin",
    "GIN",
    GIN,
    GINConfig,
    formula="H' = MLP((1 + e) H + A H)",
    reference="Xu, Hu, Leskovec, Jegelka, ICLR 2019",
    scaling="O(E d + N d^2)",
)
