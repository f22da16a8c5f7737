"""Chebyshev convolutions: `ChebNet`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Peer, PeerConfig
from nlsf.nn.baselines.convolutions import Convolutions
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, LAYERS, WIDTHS
from nlsf.nn.feature_linear import FeatureLinear
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ChebNetConfig(PeerConfig):
    """Settings of `ChebNet`.

    Attributes:
        K: the number of Chebyshev polynomials, degrees 0 to K - 1.
        num_layers: how many convolutions.
    """

    K: int = 3
    num_layers: int = 2

    search: ClassVar = {
        "K": (2, 3),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
        "num_layers": LAYERS,
    }


class ChebNet(Convolutions):
    r"""Learned Chebyshev polynomials of the Laplacian (Defferrard et al., NeurIPS 2016).

    .. math::
        H' = \sigma\Bigl( \sum_{k=0}^{K-1} T_k(\hat L) H W_k \Bigr), \qquad
        \hat L = 2 N / \lambda_{max} - I = -D^{-1/2} A D^{-1/2} \quad (\lambda_{max} = 2)
    """

    config: ChebNetConfig

    def __init__(self, config: ChebNetConfig) -> None:
        super().__init__(config, config.num_layers, partial(_Chebyshev, K=config.K))


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


PEER = Peer(
    "chebnet",
    "ChebNet",
    ChebNet,
    ChebNetConfig,
    formula="H' = s(sum_k T_k(L^) H W_k)",
    reference="Defferrard, Bresson, Vandergheynst, NeurIPS 2016",
    scaling="O(K E d + K N d^2)",
)
