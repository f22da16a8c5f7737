"""Generalised PageRank with learned weights: `GPRGNN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.scores import Scores
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class GPRGNNConfig(PeerConfig):
    """Settings of `GPRGNN`.

    Attributes:
        K: the degree of the polynomial.
        alpha: of the personalised PageRank that the weights start as.
    """

    K: int = 10
    alpha: float = 0.1

    search: ClassVar = {
        "alpha": (0.1, 0.2, 0.5, 0.9),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
    }


class GPRGNN(Body):
    r"""A polynomial of the normalised adjacency, with free coefficients (Chien et al., ICLR 2021).

    .. math::
        Z = \sum_{k=0}^{K} \gamma_k \tilde P^k \, \mathrm{MLP}(X), \qquad
        \gamma_k = \alpha (1 - \alpha)^k \text{ at the start}, \quad \gamma_K = (1 - \alpha)^K

    with :math:`\tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}`.
    """

    config: GPRGNNConfig

    def __init__(self, config: GPRGNNConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)
        start = config.alpha * (1 - config.alpha) ** torch.arange(config.K + 1.0)
        start[-1] = (1 - config.alpha) ** config.K
        self.coefficients = nn.Parameter(start)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        P = graph.matrix("gcn")
        z = self.scores(x)
        y: Tensor = self.coefficients[0] * z
        for k in range(1, self.config.K + 1):
            z = P @ z
            y = y + self.coefficients[k] * z
        return y


PEER = Peer(
    "gprgnn",
    "GPRGNN",
    GPRGNN,
    GPRGNNConfig,
    formula="Z = sum_k gamma_k P~^k MLP(X)",
    reference="Chien, Peng, Li, Milenkovic, ICLR 2021",
    scaling="O(K E c + N d^2)",
)
