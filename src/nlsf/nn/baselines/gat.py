"""Attention over neighbours: `GAT`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch_geometric.nn import GATConv

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.nn.sparse_signal import SparseSignal


@dataclass(frozen=True)
class GATConfig(PeerConfig):
    """Settings of `GAT`.

    Attributes:
        heads: attention heads of the first layer, which share its width.
        slope: of the leaky ReLU in the scores.
    """

    heads: int = 8
    slope: float = 0.2

    search: ClassVar = {"heads": (1, 4, 8), "hidden_channels": (64, 128)}


class GAT(Body):
    r"""Graph attention network (Velickovic et al., ICLR 2018), two layers.

    .. math::
        h_i' = \sum_{j \in N(i) \cup i} \alpha_{ij} W h_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j \,
            \mathrm{LeakyReLU}\bigl( a^\top [W h_i \Vert W h_j] \bigr)

    PyTorch Geometric's ``GATConv``; the first linear map is ours, so that features may be sparse.
    """

    together = False
    config: GATConfig

    def __init__(self, config: GATConfig) -> None:
        super().__init__(config)
        d = config.hidden_channels
        self.input_dropout = Dropout(config.input_dropout)
        self.encoder = FeatureLinear(config.in_channels, d, bias=False)
        each = max(d // config.heads, 1)
        options = {"negative_slope": config.slope}
        self.first = GATConv(d, each, heads=config.heads, **options)
        self.dropout = Dropout(config.dropout)
        self.last = GATConv(each * config.heads, config.out_channels, heads=1, **options)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """Both layers."""
        h = self.encoder(dropped(x, self.input_dropout))
        h = self.first(h, graph.edge_index).relu()
        y: Tensor = self.last(self.dropout(h), graph.edge_index)
        return y


PEER = Peer(
    "gat",
    "GAT",
    GAT,
    GATConfig,
    formula="h_i' = sum_j alpha_ij W h_j",
    reference="Velickovic et al., ICLR 2018",
    scaling="O(E d + N d^2)",
)
