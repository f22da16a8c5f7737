"""Filters that are polynomials of a fixed basis: Chebyshev, Bernstein, Jacobi, and powers.

`ChebNet`, `ChebNetII`, `BernNet`, `JacobiConv`, `GPRGNN`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import DROPOUTS, FilteredScores, Peer, PeerConfig
from nlsf.peers.convolutions import Convolutions, LayersConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import SparseSignal


def combined(weights: Tensor, terms: Iterable[Tensor]) -> Tensor:
    """The sum of terms (N, d), each times its weight (K,) or its weights (K, d)."""
    weighted = (w * term for w, term in zip(weights, terms, strict=True))
    total: Tensor = reduce(torch.add, weighted)
    return total


def powers(P: SparseSignal, h: Tensor, K: int) -> Iterator[Tensor]:
    """h, P h, ..., P^K h."""
    yield h
    for _ in range(K):
        h = P @ h
        yield h


@dataclass(frozen=True)
class ChebNetConfig(PeerConfig):
    """Settings of `ChebNet`.

    Attributes:
        K: the number of Chebyshev polynomials, degrees 0 to K - 1.
        num_layers: how many convolutions.
    """

    K: int = 3
    num_layers: int = 2

    search: ClassVar = {"K": (2, 3), **LayersConfig.search}


class ChebNet(Convolutions):
    r"""Learned Chebyshev polynomials of the Laplacian (Defferrard et al., NeurIPS 2016).

    .. math::
        H' = \sigma\Bigl( \sum_{k=0}^{K-1} T_k(\hat L) H W_k \Bigr), \qquad
        \hat L = 2 N / \lambda_{max} - I = -D^{-1/2} A D^{-1/2} \quad (\lambda_{max} = 2)
    """

    name, title = "chebnet", "ChebNet"
    formula = "H' = s(sum_k T_k(L^) H W_k)"
    reference = "Defferrard, Bresson, Vandergheynst, NeurIPS 2016"
    scaling = "O(K E d + K N d^2)"
    config: ChebNetConfig

    def __init__(self, config: ChebNetConfig) -> None:
        super().__init__(config, config.num_layers)
        self.layers = self.for_each(partial(_Chebyshev, K=config.K))


class _Chebyshev(nn.Module):
    """One convolution."""

    def __init__(self, in_channels: int, out_channels: int, K: int) -> None:
        super().__init__()
        self.lins = nn.ModuleList(
            FeatureLinear(in_channels, out_channels, bias=k == 0) for k in range(K)
        )

    def forward(self, h: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The sum by Clenshaw's recurrence, which needs the channels of the output only."""
        P = graph.matrix("sym")
        terms = [lin(h) for lin in self.lins]
        ahead = two = terms[0] * 0
        for term in reversed(terms[1:]):
            # b_k = c_k + 2 L^ b_{k+1} - b_{k+2}, with L^ = -P
            ahead, two = term - 2 * (P @ ahead) - two, ahead
        y: Tensor = terms[0] - P @ ahead - two
        return y


@dataclass(frozen=True)
class ChebNetIIConfig(PeerConfig):
    """Settings of `ChebNetII`.

    Attributes:
        K: the degree of the polynomial.
    """

    K: int = 10

    search: ClassVar = {"K": (5, 10), "hidden_channels": (64, 128)}


class ChebNetII(FilteredScores):
    r"""A filter through learned values at the Chebyshev nodes (He, Wei, Wen, NeurIPS 2022).

    .. math::
        Y = \sum_{k=0}^{K} {}^{'} w_k T_k(\hat L) \, \mathrm{MLP}(X), \qquad
        w_k = \frac{2}{K + 1} \sum_{j=0}^{K} \gamma_j T_k(x_j), \quad
        x_j = \cos\frac{(j + 1/2) \pi}{K + 1}

    where the prime halves the first term: on the node :math:`x_j` of the axis of
    :math:`\hat L = N - I` the filter is :math:`\gamma_j`. The values start at 1, an all-pass, and
    are kept from being negative.
    """

    name, title = "chebnetii", "ChebNetII"
    formula = "Y = sum_k w_k T_k(L^) MLP(X), w interpolates gamma at Chebyshev nodes"
    reference = "He, Wei, Wen, NeurIPS 2022"
    scaling = "O(K E c + N d^2)"
    preset: ClassVar = {"psi_lr": 1e-3, "psi_weight_decay": 0.05}  # as ChebNetII's authors
    config: ChebNetIIConfig

    def __init__(self, config: ChebNetIIConfig) -> None:
        super().__init__(config)
        K = config.K
        self.coefficients = nn.Parameter(torch.ones(K + 1))
        angle = (torch.arange(K + 1, dtype=torch.float64) + 0.5) * math.pi / (K + 1)
        basis = torch.cos(torch.outer(torch.arange(K + 1, dtype=torch.float64), angle))
        basis[0] /= 2
        self.interpolation = nn.Buffer(2 / (K + 1) * basis, persistent=False)

    def weights(self) -> Tensor:
        """(K + 1,): the coefficient of each Chebyshev polynomial, the first one halved."""
        return self.interpolation.to(self.coefficients.dtype) @ self.coefficients.relu()

    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """The sum over all polynomials."""
        return combined(self.weights(), self.polynomials(graph.matrix("sym"), h))

    def polynomials(self, P: SparseSignal, h: Tensor) -> Iterator[Tensor]:
        """T_0(-P) h, ..., T_K(-P) h."""
        before, now = h, -(P @ h)
        yield from (before, now)
        for _ in range(2, self.config.K + 1):
            before, now = now, -2 * (P @ now) - before
            yield now


