"""Convolutions that sum over neighbours: `GCN`, `SAGE`, `GIN`; and `MLP`, which has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, NodeBatchNorm, dropped
from nlsf.peers.base import LAYERS, FilteredScores, Peer, PeerConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import SparseSignal


@dataclass(frozen=True)
class LayersConfig(PeerConfig):
    """Settings of methods that are a number of convolutions.

    Attributes:
        num_layers: how many.
    """

    num_layers: int = 2

    search: ClassVar = {**PeerConfig.search, "num_layers": LAYERS}


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


class MLP(FilteredScores):
    r"""Two linear layers, node by node, which never look at an edge.

    .. math::
        Y = \mathrm{ReLU}(X W_1) W_2

    At the graph level readout and head follow: whatever a method gains over this, it has from the
    graph.
    """

    name, title = "mlp", "MLP"
    formula = "Y = s(X W1) W2"
    reference = "control without a graph"
    scaling = "O(N d^2)"

    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """The scores as they are."""
        del graph
        return h


class GCN(Convolutions):
    r"""Graph convolutional network (Kipf and Welling, ICLR 2017).

    .. math::
        H' = \sigma\bigl( \tilde D^{-1/2} (A + I) \tilde D^{-1/2} H W \bigr)

    One sparse product a layer; there is no :math:`\sigma` after the last one.
    """

    name, title = "gcn", "GCN"
    formula = "H' = s(D~^-1/2 (A + I) D~^-1/2 H W)"
    reference = "Kipf and Welling, ICLR 2017"
    scaling = "O(E d + N d^2)"
    config: LayersConfig

    def __init__(self, config: LayersConfig) -> None:
        super().__init__(config, config.num_layers)
        self.lins = self.for_each(FeatureLinear)

    def layer(self, i: int, h: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """One convolution."""
        out: Tensor = graph.matrix("gcn") @ self.lins[i](h)
        return out


class SAGE(Convolutions):
    r"""GraphSAGE with the mean aggregator (Hamilton, Ying, Leskovec, NeurIPS 2017).

    .. math::
        H' = \sigma\bigl( H W_1 + D^{-1} A H W_2 \bigr)

    All neighbours count: none are sampled. Rows are not brought to unit length, and there is no
    :math:`\sigma` after the last layer.
    """

    name, title = "sage", "GraphSAGE"
    formula = "H' = s(H W1 + D^-1 A H W2)"
    reference = "Hamilton, Ying, Leskovec, NeurIPS 2017"
    scaling = "O(E d + N d^2)"
    config: LayersConfig

    def __init__(self, config: LayersConfig) -> None:
        super().__init__(config, config.num_layers)
        self.own = self.for_each(FeatureLinear)
        self.near = self.for_each(partial(FeatureLinear, bias=False))

    def layer(self, i: int, h: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """One convolution."""
        out: Tensor = self.own[i](h) + graph.matrix("row") @ self.near[i](h)
        return out


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


class GIN(Peer):
    r"""Graph isomorphism network (Xu et al., ICLR 2019).

    .. math::
        H' = \mathrm{MLP}\bigl( (1 + \epsilon) H + A H \bigr)

    Each network has two linear layers, batch normalisation and ReLU between them and ReLU behind;
    a linear map of the last :math:`H` ends the stack, where the paper reads out all of them. The
    first linear map stands before the sum, which commutes with it, so that features may be sparse.
    """

    name, title = "gin", "GIN"
    formula = "H' = MLP((1 + e) H + A H)"
    reference = "Xu, Hu, Leskovec, Jegelka, ICLR 2019"
    scaling = "O(E d + N d^2)"
    config: GINConfig

    def __init__(self, config: GINConfig) -> None:
        super().__init__(config)
        d = config.hidden_channels
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
