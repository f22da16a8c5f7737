"""Selection among neighbourhoods: `FSGNN`."""

from __future__ import annotations

from dataclasses import dataclass
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
class FSGNNConfig(PeerConfig):
    """Settings of `FSGNN`.

    Attributes:
        hops: how far it looks.
        normalize: brings every row of a neighbourhood to unit length.
    """

    hops: int = 3
    normalize: bool = True

    search: ClassVar = {
        "hops": (3, 8),
        "normalize": (False, True),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
    }


class FSGNN(Body):
    r"""Features of every hop, with and without loops, weighed (Maurya, Liu, Murata, 2021).

    .. math::
        Y = \sigma\Bigl( \bigoplus_{j} \alpha_j \,
            \frac{F_j W_j}{\lVert F_j W_j \rVert} \Bigr) W, \qquad
        F_j \in \{ X, P X, \tilde P X, \dots, P^K X, \tilde P^K X \}, \quad
        \alpha = \mathrm{softmax}(a)

    where :math:`\bigoplus` puts channels side by side, the norm is that of a row,
    :math:`P = D^{-1/2} A D^{-1/2}`, and :math:`\tilde P` is the same with loops.
    """

    config: FSGNNConfig

    def __init__(self, config: FSGNNConfig) -> None:
        super().__init__(config)
        count, width = 1 + 2 * config.hops, config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        self.lins = nn.ModuleList(
            FeatureLinear(config.in_channels, width, bias=False) for _ in range(count)
        )
        self.biases = nn.Parameter(torch.zeros(count, width))
        self.coefficients = nn.Parameter(torch.ones(count))
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(count * width, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        x = dropped(x, self.input_dropout)
        maps = [lin(x) for lin in self.lins]
        hops = self.config.hops
        seen = [maps[0]]
        seen += _powers(graph.matrix("sym"), maps[1 : 1 + hops])
        seen += _powers(graph.matrix("gcn"), maps[1 + hops :])
        h = torch.stack(seen, dim=1) + self.biases  # (N, 1 + 2 hops, d)
        if self.config.normalize:
            h = nn.functional.normalize(h, dim=-1)
        h = h * self.coefficients.softmax(0).unsqueeze(-1)
        y: Tensor = self.last(self.dropout(h.flatten(1).relu()))
        return y


def _powers(P: SparseSignal, signals: list[Tensor]) -> list[Tensor]:
    """P h_1, P^2 h_2, P^3 h_3, ...: all that still need a product share it."""
    done, width = [], signals[0].shape[1]
    h = torch.cat(signals, dim=1)
    for _ in signals:
        h = P @ h
        done.append(h[:, :width])
        h = h[:, width:]
    return done


PEER = Peer(
    "fsgnn",
    "FSGNN",
    FSGNN,
    FSGNNConfig,
    formula="Y = s(cat_j softmax(a)_j norm(F_j W_j)) W, F_j in {X, P^k X, P~^k X}",
    reference="Maurya, Liu, Murata, 2021",
    scaling="O(K^2 E d + K N d^2)",
)
