"""Filters that are rational, or come near to one by recursion: `CayleyNet`, `ARMA`, `APPNP`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import FilteredScores, Peer, PeerConfig
from nlsf.peers.convolutions import Convolutions, LayersConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import SparseSignal


@dataclass(frozen=True)
class CayleyNetConfig(PeerConfig):
    """Settings of `CayleyNet`.

    Attributes:
        K: the degree of the Cayley polynomials.
        jacobi: steps of the Jacobi iteration, in place of an inverse.
        num_layers: how many convolutions.
    """

    K: int = 1
    jacobi: int = 5
    num_layers: int = 2

    search: ClassVar = {"K": (1, 2, 3), **LayersConfig.search}


class CayleyNet(Convolutions):
    r"""Cayley polynomials of the Laplacian (Levie, Monti, Bresson, Bronstein, TSP 2019).

    .. math::
        H' = \sigma\Bigl( H W_0 + 2 \mathrm{Re} \sum_{k=1}^{K} C^k H W_k \Bigr), \qquad
        C = (h N - i I) (h N + i I)^{-1}

    with complex :math:`W_k` for k > 0 and a learned zoom :math:`h > 0` a layer, which starts at 1.
    The inverse is replaced by steps of Jacobi: with :math:`P = I - N` and
    :math:`b = (h N - i I) z / (h + i)`, the product :math:`C z` is the limit of

    .. math::
        y^{(t+1)} = \frac{h}{h + i} P y^{(t)} + b, \qquad y^{(0)} = b

    whose error shrinks by :math:`h / \sqrt{h^2 + 1}` a step, or faster.
    """

    name, title = "cayleynet", "CayleyNet"
    formula = "H' = s(H W_0 + 2 Re sum_k C^k H W_k), C = (h N - i)(h N + i)^-1"
    reference = "Levie, Monti, Bresson, Bronstein, TSP 2019"
    scaling = "O(K J E d + K N d^2), J steps of Jacobi"
    preset: ClassVar = {"weight_decay": 5e-3}
    config: CayleyNetConfig

    def __init__(self, config: CayleyNetConfig) -> None:
        super().__init__(config, config.num_layers)
        self.layers = self.for_each(partial(_Layer, config=config))


class _Layer(nn.Module):
    """One convolution; a complex signal is its real and imaginary channels side by side."""

    def __init__(self, in_channels: int, out_channels: int, config: CayleyNetConfig) -> None:
        super().__init__()
        self.jacobi = config.jacobi
        self.real = FeatureLinear(in_channels, out_channels)
        self.powers = nn.ModuleList(
            FeatureLinear(in_channels, 2 * out_channels, bias=False) for _ in range(config.K)
        )
        self.coefficients = nn.Parameter(torch.zeros(()))  # the logarithm of the zoom

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        P = graph.matrix("sym")
        # Horner's scheme applies C to the channels of the output, K times in all.
        *lower, z = (lin(x) for lin in self.powers)
        for term in reversed(lower):
            z = term + self._cayley(z, P)
        filtered, _ = self._cayley(z, P).chunk(2, dim=-1)
        y: Tensor = self.real(x) + 2 * filtered
        return y

    def _cayley(self, z: Tensor, P: SparseSignal) -> Tensor:
        h = self.coefficients.exp()
        scale = 1 / (h * h + 1)
        mix = h * h * scale, -h * scale  # h / (h + i)
        b = _times(z, (h * h - 1) * scale, -2 * h * scale) - _times(P @ z, *mix)
        y = b
        for _ in range(self.jacobi):
            y = _times(P @ y, *mix) + b
        return y


def _times(z: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
    """A complex signal times a complex number."""
    a, b = z.chunk(2, dim=-1)
    return torch.cat([real * a - imaginary * b, real * b + imaginary * a], dim=-1)


@dataclass(frozen=True)
class ARMAConfig(PeerConfig):
    """Settings of `ARMA`.

    Attributes:
        stacks: parallel recursions, whose mean is taken.
        iterations: steps of each.
    """

    stacks: int = 2
    iterations: int = 2

    search: ClassVar = {"stacks": (1, 2, 3), "iterations": (1, 2, 3), **PeerConfig.search}


class ARMA(Peer):
    r"""Auto-regressive moving-average filters (Bianchi et al., TPAMI 2021), two layers.

    .. math::
        H_s^{(t+1)} = \sigma\bigl( \tilde A H_s^{(t)} W_s + X V_s \bigr), \qquad
        Y = \frac{1}{S} \sum_{s=1}^{S} H_s^{(T)}, \quad \tilde A = D^{-1/2} A D^{-1/2}

    Without :math:`\sigma`, and where it converges, such a recursion tends to a filter of one pole,
    and the mean of S of them to a rational filter of order S. A stack has one W for its first step
    and one for all others; the last layer has no :math:`\sigma` at its end.
    """

    name, title = "arma", "ARMA"
    formula = "H' = s(A~ H W + X V), mean over stacks"
    reference = "Bianchi, Grattarola, Livi, Alippi, TPAMI 2021"
    scaling = "O(S T E d + S T N d^2)"
    config: ARMAConfig

    def __init__(self, config: ARMAConfig) -> None:
        super().__init__(config)
        sizes = (config.in_channels, config.hidden_channels, config.out_channels)
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


@dataclass(frozen=True)
class APPNPConfig(PeerConfig):
    """Settings of `APPNP`.

    Attributes:
        K: steps of the power iteration.
        alpha: probability to return to the start.
    """

    K: int = 10
    alpha: float = 0.1

    search: ClassVar = {"alpha": (0.1, 0.2, 0.5, 0.9), **PeerConfig.search}

    def __post_init__(self) -> None:
        if self.K < 1 or not 0 < self.alpha <= 1:
            raise ModelError(f"APPNP needs K >= 1 and 0 < alpha <= 1, not {self.K}, {self.alpha}.")


class APPNP(FilteredScores):
    r"""Predict, then propagate (Gasteiger, Bojchevski, Guennemann, ICLR 2019).

    .. math::
        Z^{(k+1)} = (1 - \alpha) \tilde P Z^{(k)} + \alpha H, \qquad Z^{(0)} = H = \mathrm{MLP}(X)

    with :math:`\tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}`: a fixed low-pass polynomial.
    Edges have no dropout.
    """

    name, title = "appnp", "APPNP"
    formula = "Z' = (1 - a) P~ Z + a MLP(X)"
    reference = "Gasteiger, Bojchevski, Guennemann, ICLR 2019"
    scaling = "O(K E c + N d^2)"
    config: APPNPConfig

    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """All steps."""
        P, a, z = graph.matrix("gcn"), self.config.alpha, h
        for _ in range(self.config.K):
            z = (1 - a) * (P @ z) + a * h
        return z
