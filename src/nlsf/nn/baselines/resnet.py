"""Residual layers without a graph: `ResNet`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ResNetConfig(PeerConfig):
    """Settings of `ResNet`.

    Attributes:
        num_layers: residual layers.
    """

    num_layers: int = 2

    search: ClassVar = {
        "num_layers": (1, 2, 3, 4, 5),
        "hidden_channels": (*WIDTHS, 512),
        "dropout": DROPOUTS,
    }


class ResidualLayer(nn.Module):
    """Adds to its input what two linear maps make of it: the layer of the residual networks.

    Args:
        width: of input and output.
        dropout: after both maps.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
        self.first_dropout, self.last_dropout = Dropout(dropout), Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        """The sum."""
        inner = nn.functional.gelu(self.first_dropout(self.first(self.norm(h))))
        y: Tensor = h + self.last_dropout(self.last(inner))
        return y


class ResNet(Body):
    r"""A residual network on the features alone (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma(X W), \qquad
        H^{(l+1)} = H^{(l)} + \sigma\bigl( \mathrm{LN}(H^{(l)}) W_1 \bigr) W_2, \qquad
        Y = \mathrm{LN}(H^{(L)}) W_3

    with GELU for :math:`\sigma`. The other methods of that paper have layers of this shape, which
    makes it their control.
    """

    config: ResNetConfig

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        self.first = FeatureLinear(config.in_channels, width)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(
            ResidualLayer(width, config.dropout) for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        start = self.embedding(dropped(x, self.input_dropout), graph)
        h = nn.functional.gelu(self.dropout(start))
        for layer in self.layers:
            h = layer(h)
        y: Tensor = self.last(self.norm(h))
        return y

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map in front, (N, hidden_channels)."""
        del graph
        h: Tensor = self.first(x)
        return h


PEER = Peer(
    "resnet",
    "ResNet",
    ResNet,
    ResNetConfig,
    formula="H' = H + s(LN(H) W1) W2",
    reference="Platonov et al., ICLR 2023",
    scaling="O(N d^2)",
)
