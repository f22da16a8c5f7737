"""The network in front of a filter: `Scores`."""

from __future__ import annotations

from torch import Tensor, nn

from nlsf.nn.baselines.base import PeerConfig
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


class Scores(nn.Module):
    """Features to class scores, node by node: dropout, linear, ReLU, dropout, linear.

    Methods that decouple features from propagation filter what comes out.

    Args:
        config: gives the widths and the dropouts.
    """

    def __init__(self, config: PeerConfig) -> None:
        super().__init__()
        self.input_dropout = Dropout(config.input_dropout)
        self.first = FeatureLinear(config.in_channels, config.hidden_channels)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)

    def forward(self, x: Tensor | SparseSignal) -> Tensor:
        """The scores (N, out_channels)."""
        h = self.first(dropped(x, self.input_dropout)).relu()
        scores: Tensor = self.last(self.dropout(h))
        return scores
