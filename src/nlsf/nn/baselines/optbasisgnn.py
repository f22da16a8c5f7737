"""A basis that is orthonormal for the signal at hand: `OptBasisGNN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class OptBasisGNNConfig(PeerConfig):
    """Settings of `OptBasisGNN`.

    Attributes:
        K: the degree of the polynomials. Few labels need few degrees: see docs/baselines.md.
        basis_dropout: dropout between the first linear map and the filter.
    """

    input_dropout: float = 0.8
    K: int = 2
    basis_dropout: float = 0.8

    search: ClassVar = {
        "K": (2, 4, 6, 8, 10, 12, 14, 16, 18, 20),
        "hidden_channels": (64,),
        "input_dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "basis_dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    }


class OptBasisGNN(Body):
    r"""A polynomial in the basis that is orthonormal for its signal (Guo and Wei, ICML 2023).

    With :math:`h = \mathrm{ReLU}(X W_1 + b_1)_{:, c}`, channel by channel, and :math:`\hat P` the
    symmetric normalised adjacency without loops:

    .. math::
        v_0 = \frac{h}{\|h\|}, \qquad
        \beta_{k+1} v_{k+1} = \hat P v_k - \langle \hat P v_k, v_k \rangle v_k
            - \langle \hat P v_k, v_{k-1} \rangle v_{k-1}, \qquad \|v_{k+1}\| = 1, \\
        Y = \Bigl[ \sum_{k=0}^{K} \alpha_{k, c} v_k \Bigr]_c W_2 + b_2

    These are the Lanczos vectors of the signal. The filter starts as a multiple of the identity. A
    basis that is exhausted goes on with zeros. The inner products run over all nodes: it is for one
    graph, not for a batch.
    """

    config: OptBasisGNNConfig

    def __init__(self, config: OptBasisGNNConfig) -> None:
        super().__init__(config)
        self.input_dropout = Dropout(config.input_dropout)
        self.first = FeatureLinear(config.in_channels, config.hidden_channels)
        self.basis_dropout = Dropout(config.basis_dropout)
        start = torch.zeros(config.K + 1, config.hidden_channels)
        start[0] = 1
        self.coefficients = nn.Parameter(start)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        h = self.basis_dropout(self.first(dropped(x, self.input_dropout)).relu())
        vectors = orthonormal_basis(graph.matrix("sym"), h, self.config.K)
        y = sum(alpha * v for alpha, v in zip(self.coefficients, vectors, strict=True))
        scores: Tensor = self.last(self.dropout(y))
        return scores


def orthonormal_basis(P: SparseSignal, h: Tensor, K: int) -> list[Tensor]:
    """The vectors of `OptBasisGNN` for every channel.

    Args:
        P: (N, N), symmetric, of norm at most 1.
        h: (N, d).
        K: the degree.

    Returns:
        K + 1 tensors of shape (N, d), columns of norm 1, or 0 where the basis ends before.
    """
    last, before = _unit(h, 0.0), torch.zeros_like(h)
    vectors = [last]
    # What is shorter is rounding, and no direction.
    shortest = 1e3 * torch.finfo(h.dtype).eps
    for _ in range(K):
        rest = P @ last
        rest = rest - (rest * last).sum(0) * last
        rest = rest - (rest * before).sum(0) * before
        before, last = last, _unit(rest, shortest)
        vectors.append(last)
    return vectors


def _unit(h: Tensor, shortest: float) -> Tensor:
    """Columns of norm 1; 0, with gradient 0, for those that are not longer than ``shortest``."""
    square = h.square().sum(0)
    long = square > shortest**2
    return h * square.where(long, 1.0).rsqrt().where(long, 0.0)


PEER = Peer(
    "optbasisgnn",
    "OptBasisGNN",
    OptBasisGNN,
    OptBasisGNNConfig,
    formula="Y = [sum_k alpha_kc v_k(P^, h_c)]_c W2 + b2, v_k orthonormal",
    reference="Guo and Wei, ICML 2023",
    scaling="O(K E d + N d^2)",
    levels=("node",),
    training={"lr": 0.04, "psi_lr": 0.1, "weight_decay": 5e-3},
)
