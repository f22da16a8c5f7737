"""Methods that have parameters for every node of one graph: `LINK`, `LINKX`, `GloGNN`.

They read the rows of the adjacency matrix as features.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, Head, dropped
from nlsf.peers.base import DROPOUTS, Peer, PeerConfig
from nlsf.peers.matrices import MatrixKind, Neighbourhood
from nlsf.peers.polynomials import combined, powers
from nlsf.spectral.kernels.sparse_signal import SparseSignal


@dataclass(frozen=True)
class NodeRowsConfig(PeerConfig):
    """Settings of methods that read a node's row of the adjacency matrix as features.

    Attributes:
        num_nodes: of the graph, which is fixed; the data decide it.
    """

    num_nodes: int = 0


def rows_of(
    graph: Neighbourhood, config: NodeRowsConfig, kind: MatrixKind = "adjacency"
) -> SparseSignal:
    """A matrix (N, N) of the graph as features, if it is of the size that the model is for."""
    if graph.num_nodes != config.num_nodes:
        raise ModelError(
            f"This model has parameters for each of {config.num_nodes} nodes, and cannot be "
            f"applied to a graph of {graph.num_nodes}."
        )
    return graph.matrix(kind)


@dataclass(frozen=True)
class LINKConfig(NodeRowsConfig):
    """Settings of `LINK`; ``input_dropout`` acts on the edges, and there is nothing hidden."""

    input_dropout: float = 0.0

    search: ClassVar = {"input_dropout": DROPOUTS}


class LINK(Peer):
    r"""Who the neighbours are, and nothing else (Zheleva and Getoor, WWW 2009).

    .. math::
        Y = A W + b

    Every node is a feature, so that the weights belong to one graph. What a node itself carries is
    not looked at.
    """

    name, title = "link", "LINK"
    formula = "Y = A W"
    reference = "Zheleva and Getoor, WWW 2009"
    scaling = "O(E c)"
    for_levels = ("node",)
    config: LINKConfig

    def __init__(self, config: LINKConfig) -> None:
        super().__init__(config)
        self.lin = FeatureLinear(config.num_nodes, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        del x
        scores: Tensor = self.lin(dropped(rows_of(graph, self.config), self.input_dropout))
        return scores


@dataclass(frozen=True)
class LINKXConfig(NodeRowsConfig):
    """Settings of `LINKX`.

    Attributes:
        num_layers: linear maps of the last network.
    """

    num_layers: int = 2

    search: ClassVar = {
        "hidden_channels": (16, 32, 64, 128, 256),
        "dropout": DROPOUTS,
        "num_layers": (1, 2, 3),
    }


class LINKX(Peer):
    r"""Separate networks for edges and features (Lim et al., NeurIPS 2021).

    .. math::
        h_A = \mathrm{MLP}_A(A), \quad h_X = \mathrm{MLP}_X(X), \qquad
        Y = \mathrm{MLP}_f\bigl( \sigma( W [h_A; h_X] + h_A + h_X ) \bigr)

    The first two are one linear map each. Every node is a feature of the first, so that its weights
    belong to one graph.
    """

    name, title = "linkx", "LINKX"
    formula = "Y = MLP(s(W [A W1; X W2] + A W1 + X W2))"
    reference = "Lim et al., NeurIPS 2021"
    scaling = "O(E d + N d^2)"
    for_levels = ("node",)
    config: LINKXConfig

    def __init__(self, config: LINKXConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        self.of_edges = FeatureLinear(config.num_nodes, width)
        self.of_features = FeatureLinear(config.in_channels, width)
        self.mix_edges = nn.Linear(width, width)
        self.mix_features = nn.Linear(width, width, bias=False)
        self.dropout = Dropout(config.dropout)
        sizes = [width] * config.num_layers + [config.out_channels]
        self.last = Head(sizes, dropout=config.dropout, batch_norm=False)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        a = self.of_edges(rows_of(graph, self.config))
        h = self.of_features(dropped(x, self.input_dropout))
        both = self.mix_edges(a) + self.mix_features(h) + a + h
        scores: Tensor = self.last(self.dropout(both.relu()))
        return scores


@dataclass(frozen=True)
class GloGNNConfig(NodeRowsConfig):
    """Settings of `GloGNN`, with the letters of its paper.

    Attributes:
        alpha: the part of the features in the first embedding; the rest is that of the edges.
        beta1: how strongly large coefficients are avoided.
        beta2: how strongly coefficients are drawn to the neighbourhoods.
        gamma: the part of the first embedding in every layer.
        K: hops of the neighbourhoods.
        num_layers: how often nodes are mixed.
    """

    alpha: float = 0.9
    beta1: float = 1.0
    beta2: float = 1000.0
    gamma: float = 0.2
    K: int = 3
    num_layers: int = 3

    search: ClassVar = {
        **PeerConfig.search,
        "alpha": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        "beta1": (0.0, 1.0, 10.0),
        "beta2": (0.1, 1.0, 10.0, 100.0, 1000.0),
        "gamma": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "K": (1, 2, 3, 4, 5, 6),
        "num_layers": (1, 2, 3),
    }

    def __post_init__(self) -> None:
        if self.beta1 < 0 or self.beta2 < 0 or self.beta1 + self.beta2 == 0:
            raise ModelError(
                "GloGNN needs beta1 and beta2 that are not negative and not both zero, "
                f"not {self.beta1} and {self.beta2}."
            )


class GloGNN(Peer):
    r"""Coefficients between all nodes, in closed form (Li et al., ICML 2022).

    .. math::
        H^{(l+1)} = (1 - \gamma) Z H^{(l)} + \gamma H^{(0)}, \qquad
        H^{(0)} = \mathrm{MLP}\bigl( \alpha X W_X + (1 - \alpha) \tilde P W_A \bigr)

    where :math:`Z`, of size N x N, minimises

    .. math::
        \lVert H - (1 - \gamma) Z H - \gamma H^{(0)} \rVert^2 + \beta_1 \lVert Z \rVert^2
        + \beta_2 \bigl\lVert Z - \sum_{k=1}^{K} \lambda_k \tilde P^k \bigr\rVert^2

    with :math:`\tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}` and learned :math:`\lambda`. It
    is never built: :math:`Z H` follows from the identity
    :math:`[c^2 H H^T + b I]^{-1} H = H [c^2 H^T H + b I]^{-1}`, whose matrix on the right is as
    small as the number of classes. Every node is a feature in :math:`\tilde P W_A`, so these
    weights belong to one graph. The authors' code has :math:`\tilde D^{-1} (A + I)` in the place of
    :math:`\tilde P`.
    """

    name, title = "glognn", "GloGNN"
    formula = (
        "H' = (1 - g) Z H + g H0, Z = argmin |H - H'|^2 + b1 |Z|^2 + b2 |Z - sum_k l_k P~^k|^2"
    )
    reference = "Li et al., ICML 2022"
    scaling = "O(E d + L K E c + N d^2), L layers, c classes"
    for_levels = ("node",)
    config: GloGNNConfig

    def __init__(self, config: GloGNNConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        self.of_features = FeatureLinear(config.in_channels, width)
        self.of_edges = FeatureLinear(config.num_nodes, width)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(width, config.out_channels)
        self.coefficients = nn.Parameter(torch.full((config.K,), 1 / config.K))

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        P, a, g = rows_of(graph, self.config, "gcn"), self.config.alpha, self.config.gamma
        features = self.of_features(dropped(x, self.input_dropout))
        mixed = a * features + (1 - a) * self.of_edges(P)
        first: Tensor = self.last(self.dropout(mixed.relu()))
        h = first
        for _ in range(self.config.num_layers):
            h = (1 - g) * self.mixed(h, first, P) + g * first
        return h

    def mixed(self, h: Tensor, first: Tensor, P: SparseSignal) -> Tensor:
        """Z H (N, c), for the best coefficients Z."""
        b1, b2, c = self.config.beta1, self.config.beta2, 1 - self.config.gamma
        gram = h.T @ h
        small = torch.eye(h.shape[1], dtype=h.dtype) * (b1 + b2) + c * c * gram
        near = combined(self.coefficients, islice(powers(P, h, self.config.K), 1, None))
        right = c * (h - self.config.gamma * first) @ gram + b2 * near
        mixed: Tensor = right @ torch.linalg.inv(small)
        return mixed