@dataclass(frozen=True)
class BernNetConfig(PeerConfig):
    """Settings of `BernNet`.

    Attributes:
        K: the degree of the polynomials.
    """

    K: int = 10

    search: ClassVar = {"K": (10,), "hidden_channels": (64, 128)}


class BernNet(FilteredScores):
    r"""A filter in the Bernstein basis, whose values cannot be negative (He et al., NeurIPS 2021).

    .. math::
        Y = \sum_{k=0}^{K} \theta_k \frac{1}{2^K} \binom{K}{k} (2I - N)^{K-k} N^k \,
            \mathrm{MLP}(X), \qquad \theta_k \ge 0

    The filter is one everywhere for :math:`\theta = 1`, the start. Horner's rule in N takes 2 K
    products, where summing the terms one by one would take K (K + 3) / 2.
    """

    name, title = "bernnet", "BernNet"
    formula = "Y = sum_k theta_k 2^-K binom(K, k) (2I - N)^(K-k) N^k MLP(X)"
    reference = "He, Wei, Huang, Xu, NeurIPS 2021"
    scaling = "O(K E c + N d^2)"
    preset: ClassVar = {"psi_lr": 1e-3, "psi_weight_decay": 0.05}  # as ChebNetII's authors
    config: BernNetConfig

    def __init__(self, config: BernNetConfig) -> None:
        super().__init__(config)
        self.coefficients = nn.Parameter(torch.ones(config.K + 1))

    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """The sum over all polynomials."""
        P, K, theta = graph.matrix("sym"), self.config.K, self.coefficients.relu()
        low = [h]  # (2I - N)^i H = (I + P)^i H
        for _ in range(K):
            low.append(low[-1] + P @ low[-1])
        # Horner in N = I - P, from the highest power down.
        y = theta[K] * h
        for k in range(K - 1, -1, -1):
            y = y - P @ y + math.comb(K, k) * theta[k] * low[K - k]
        filtered: Tensor = y / 2**K
        return filtered


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


class JacobiConv(Peer):
    r"""A linear network with one filter a channel, in a Jacobi basis (Wang and Zhang, ICML 2022).

    .. math::
        Y_{:, l} = \sum_{k=0}^{K} \alpha_{k, l} P_k^{a, b}(\tilde A) \, (X W + b)_{:, l}, \qquad
        \alpha_{k, l} = \beta_{k, l} \prod_{i=1}^{k} \gamma \tanh \eta_i

    with :math:`\tilde A = D^{-1/2} A D^{-1/2}`. The products of bounded factors make high degrees
    small (the paper's polynomial coefficient decomposition).
    """

    name, title = "jacobiconv", "JacobiConv"
    formula = "Y_l = sum_k alpha_kl P_k^(a,b)(A~) (X W)_l"
    reference = "Wang and Zhang, ICML 2022"
    scaling = "O(K E c + N F c), F features, c classes"
    config: JacobiConvConfig

    def __init__(self, config: JacobiConvConfig) -> None:
        super().__init__(config)
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
        h = self.dropout(self.lin(dropped(x, self.input_dropout)))
        return combined(self.weights(), self.polynomials(graph.matrix("sym"), h))

    def polynomials(self, P: SparseSignal, h: Tensor) -> Iterator[Tensor]:
        """P_0(P) h, ..., P_K(P) h."""
        a, b = self.config.a, self.config.b
        before, now = h, (a - b) / 2 * h + (a + b + 2) / 2 * (P @ h)
        yield from (before, now)
        for k in range(2, self.config.K + 1):
            one, two, three = _recurrence(k, a, b)
            before, now = now, one * (P @ now) + two * now - three * before
            yield now


def _recurrence(k: int, a: float, b: float) -> tuple[float, float, float]:
    """The factors of x P_{k-1}, P_{k-1} and -P_{k-2} in P_k."""
    s = 2 * k + a + b
    first = s * (s - 1) / (2 * k * (k + a + b))
    second = (s - 1) * (a**2 - b**2) / (2 * k * (k + a + b) * (s - 2))
    third = (k + a - 1) * (k + b - 1) * s / (k * (k + a + b) * (s - 2))
    return first, second, third


@dataclass(frozen=True)
class GPRGNNConfig(PeerConfig):
    """Settings of `GPRGNN`.

    Attributes:
        K: the degree of the polynomial.
        alpha: of the personalised PageRank that the weights start as.
    """

    K: int = 10
    alpha: float = 0.1

    search: ClassVar = {"alpha": (0.1, 0.2, 0.5, 0.9), **PeerConfig.search}


class GPRGNN(FilteredScores):
    r"""A polynomial of the normalised adjacency, with free coefficients (Chien et al., ICLR 2021).

    .. math::
        Z = \sum_{k=0}^{K} \gamma_k \tilde P^k \, \mathrm{MLP}(X), \qquad
        \gamma_k = \alpha (1 - \alpha)^k \text{ at the start}, \quad \gamma_K = (1 - \alpha)^K

    with :math:`\tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}`.
    """

    name, title = "gprgnn", "GPRGNN"
    formula = "Z = sum_k gamma_k P~^k MLP(X)"
    reference = "Chien, Peng, Li, Milenkovic, ICLR 2021"
    scaling = "O(K E c + N d^2)"
    config: GPRGNNConfig

    def __init__(self, config: GPRGNNConfig) -> None:
        super().__init__(config)
        start = config.alpha * (1 - config.alpha) ** torch.arange(config.K + 1.0)
        start[-1] = (1 - config.alpha) ** config.K
        self.coefficients = nn.Parameter(start)

    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """The sum over all powers."""
        return combined(self.coefficients, powers(graph.matrix("gcn"), h, self.config.K))
