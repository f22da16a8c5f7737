"""Adjacency and features, each through a network of its own: `LINKX`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.node_rows import NodeRowsConfig, rows_of
from nlsf.nn.baselines.search import DROPOUTS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.nn.models.head import Head
from nlsf.spectral.sparse_signal import SparseSignal


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


class LINKX(Body):
    r"""Separate networks for edges and features (Lim et al., NeurIPS 2021).

    .. math::
        h_A = \mathrm{MLP}_A(A), \quad h_X = \mathrm{MLP}_X(X), \qquad
        Y = \mathrm{MLP}_f\bigl( \sigma( W [h_A; h_X] + h_A + h_X ) \bigr)

    The first two are one linear map each. Every node is a feature of the first, so that its weights
    belong to one graph.
    """

    config: LINKXConfig

    def __init__(self, config: LINKXConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        self.of_edges = FeatureLinear(config.num_nodes, width)
        self.of_features = FeatureLinear(config.in_channels, width)
        self.mix_edges = nn.Linear(width, width)
        self.mix_features = nn.Linear(width, width, bias=False)
        self.dropout = Dropout(config.dropout)
        sizes = [width] * config.num_layers + [config.out_channels]
        self.last = Head(sizes, dropout=config.dropout, standardize=False)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        a = self.of_edges(rows_of(graph, self.config))
        h = self.of_features(dropped(x, self.input_dropout))
        both = self.mix_edges(a) + self.mix_features(h) + a + h
        scores: Tensor = self.last(self.dropout(both.relu()))
        return scores


PEER = Peer(
    "linkx",
    "LINKX",
    LINKX,
    LINKXConfig,
    formula="Y = MLP(s(W [A W1; X W2] + A W1 + X W2))",
    reference="Lim et al., NeurIPS 2021",
    scaling="O(E d + N d^2)",
    levels=("node",),
)
