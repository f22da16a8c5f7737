"""Chebyshev interpolation: `ChebNetII`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.scores import Scores
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ChebNetIIConfig(PeerConfig):
    """Settings of `ChebNetII`.

    Attributes:
        K: the degree of the polynomial.
    """

    K: int = 10

    search: ClassVar = {"K": (5, 10), "hidden_channels": (64, 128)}


class ChebNetII(Body):
    r"""A filter through learned values at the Chebyshev nodes (He, Wei, Wen, NeurIPS 2022).

    .. math::
        Y = \sum_{k=0}^{K} {}^{'} w_k T_k(\hat L) \, \mathrm{MLP}(X), \qquad
        w_k = \frac{2}{K + 1} \sum_{j=0}^{K} \gamma_j T_k(x_j), \quad
        x_j = \cos\frac{(j + 1/2) \pi}{K + 1}

    where the prime halves the first term: on the node :math:`x_j` of the axis of
    :math:`\hat L = N - I` the filter is :math:`\gamma_j`. The values start at 1, an all-pass, and
    are kept from being negative.
    """

    config: ChebNetIIConfig

    def __init__(self, config: ChebNetIIConfig) -> None:
        super().__init__(config)
        K = config.K
        self.scores = Scores(config)
        self.coefficients = nn.Parameter(torch.ones(K + 1))
        angle = (torch.arange(K + 1, dtype=torch.float64) + 0.5) * math.pi / (K + 1)
        basis = torch.cos(torch.outer(torch.arange(K + 1, dtype=torch.float64), angle))
        basis[0] /= 2
        self.interpolation = nn.Buffer(2 / (K + 1) * basis, persistent=False)

    def weights(self) -> Tensor:
        """(K + 1,): the coefficient of each Chebyshev polynomial, the first one halved."""
        return self.interpolation.to(self.coefficients.dtype) @ self.coefficients.relu()

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        P, w = graph.matrix("sym"), self.weights()
        before = self.scores(x)
        now = -(P @ before)
        y: Tensor = w[0] * before + w[1] * now
        for k in range(2, self.config.K + 1):
            before, now = now, -2 * (P @ now) - before
            y = y + w[k] * now
        return y


PEER = Peer(
    "chebnetii",
    "ChebNetII",
    ChebNetII,
    ChebNetIIConfig,
    formula="Y = sum_k w_k T_k(L^) MLP(X), w interpolates gamma at Chebyshev nodes",
    reference="He, Wei, Wen, NeurIPS 2022",
    scaling="O(K E c + N d^2)",
    # What ChebNetII's authors use on citation graphs.
    training={"psi_lr": 1e-3, "psi_weight_decay": 0.05},
)
