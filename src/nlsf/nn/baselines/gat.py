"""Attention over neighbours: `GAT`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import elu
from torch_geometric.nn import GATConv

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.edge_attention import edge_attention
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal

_MANY = 20_000
"""Edges from which on sums head by head are faster: small graphs wait for calls, not for memory."""


@dataclass(frozen=True)
class GATConfig(PeerConfig):
    """Settings of `GAT`.

    Attributes:
        heads: attention heads of the first layer, which share its width.
        slope: of the leaky ReLU in the scores.
    """

    heads: int = 8
    slope: float = 0.2

    search: ClassVar = {"heads": (1, 4, 8), "hidden_channels": WIDTHS, "dropout": DROPOUTS}


class GAT(Body):
    r"""Graph attention network (Velickovic et al., ICLR 2018), two layers.

    .. math::
        h_i' = \sum_{j \in N(i) \cup i} \alpha_{ij} W h_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j \,
            \mathrm{LeakyReLU}\bigl( a^\top [W h_i \Vert W h_j] \bigr)

    Parameters and numbers are those of PyTorch Geometric's ``GATConv``; where a graph has many
    edges its sums are those of `edge_attention`, and the first linear map is ours, so that features
    may be sparse. Scores have no dropout, and the weights of edges play no role.
    """

    together = False
    config: GATConfig

    def __init__(self, config: GATConfig) -> None:
        super().__init__(config)
        each = max(config.hidden_channels // config.heads, 1)
        width = each * config.heads
        self.input_dropout = Dropout(config.input_dropout)
        self.encoder = FeatureLinear(config.in_channels, width, bias=False)
        nn.init.xavier_uniform_(self.encoder.weight)
        self.first = GATConv(width, each, heads=config.heads, negative_slope=config.slope)
        self.first.lin = nn.Identity()  # the encoder is in its place
        self.dropout = Dropout(config.dropout)
        self.last = GATConv(width, config.out_channels, negative_slope=config.slope)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """Both layers."""
        h = self.encoder(dropped(x, self.input_dropout))
        h = elu(_attended(self.first, h, graph))
        return _attended(self.last, self.dropout(h), graph)


def _attended(conv: GATConv, h: Tensor, graph: Neighbourhood) -> Tensor:
    """What the convolution computes: (N, heads * channels)."""
    if graph.edge_index.shape[1] < _MANY:
        y: Tensor = conv(h, graph.edge_index)
        return y
    h = conv.lin(h).unflatten(-1, (conv.heads, conv.out_channels))
    own, other = ((h * vector).sum(-1) for vector in (conv.att_dst, conv.att_src))
    out: Tensor = edge_attention(own, other, h, graph, conv.negative_slope).flatten(1) + conv.bias
    return out


PEER = Peer(
    "gat",
    "GAT",
    GAT,
    GATConfig,
    formula="h_i' = sum_j alpha_ij W h_j",
    reference="Velickovic et al., ICLR 2018",
    scaling="O(E d + N d^2)",
)
