"""Rational filters by recursion: `ARMA`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ARMAConfig(PeerConfig):
    """Settings of `ARMA`.

    Attributes:
        stacks: parallel recursions, whose mean is taken.
        iterations: steps of each.
    """

    stacks: int = 2
    iterations: int = 2

    search: ClassVar = {
        "stacks": (1, 2, 3),
        "iterations": (1, 2, 3),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
    }


class ARMA(Body):
    r"""Auto-regressive moving-average filters (Bianchi et al., TPAMI 2021), two layers.

    .. math::
        H_s^{(t+1)} = \sigma\bigl( \tilde A H_s^{(t)} W_s + X V_s \bigr), \qquad
        Y = \frac{1}{S} \sum_{s=1}^{S} H_s^{(T)}, \quad \tilde A = D^{-1/2} A D^{-1/2}

    Without :math:`\sigma`, and where it converges, such a recursion tends to a filter of one pole,
    and the mean of S of them to a rational filter of order S. A stack has one W for its first step
    and one for all others; the last layer has no :math:`\sigma` at its end.
    """

    config: ARMAConfig

    def __init__(self, config: ARMAConfig) -> None:
        super().__init__(config)
        sizes = (config.in_channels, config.hidden_channels, config.out_channels)
        self.input_dropout = Dropout(config.input_dropout)
        self.dropout = Dropout(config.dropout)
        self.first, self.last = (_Mean(a, b, config) for a, b in pairwise(sizes))
        self.first.activation = nn.ReLU()

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """Both layers; the last one without activation at its end."""
        P = graph.matrix("sym")
        h = self.first(dropped(x, self.input_dropout), P)
        y: Tensor = self.last(self.dropout(h), P)
        return y


class _Mean(nn.Module):
    """One layer: the mean of its stacks."""

    def __init__(self, in_channels: int, out_channels: int, config: ARMAConfig) -> None:
        super().__init__()
        self.activation: nn.Module = nn.Identity()
        self.stacks = nn.ModuleList(
            _Stack(in_channels, out_channels, config.iterations) for _ in range(config.stacks)
        )

    def forward(self, x: Tensor | SparseSignal, P: SparseSignal) -> Tensor:
        return torch.stack([self.activation(stack(x, P)) for stack in self.stacks]).mean(0)


class _Stack(nn.Module):
    """One recursion."""

    def __init__(self, in_channels: int, out_channels: int, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations
        self.first = FeatureLinear(in_channels, out_channels, bias=False)
        self.skip = FeatureLinear(in_channels, out_channels)
        self.again: nn.Linear | None = None
        if iterations > 1:
            self.again = nn.Linear(out_channels, out_channels, bias=False)

    def forward(self, x: Tensor | SparseSignal, P: SparseSignal) -> Tensor:
        skip = self.skip(x)
        h: Tensor = P @ self.first(x) + skip
        for _ in range(self.iterations - 1):
            assert self.again is not None
            h = P @ self.again(h.relu()) + skip
        return h


PEER = Peer(
    "arma",
    "ARMA",
    ARMA,
    ARMAConfig,
    formula="H' = s(A~ H W + X V), mean over stacks",
    reference="Bianchi, Grattarola, Livi, Alippi, TPAMI 2021",
    scaling="O(S T E d + S T N d^2)",
)
