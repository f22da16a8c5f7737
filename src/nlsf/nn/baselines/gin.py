"""Sums over neighbours: `GIN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.nn.node_batch_norm import NodeBatchNorm
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class GINConfig(PeerConfig):
    """Settings of `GIN`.

    Attributes:
        num_layers: how many convolutions.
    """

    num_layers: int = 3

    search: ClassVar = {
        "hidden_channels": (16, 32, 64, 128),
        "dropout": (0.0, 0.5),
        "num_layers": (2, 3, 4, 5),
    }


class GIN(Body):
    r"""Graph isomorphism network (Xu et al., ICLR 2019).

    .. math::
        H' = \mathrm{MLP}\bigl( (1 + \epsilon) H + A H \bigr)

    Each network has two linear layers, batch normalisation and ReLU between them and ReLU behind;
    a linear map of the last :math:`H` ends the stack, where the paper reads out all of them. The
    first linear map stands before the sum, which commutes with it, so that features may be sparse.
    """

    config: GINConfig

    def __init__(self, config: GINConfig) -> None:
        super().__init__(config)
        d = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        widths = [config.in_channels, *[d] * (config.num_layers - 1)]
        self.first = nn.ModuleList(FeatureLinear(width, d, bias=False) for width in widths)
        self.norms = nn.ModuleList(NodeBatchNorm(d) for _ in widths)
        self.second = nn.ModuleList(nn.Linear(d, d) for _ in widths)
        self.eps = nn.Parameter(torch.zeros(config.num_layers))
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(d, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        A = graph.matrix("adjacency")
        h: Tensor | SparseSignal = dropped(x, self.input_dropout)
        layers = zip(self.first, self.norms, self.second, strict=True)
        for i, (first, norm, second) in enumerate(layers):
            z = first(h)
            z = norm((1 + self.eps[i]) * z + A @ z, graph.inside)
            h = second(z.relu()).relu()
        y: Tensor = self.last(self.dropout(h))
        return y


PEER = Peer(
    "gin",
    "GIN",
    GIN,
    GINConfig,
    formula="H' = MLP((1 + e) H + A H)",
    reference="Xu, Hu, Leskovec, Jegelka, ICLR 2019",
    scaling="O(E d + N d^2)",
)
