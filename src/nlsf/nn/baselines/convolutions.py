"""Convolutions one after the other: `Convolutions`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import dropped
from nlsf.spectral.sparse_signal import SparseSignal


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
