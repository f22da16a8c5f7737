"""Residual layers on features and edges: `ResNetAdj`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from nlsf.nn.baselines.base import Peer
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.node_rows import NodeRowsConfig, rows_of
from nlsf.nn.baselines.resnet import ResNet, ResNetConfig
from nlsf.nn.feature_linear import FeatureLinear
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ResNetAdjConfig(ResNetConfig, NodeRowsConfig):
    """Settings of `ResNetAdj`."""

    search: ClassVar = ResNetConfig.search


class ResNetAdj(ResNet):
    r"""`ResNet` with rows of the adjacency matrix as further features (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma\bigl( [X, A] W \bigr)

    Every node is a feature, so that the weights belong to one graph.
    """

    config: ResNetAdjConfig

    def __init__(self, config: ResNetAdjConfig) -> None:
        super().__init__(config)
        self.of_edges = FeatureLinear(config.num_nodes, config.hidden_channels, bias=False)

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map of features and edges."""
        h: Tensor = self.first(x) + self.of_edges(rows_of(graph, self.config))
        return h


PEER = Peer(
    "resnet-adj",
    "ResNet+adj",
    ResNetAdj,
    ResNetAdjConfig,
    formula="H0 = s([X, A] W), then ResNet",
    reference="Platonov et al., ICLR 2023",
    scaling="O(E d + N d^2)",
    levels=("node",),
)
