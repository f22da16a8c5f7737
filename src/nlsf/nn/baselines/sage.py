"""The node and the mean of its neighbours: `SAGE`."""

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


PEER = Peer(
    "sage",
    "GraphSAGE",
    SAGE,
    SAGEConfig,
    formula="H' = s(H W1 + D^-1 A H W2)",
    reference="Hamilton, Ying, Leskovec, NeurIPS 2017",
    scaling="O(E d + N d^2)",
)
