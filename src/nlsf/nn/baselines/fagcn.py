"""Signed attention over neighbours: `FAGCN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.edge_sum import edge_sum
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class FAGCNConfig(PeerConfig):
    """Settings of `FAGCN`.

    Attributes:
        num_layers: how many rounds.
        eps: the share of the first signal in every round.
    """

    num_layers: int = 4
    eps: float = 0.3

    search: ClassVar = {
        "hidden_channels": WIDTHS,
        "dropout": (0.4, 0.5, 0.6),
        "num_layers": (1, 2, 3, 4, 5, 6, 7, 8),
        "eps": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    }


class FAGCN(Body):
    r"""Frequency adaptation network (Bo et al., AAAI 2021).

    .. math::
        h_i^{(0)} = \mathrm{ReLU}(W_1 x_i), \qquad
        h_i^{(k)} = \epsilon h_i^{(0)} +
            \sum_{j \in N(i)} \frac{\alpha_{ij}}{\sqrt{d_i d_j}} h_j^{(k-1)}, \qquad
        \alpha_{ij} = \tanh\bigl( g_k^\top [h_i \Vert h_j] \bigr)

    and a linear map at the end. A negative :math:`\alpha` subtracts the neighbour. Dropout acts on
    the features, on :math:`h^{(0)}`, and on the weights of the edges.
    """

    together = False
    config: FAGCNConfig

    def __init__(self, config: FAGCNConfig) -> None:
        super().__init__(config)
        d, rounds = config.hidden_channels, range(config.num_layers)
        self.input_dropout = Dropout(config.input_dropout)
        self.encoder = FeatureLinear(config.in_channels, d)
        self.dropout = Dropout(config.dropout)
        # The parts of g that meet h_i and h_j; a bias counts once.
        self.receivers = nn.ModuleList(nn.Linear(d, 1) for _ in rounds)
        self.senders = nn.ModuleList(nn.Linear(d, 1, bias=False) for _ in rounds)
        self.score_dropouts = nn.ModuleList(Dropout(config.dropout) for _ in rounds)
        self.last = nn.Linear(d, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All rounds."""
        row, column = graph.edge_index
        root = graph.degree.clamp(min=0).rsqrt().where(graph.degree > 0, 0.0)
        norm = root[row] * graph.edge_weight * root[column]
        first: Tensor = self.dropout(self.encoder(dropped(x, self.input_dropout)).relu())
        h = first
        for receiver, sender, dropout in zip(
            self.receivers, self.senders, self.score_dropouts, strict=True
        ):
            scores = (receiver(h)[row] + sender(h)[column]).squeeze(-1).tanh()
            h = self.config.eps * first + edge_sum(dropout(scores * norm), h, graph)
        y: Tensor = self.last(h)
        return y


PEER = Peer(
    "fagcn",
    "FAGCN",
    FAGCN,
    FAGCNConfig,
    formula="h_i' = eps h_i0 + sum_j tanh(g^T [h_i | h_j]) / sqrt(d_i d_j) h_j",
    reference="Bo, Wang, Shi, Shen, AAAI 2021",
    scaling="O(K E d + N d^2), K rounds",
)
