"""Rational filters that zoom into a part of the spectrum: `CayleyNet`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Peer, PeerConfig
from nlsf.nn.baselines.convolutions import Convolutions
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, LAYERS, WIDTHS
from nlsf.nn.feature_linear import FeatureLinear
from nlsf.spectral.sparse_signal import SparseSignal


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

    search: ClassVar = {
        "K": (1, 2, 3),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
        "num_layers": LAYERS,
    }


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

    config: CayleyNetConfig

    def __init__(self, config: CayleyNetConfig) -> None:
        super().__init__(config, config.num_layers, partial(_Layer, config=config))


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


PEER = Peer(
    "cayleynet",
    "CayleyNet",
    CayleyNet,
    CayleyNetConfig,
    formula="H' = s(H W_0 + 2 Re sum_k C^k H W_k), C = (h N - i)(h N + i)^-1",
    reference="Levie, Monti, Bresson, Bronstein, TSP 2019",
    scaling="O(K J E d + K N d^2), J steps of Jacobi",
    training={"weight_decay": 5e-3},
)
