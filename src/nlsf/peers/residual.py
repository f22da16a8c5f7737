"""Residual layers, as Platonov et al. (ICLR 2023) compare them.

The controls come first: `ResNet` does not see the graph, `ResNetSGC` sees smoothed features,
`ResNetAdj` also the edges. `GATSep`, `GT` and `GTSep` have attention in such layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from torch_geometric.nn import GATConv, TransformerConv
from torch_geometric.utils import add_remaining_self_loops

from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.adjacency import NodeRowsConfig, rows_of
from nlsf.peers.base import DROPOUTS, WIDTHS, Peer, PeerConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.peers.polynomials import powers
from nlsf.spectral.kernels.sparse_signal import SparseSignal


@dataclass(frozen=True)
class ResNetConfig(PeerConfig):
    """Settings of `ResNet`.

    Attributes:
        num_layers: residual layers.
    """

    num_layers: int = 2

    search: ClassVar = {
        "num_layers": (1, 2, 3, 4, 5),
        "hidden_channels": (*WIDTHS, 512),
        "dropout": DROPOUTS,
    }


class ResidualLayer(nn.Module):
    """Adds to its input what two linear maps make of it: the layer of the residual networks.

    Args:
        width: of input and output.
        dropout: after both maps.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
        self.first_dropout, self.last_dropout = Dropout(dropout), Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        """The sum."""
        inner = gelu(self.first_dropout(self.first(self.norm(h))))
        y: Tensor = h + self.last_dropout(self.last(inner))
        return y


