"""Bernstein polynomials: `BernNet`."""

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
class BernNetConfig(PeerConfig):
    """Settings of `BernNet`.

    Attributes:
        K: the degree of the polynomials.
    """

    K: int = 10

    search: ClassVar = {"K": (10,), "hidden_channels": (64, 128)}


class BernNet(Body):
    r"""A filter in the Bernstein basis, whose values cannot be negative (He et al., NeurIPS 2021).

    .. math::
        Y = \sum_{k=0}^{K} \theta_k \frac{1}{2^K} \binom{K}{k} (2I - N)^{K-k} N^k \,
            \mathrm{MLP}(X), \qquad \theta_k \ge 0

    The filter is one everywhere for :math:`\theta = 1`, the start. Horner's rule in N takes 2 K
    products, where summing the terms one by one would take K (K + 3) / 2.
    """

    config: BernNetConfig

    def __init__(self, config: BernNetConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)
        self.coefficients = nn.Parameter(torch.ones(config.K + 1))

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        P, K, theta = graph.matrix("sym"), self.config.K, self.coefficients.relu()
        powers = [self.scores(x)]  # (2I - N)^i H = (I + P)^i H
        for _ in range(K):
            powers.append(powers[-1] + P @ powers[-1])
        # Horner in N = I - P, from the highest power down.
        y = theta[K] * powers[0]
        for k in range(K - 1, -1, -1):
            y = y - P @ y + math.comb(K, k) * theta[k] * powers[K - k]
        filtered: Tensor = y / 2**K
        return filtered


PEER = Peer(
    "bernnet",
    "BernNet",
    BernNet,
    BernNetConfig,
    formula="Y = sum_k theta_k 2^-K binom(K, k) (2I - N)^(K-k) N^k MLP(X)",
    reference="He, Wei, Huang, Xu, NeurIPS 2021",
    scaling="O(K E c + N d^2)",
    # What ChebNetII's authors use on citation graphs.
    training={"psi_lr": 1e-3, "psi_weight_decay": 0.05},
)
