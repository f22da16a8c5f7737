"""The frame of the methods with residual layers: `ResidualBody`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import gelu

from nlsf.nn.baselines.base import Body, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class AttentionConfig(PeerConfig):
    """Settings of the methods with residual layers of attention.

    Attributes:
        num_layers: how many layers.
        heads: attention heads, which share the width.
    """

    num_layers: int = 2
    heads: int = 8

    search: ClassVar = {
        "num_layers": (1, 2, 3, 4, 5),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
    }

    @property
    def head_channels(self) -> int:
        """The width of one head."""
        return max(self.hidden_channels // self.heads, 1)


class FeedForward(nn.Module):
    """Two linear layers, GELU between them, dropout after each.

    Args:
        in_channels: width of the input.
        channels: width of the hidden layer and of the output.
        dropout: the share.
    """

    def __init__(self, in_channels: int, channels: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(in_channels, channels), nn.Linear(channels, channels)
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in range(2))

    def forward(self, h: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """The output (N, channels); the edges, which every part is given, play no role."""
        h = gelu(self.dropouts[0](self.first(h)))
        y: Tensor = self.dropouts[1](self.second(h))
        return y


class ResidualBody(Body):
    r"""Layers that are added to their input (Platonov et al., ICLR 2023).

    .. math::
        H_0 = \mathrm{GELU}(X W), \qquad
        H_{k+1} = H_k + f_k\bigl( \mathrm{LayerNorm}(H_k), E \bigr), \qquad
        Y = \mathrm{LayerNorm}(H_K) W'

    Args:
        config: the settings.
        parts: the functions :math:`f_k` of the signal (N, hidden_channels) and the edges (2, E).
    """

    together = False

    def __init__(self, config: PeerConfig, parts: Iterable[nn.Module]) -> None:
        super().__init__(config)
        d = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        self.encoder = FeatureLinear(config.in_channels, d)
        self.dropout = Dropout(config.dropout)
        self.parts = nn.ModuleList(parts)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in self.parts)
        self.last_norm = nn.LayerNorm(d)
        self.last = nn.Linear(d, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        h = gelu(self.dropout(self.encoder(dropped(x, self.input_dropout))))
        for norm, part in zip(self.norms, self.parts, strict=True):
            h = h + part(norm(h), graph.edge_index)
        y: Tensor = self.last(self.last_norm(h))
        return y
