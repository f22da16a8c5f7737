"""GCN: `GCN`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, LAYERS, WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
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


PEER = Peer(
    "gcn",
    "GCN",
    GCN,
    GCNConfig,
    formula="H' = s(D~^-1/2 (A + I) D~^-1/2 H W)",
    reference="Kipf and Welling, ICLR 2017",
    scaling="O(E d + N d^2)",
)
