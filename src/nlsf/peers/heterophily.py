"""Methods for graphs whose neighbours differ: `H2GCN`, `FSGNN`, `CPGNN`.

They keep the node, its neighbours and those further away apart, or learn which classes meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import WIDTHS, Peer, PeerConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import SparseSignal


@dataclass(frozen=True)
class H2GCNConfig(PeerConfig):
    """Settings of `H2GCN`.

    Attributes:
        rounds: how many rounds of aggregation.
    """

    rounds: int = 2

    search: ClassVar = {"rounds": (1, 2), "hidden_channels": WIDTHS, "dropout": (0.0, 0.5)}


class H2GCN(Peer):
    r"""H2GCN (Zhu et al., NeurIPS 2020).

    .. math::
        R_0 = \mathrm{ReLU}(X W_e), \qquad
        R_k = [\bar A_1 R_{k-1} \,\Vert\, \bar A_2 R_{k-1}], \qquad
        Y = [R_0 \Vert \dots \Vert R_K] W_c

    with :math:`\bar A_s = D_s^{-1/2} A_s D_s^{-1/2}` and :math:`A_s` the pairs of nodes at a
    distance of exactly s: a node is in neither neighbourhood of itself. The widths double in every
    round. The weights of edges count in :math:`A_1`; every pair in :math:`A_2` counts 1.

    Nodes of high degree make :math:`A_2` far from sparse. It holds 1.2 % of all pairs on Cora, 4 %
    on Actor, 23 % on Chameleon and 31 % on Squirrel (8.4 million, from 0.4 million edges). An epoch
    on Squirrel took about 25 times as long as one of GCN, and finding :math:`A_2` some 5 seconds,
    once.
    """

    name, title = "h2gcn", "H2GCN"
    formula = "R' = [A1 R | A2 R], Y = [R0 | ... | RK] W"
    reference = "Zhu et al., NeurIPS 2020"
    scaling = "O(E2 d 2^K + N d^2 2^K), E2 pairs at distance 1 or 2 (a third of N^2 on Squirrel)"
    config: H2GCNConfig

    def __init__(self, config: H2GCNConfig) -> None:
        super().__init__(config)
        d = config.hidden_channels
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


@dataclass(frozen=True)
class FSGNNConfig(PeerConfig):
    """Settings of `FSGNN`.

    Attributes:
        hops: how far it looks.
        normalize: brings every row of a neighbourhood to unit length.
    """

    hops: int = 3
    normalize: bool = True

    search: ClassVar = {"hops": (3, 8), "normalize": (False, True), **PeerConfig.search}


class FSGNN(Peer):
    r"""Features of every hop, with and without loops, weighed (Maurya, Liu, Murata, 2021).

    .. math::
        Y = \sigma\Bigl( \bigoplus_{j} \alpha_j \,
            \frac{F_j W_j}{\lVert F_j W_j \rVert} \Bigr) W, \qquad
        F_j \in \{ X, P X, \tilde P X, \dots, P^K X, \tilde P^K X \}, \quad
        \alpha = \mathrm{softmax}(a)

    where :math:`\bigoplus` puts channels side by side, the norm is that of a row,
    :math:`P = D^{-1/2} A D^{-1/2}`, and :math:`\tilde P` is the same with loops.
    """

    name, title = "fsgnn", "FSGNN"
    formula = "Y = s(cat_j softmax(a)_j norm(F_j W_j)) W, F_j in {X, P^k X, P~^k X}"
    reference = "Maurya, Liu, Murata, 2021"
    scaling = "O(K^2 E d + K N d^2)"
    config: FSGNNConfig

    def __init__(self, config: FSGNNConfig) -> None:
        super().__init__(config)
        count, width = 1 + 2 * config.hops, config.hidden_channels
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


@dataclass(frozen=True)
class CPGNNConfig(PeerConfig):
    """Settings of `CPGNN`.

    Attributes:
        rounds: how many times beliefs are passed on.
    """

    rounds: int = 2

    search: ClassVar = {"rounds": (1, 2), **PeerConfig.search}


class CPGNN(Peer):
    r"""CPGNN with a multilayer perceptron as its prior (Zhu et al., AAAI 2021).

    .. math::
        B_0 = \mathrm{softmax}(\mathrm{MLP}(X)) - \tfrac{1}{C}, \qquad
        B_k = B_0 + A B_{k-1} \bar H

    with one row and one column of :math:`\bar H` a class: how much more, or less, than by chance a
    class is next to another.

    The training is simpler than the paper's, which trains the prior first, estimates
    :math:`\bar H` from its beliefs and the training labels, and goes on with two further losses:
    that of the prior itself, and the sums of the rows of :math:`\bar H`. Here there is no
    training before and no loss of the prior: everything learns from the loss of :math:`B_K` alone,
    :math:`\bar H` starts as :math:`I - 1/C`, classes next to their own, and its rows always have
    the sum 0.
    """

    name, title = "cpgnn", "CPGNN"
    formula = "B' = B0 + A B H, B0 = softmax(MLP(X)) - 1/C"
    reference = "Zhu et al., AAAI 2021"
    scaling = "O(K E C + N d^2), K rounds, C classes"
    for_levels = ("node",)
    config: CPGNNConfig

    def __init__(self, config: CPGNNConfig) -> None:
        super().__init__(config)
        self.encoder = FeatureLinear(config.in_channels, config.hidden_channels)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)
        self.coefficients = nn.Parameter(torch.eye(config.out_channels))

    def compatibility(self) -> Tensor:
        r"""The matrix :math:`\bar H` (C, C), whose rows have the sum 0."""
        return self.coefficients - self.coefficients.mean(-1, keepdim=True)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """Prior and all rounds."""
        A, H = graph.matrix("adjacency"), self.compatibility()
        h = self.dropout(self.encoder(dropped(x, self.input_dropout)).relu())
        prior: Tensor = self.last(h).softmax(-1) - 1 / self.config.out_channels
        beliefs = prior
        for _ in range(self.config.rounds):
            beliefs = prior + A @ (beliefs @ H)
        return beliefs