class ResNet(Peer):
    r"""A residual network on the features alone (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma(X W), \qquad
        H^{(l+1)} = H^{(l)} + \sigma\bigl( \mathrm{LN}(H^{(l)}) W_1 \bigr) W_2, \qquad
        Y = \mathrm{LN}(H^{(L)}) W_3

    with GELU for :math:`\sigma`. The other methods of that paper have layers of this shape, which
    makes it their control.
    """

    name, title = "resnet", "ResNet"
    formula = "H' = H + s(LN(H) W1) W2"
    reference = "Platonov et al., ICLR 2023"
    scaling = "O(N d^2)"
    config: ResNetConfig

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        self.first = FeatureLinear(config.in_channels, width)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(
            ResidualLayer(width, config.dropout) for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        h = gelu(self.dropout(self.embedding(dropped(x, self.input_dropout), graph)))
        for layer in self.layers:
            h = layer(h)
        y: Tensor = self.last(self.norm(h))
        return y

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map in front, (N, hidden_channels)."""
        del graph
        h: Tensor = self.first(x)
        return h


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

    name, title = "resnet-sgc", "ResNet+SGC"
    formula = "H0 = s([X, P~^K X] W), then ResNet"
    reference = "Platonov et al., ICLR 2023"
    scaling = "O(K E d + N d^2)"
    config: ResNetSGCConfig

    def __init__(self, config: ResNetSGCConfig) -> None:
        super().__init__(config)
        self.smooth = FeatureLinear(config.in_channels, config.hidden_channels, bias=False)

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map of both kinds of features."""
        P = graph.matrix("gcn")
        # The linear map comes first, for it has fewer channels than the features.
        *_, smooth = powers(P, self.smooth(x), self.config.K)
        h: Tensor = self.first(x) + smooth
        return h


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

    name, title = "resnet-adj", "ResNet+adj"
    formula = "H0 = s([X, A] W), then ResNet"
    reference = "Platonov et al., ICLR 2023"
    scaling = "O(E d + N d^2)"
    for_levels = ("node",)
    config: ResNetAdjConfig

    def __init__(self, config: ResNetAdjConfig) -> None:
        super().__init__(config)
        self.of_edges = FeatureLinear(config.num_nodes, config.hidden_channels, bias=False)

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map of features and edges."""
        h: Tensor = self.first(x) + self.of_edges(rows_of(graph, self.config))
        return h


@dataclass(frozen=True)
class AttentionConfig(PeerConfig):
    """Settings of the methods with residual layers of attention.

    Attributes:
        num_layers: how many layers.
        heads: attention heads, which share the width.
    """

    num_layers: int = 2
    heads: int = 8

    search: ClassVar = {"num_layers": (1, 2, 3, 4, 5), **PeerConfig.search}

    @property
    def head_channels(self) -> int:
        """The width of one head."""
        return max(self.hidden_channels // self.heads, 1)


class FeedForward(nn.Module):
    """Two linear layers, GELU between them, dropout after each.

    Args:
        in_channels: width of the input.
        channels: width of the hidden layer and of the output.
        dropout: the share.
    """

    def __init__(self, in_channels: int, channels: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(in_channels, channels), nn.Linear(channels, channels)
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in range(2))

    def forward(self, h: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """The output (N, channels); the edges, which every part is given, play no role."""
        h = gelu(self.dropouts[0](self.first(h)))
        y: Tensor = self.dropouts[1](self.second(h))
        return y


class Residual(Peer):
    r"""Layers that are added to their input (Platonov et al., ICLR 2023).

    .. math::
        H_0 = \mathrm{GELU}(X W), \qquad
        H_{k+1} = H_k + f_k\bigl( \mathrm{LayerNorm}(H_k), E \bigr), \qquad
        Y = \mathrm{LayerNorm}(H_K) W'

    Args:
        config: the settings.
        parts: the functions :math:`f_k` of the signal (N, hidden_channels) and the edges (2, E).
    """

    together = False

    def __init__(self, config: PeerConfig, parts: Iterable[nn.Module]) -> None:
        super().__init__(config)
        d = config.hidden_channels
        self.encoder = FeatureLinear(config.in_channels, d)
        self.dropout = Dropout(config.dropout)
        self.parts = nn.ModuleList(parts)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in self.parts)
        self.last_norm = nn.LayerNorm(d)
        self.last = nn.Linear(d, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        h = gelu(self.dropout(self.encoder(dropped(x, self.input_dropout))))
        for norm, part in zip(self.norms, self.parts, strict=True):
            h = h + part(norm(h), graph.edge_index)
        y: Tensor = self.last(self.last_norm(h))
        return y


class GATSepLayer(nn.Module):
    """A network of the node and, apart from it, the attended neighbours.

    Args:
        config: the settings.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        d, each = config.hidden_channels, config.head_channels
        self.conv = GATConv(d, each, heads=config.heads, add_self_loops=False, bias=False)
        self.network = FeedForward(d + each * config.heads, d, config.dropout)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """From (N, hidden_channels) to the same."""
        y: Tensor = self.network(torch.cat([h, self.conv(h, edge_index)], dim=-1))
        return y


class GATSep(Residual):
    r"""Graph attention with ego and neighbours apart (Platonov et al., ICLR 2023).

    .. math::
        h_i' = h_i + \mathrm{MLP}\Bigl[ n_i \,\Big\Vert \sum_{j \in N(i)} \alpha_{ij} W n_j \Bigr],
        \qquad n_i = \mathrm{LayerNorm}(h_i)

    with the scores :math:`\alpha` of GAT over the neighbours alone, without the node itself:
    PyTorch Geometric's ``GATConv``. The authors' code has :math:`W n_i` in the place of
    :math:`n_i`, which the first map of the MLP makes up for. The weights of edges play no role.
    """

    name, title = "gat-sep", "GAT-sep"
    formula = "h_i' = h_i + MLP[h_i | sum_j alpha_ij W h_j]"
    reference = "Platonov, Kuznedelev, Diskin, Babenko, Prokhorenkova, ICLR 2023"
    scaling = "O(E d + N d^2)"
    config: AttentionConfig

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(config, (GATSepLayer(config) for _ in range(config.num_layers)))


class GraphAttention(nn.Module):
    """Scaled dot products between nodes that an edge joins, then a linear map.

    Args:
        config: the settings.
        separate: whether the node is put beside its attended neighbours, and not among them.
    """

    def __init__(self, config: AttentionConfig, separate: bool) -> None:
        super().__init__()
        self.separate = separate
        d, each = config.hidden_channels, config.head_channels
        self.conv = TransformerConv(d, each, heads=config.heads, bias=False, root_weight=False)
        # PyTorch Geometric makes these parameters also where it does not use them.
        self.conv.lin_skip = None
        for part in (self.conv.lin_query, self.conv.lin_key, self.conv.lin_value):
            part.bias = None  # older versions have them whatever one asks for
        self.lin = nn.Linear(each * config.heads + (d if separate else 0), d)
        self.dropout = Dropout(config.dropout)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """From (N, hidden_channels) to the same."""
        if self.separate:
            near = torch.cat([h, self.conv(h, edge_index)], dim=-1)
        else:
            near = self.conv(h, add_remaining_self_loops(edge_index, num_nodes=len(h))[0])
        y: Tensor = self.dropout(self.lin(near))
        return y


def transformer_parts(config: AttentionConfig, separate: bool) -> Iterator[nn.Module]:
    """Attention and network of every layer, in turn."""
    d = config.hidden_channels
    for _ in range(config.num_layers):
        yield GraphAttention(config, separate)
        yield FeedForward(d, d, config.dropout)


class GT(Residual):
    r"""Graph transformer (Shi et al., IJCAI 2021; as in Platonov et al., ICLR 2023).

    .. math::
        g_i = h_i + W_O \sum_{j \in N(i) \cup i} \alpha_{ij} V n_j, \quad
        \alpha_{ij} = \mathrm{softmax}_j \frac{(Q n_i)^\top K n_j}{\sqrt m}, \quad
        h_i' = g_i + \mathrm{MLP}(\mathrm{LayerNorm}(g_i))

    with :math:`n_i = \mathrm{LayerNorm}(h_i)` and heads of m channels, side by side. The attention
    is PyTorch Geometric's ``TransformerConv``, here without biases in Q, K and V. The weights of
    edges play no role.
    """

    name, title = "gt", "GT"
    formula = "h_i' = h_i + W sum_j softmax_j((Q h_i)^T K h_j / sqrt(m)) V h_j, then h + MLP(h)"
    reference = "Shi et al., IJCAI 2021"
    scaling = "O(E d + N d^2)"
    config: AttentionConfig

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(config, transformer_parts(config, separate=False))


class GTSep(Residual):
    r"""Graph transformer with ego and neighbours apart (Platonov et al., ICLR 2023).

    .. math::
        g_i = h_i + W_O \Bigl[ n_i \,\Big\Vert \sum_{j \in N(i)} \alpha_{ij} V n_j \Bigr], \qquad
        h_i' = g_i + \mathrm{MLP}(\mathrm{LayerNorm}(g_i))

    with :math:`n_i = \mathrm{LayerNorm}(h_i)` and the scores :math:`\alpha` of `GT` over the
    neighbours alone, without the node itself.
    """

    name, title = "gt-sep", "GT-sep"
    formula = (
        "h_i' = h_i + W [h_i | sum_j softmax_j((Q h_i)^T K h_j / sqrt(m)) V h_j], then h + MLP(h)"
    )
    reference = "Platonov, Kuznedelev, Diskin, Babenko, Prokhorenkova, ICLR 2023"
    scaling = "O(E d + N d^2)"
    config: AttentionConfig

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(config, transformer_parts(config, separate=True))
