"""Jacobi polynomials without nonlinearity: `JacobiConv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class JacobiConvConfig(PeerConfig):
    """Settings of `JacobiConv`.

    Attributes:
        K: the degree of the polynomials.
        a: of the weight :math:`(1 - x)^a (1 + x)^b` that the polynomials are orthogonal for.
        b: the same.
        gamma: bound of the factors of the coefficients.
    """

    K: int = 10
    a: float = 1.0
    b: float = 1.0
    gamma: float = 1.0

    search: ClassVar = {
        "a": (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
        "b": (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
        "gamma": (0.5, 1.0, 1.5, 2.0),
        "dropout": DROPOUTS,
    }


class JacobiConv(Body):
    r"""A linear network with one filter a channel, in a Jacobi basis (Wang and Zhang, ICML 2022).

    .. math::
        Y_{:, l} = \sum_{k=0}^{K} \alpha_{k, l} P_k^{a, b}(\tilde A) \, (X W + b)_{:, l}, \qquad
        \alpha_{k, l} = \beta_{k, l} \prod_{i=1}^{k} \gamma \tanh \eta_i

    with :math:`\tilde A = D^{-1/2} A D^{-1/2}`. The products of bounded factors make high degrees
    small (the paper's polynomial coefficient decomposition).
    """

    config: JacobiConvConfig

    def __init__(self, config: JacobiConvConfig) -> None:
        super().__init__(config)
        self.input_dropout = Dropout(config.input_dropout)
        self.lin = FeatureLinear(config.in_channels, config.out_channels)
        self.dropout = Dropout(config.dropout)
        self.coefficients = nn.ParameterDict(
            {
                "beta": nn.Parameter(torch.ones(config.K + 1, config.out_channels)),
                "eta": nn.Parameter(torch.full((config.K,), 0.5493)),  # tanh of it is 1/2
            }
        )

    def weights(self) -> Tensor:
        """(K + 1, out_channels): the coefficient of each polynomial in each channel."""
        factors = self.config.gamma * self.coefficients["eta"].tanh()
        scale = torch.cat([torch.ones_like(factors[:1]), factors.cumprod(0)])
        weights: Tensor = scale[:, None] * self.coefficients["beta"]
        return weights

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        P, w = graph.matrix("sym"), self.weights()
        before = self.dropout(self.lin(dropped(x, self.input_dropout)))
        a, b = self.config.a, self.config.b
        now = (a - b) / 2 * before + (a + b + 2) / 2 * (P @ before)
        y: Tensor = w[0] * before + w[1] * now
        for k in range(2, self.config.K + 1):
            one, two, three = _recurrence(k, a, b)
            before, now = now, one * (P @ now) + two * now - three * before
            y = y + w[k] * now
        return y


def _recurrence(k: int, a: float, b: float) -> tuple[float, float, float]:
    """The factors of x P_{k-1}, P_{k-1} and -P_{k-2} in P_k."""
    s = 2 * k + a + b
    first = s * (s - 1) / (2 * k * (k + a + b))
    second = (s - 1) * (a**2 - b**2) / (2 * k * (k + a + b) * (s - 2))
    third = (k + a - 1) * (k + b - 1) * s / (k * (k + a + b) * (s - 2))
    return first, second, third


PEER = Peer(
    "jacobiconv",
    "JacobiConv",
    JacobiConv,
    JacobiConvConfig,
    formula="Y_l = sum_k alpha_kl P_k^(a,b)(A~) (X W)_l",
    reference="Wang and Zhang, ICML 2022",
    scaling="O(K E c + N F c), F features, c classes",
)
