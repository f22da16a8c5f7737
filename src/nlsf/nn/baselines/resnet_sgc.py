"""Residual layers on smoothed features: `ResNetSGC`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from nlsf.nn.baselines.base import Peer
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.resnet import ResNet, ResNetConfig
from nlsf.nn.feature_linear import FeatureLinear
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ResNetSGCConfig(ResNetConfig):
    """Settings of `ResNetSGC`.

    Attributes:
        K: products with the adjacency matrix.
    """

    K: int = 5

    search: ClassVar = ResNetConfig.search


class ResNetSGC(ResNet):
    r"""`ResNet` with smoothed features beside those of the node (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma\bigl( [X, \tilde P^K X] W \bigr), \qquad
        \tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}
    """

    config: ResNetSGCConfig

    def __init__(self, config: ResNetSGCConfig) -> None:
        super().__init__(config)
        self.smooth = FeatureLinear(config.in_channels, config.hidden_channels, bias=False)

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map of both kinds of features."""
        P = graph.matrix("gcn")
        smooth = self.smooth(x)  # first, for it has fewer channels than the features
        for _ in range(self.config.K):
            smooth = P @ smooth
        h: Tensor = self.first(x) + smooth
        return h


PEER = Peer(
    "resnet-sgc",
    "ResNet+SGC",
    ResNetSGC,
    ResNetSGCConfig,
    formula="H0 = s([X, P~^K X] W), then ResNet",
    reference="Platonov et al., ICLR 2023",
    scaling="O(K E d + N d^2)",
)
