"""Logistic regression on the adjacency matrix: `LINK`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from nlsf.nn.baselines.base import Body, Peer
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.node_rows import NodeRowsConfig, rows_of
from nlsf.nn.baselines.search import DROPOUTS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class LINKConfig(NodeRowsConfig):
    """Settings of `LINK`; ``input_dropout`` acts on the edges, and there is nothing hidden."""

    input_dropout: float = 0.0

    search: ClassVar = {"input_dropout": DROPOUTS}


class LINK(Body):
    r"""Who the neighbours are, and nothing else (Zheleva and Getoor, WWW 2009).

    .. math::
        Y = A W + b

    Every node is a feature, so that the weights belong to one graph. What a node itself carries is
    not looked at.
    """

    config: LINKConfig

    def __init__(self, config: LINKConfig) -> None:
        super().__init__(config)
        self.input_dropout = Dropout(config.input_dropout)
        self.lin = FeatureLinear(config.num_nodes, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        del x
        scores: Tensor = self.lin(dropped(rows_of(graph, self.config), self.input_dropout))
        return scores


PEER = Peer(
    "link",
    "LINK",
    LINK,
    LINKConfig,
    formula="Y = A W",
    reference="Zheleva and Getoor, WWW 2009",
    scaling="O(E c)",
    levels=("node",),
)
