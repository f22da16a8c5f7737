"""Neighbours at one and at two steps, kept apart: `H2GCN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class H2GCNConfig(PeerConfig):
    """Settings of `H2GCN`.

    Attributes:
        rounds: how many rounds of aggregation.
    """

    rounds: int = 2

    search: ClassVar = {"rounds": (1, 2), "hidden_channels": WIDTHS, "dropout": (0.0, 0.5)}


class H2GCN(Body):
    r"""H2GCN (Zhu et al., NeurIPS 2020).

    .. math::
        R_0 = \mathrm{ReLU}(X W_e), \qquad
        R_k = [\bar A_1 R_{k-1} \,\Vert\, \bar A_2 R_{k-1}], \qquad
        Y = [R_0 \Vert \dots \Vert R_K] W_c

    with :math:`\bar A_s = D_s^{-1/2} A_s D_s^{-1/2}` and :math:`A_s` the pairs of nodes at a
    distance of exactly s: a node is in neither neighbourhood of itself. The widths double in every
    round. The weights of edges count in :math:`A_1`; every pair in :math:`A_2` counts 1.

    Where nodes of high degree are, :math:`A_2` is far from sparse: it holds 1.2 % of all pairs of
    Cora, 4 % of Actor, 23 % of Chameleon and 31 % of Squirrel (8.4 million, from 0.4 million
    edges). An epoch on Squirrel took about 25 times as long as one of GCN, and finding
    :math:`A_2` some 5 seconds, once.
    """

    config: H2GCNConfig

    def __init__(self, config: H2GCNConfig) -> None:
        super().__init__(config)
        d = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        self.encoder = FeatureLinear(config.in_channels, d)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(d * (2 ** (config.rounds + 1) - 1), config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All rounds."""
        one, two = graph.matrix("sym"), graph.derived(two_steps)
        found = [self.encoder(dropped(x, self.input_dropout)).relu()]
        for _ in range(self.config.rounds):
            found.append(torch.cat([one @ found[-1], two @ found[-1]], dim=-1))
        y: Tensor = self.last(self.dropout(torch.cat(found, dim=-1)))
        return y


def two_steps(graph: Neighbourhood) -> SparseSignal:
    r"""The matrix :math:`D_2^{-1/2} A_2 D_2^{-1/2}` of pairs at distance 2, (N, N)."""
    edges = _pairs_at_distance_two(graph.edge_index, graph.num_nodes)
    return Neighbourhood(edges, graph.num_nodes, dtype=graph.dtype).matrix("sym")


def _pairs_at_distance_two(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Both directions of each pair, (2, E2)."""
    import numpy as np
    from scipy.sparse import csr_array, eye_array

    row, column = edge_index.numpy()
    shape = (num_nodes, num_nodes)
    A = csr_array((np.ones(len(row), dtype=bool), (row, column)), shape=shape)
    nearer = A + eye_array(num_nodes, dtype=bool, format="csr")
    reached = A @ A
    pairs = (reached > nearer).tocoo()
    return torch.from_numpy(np.stack([pairs.row, pairs.col]).astype(np.int64))


PEER = Peer(
    "h2gcn",
    "H2GCN",
    H2GCN,
    H2GCNConfig,
    formula="R' = [A1 R | A2 R], Y = [R0 | ... | RK] W",
    reference="Zhu et al., NeurIPS 2020",
    scaling="O(E2 d 2^K + N d^2 2^K), E2 pairs at distance 1 or 2 (a third of N^2 on Squirrel)",
)
