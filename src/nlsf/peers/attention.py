"""Sums over neighbours with learned weights: `GAT`, `FAGCN`, `GBKGNN`.

The weights are the softmax of scores in `edge_attention`, and any numbers in `edge_sum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, embedding_bag, leaky_relu
from torch_geometric.nn import GATConv

from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import WIDTHS, Peer, PeerConfig
from nlsf.peers.convolutions import Convolutions, LayersConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import (
    Pattern,
    SparseSignal,
    inner_products,
    sparse_product,
)


def edge_attention(
    own: Tensor, other: Tensor, h: Tensor, graph: Neighbourhood, slope: float = 0.2
) -> Tensor:
    r"""The means of the attention of Velickovic et al. over each node's neighbours and itself.

    .. math::
        y_i = \sum_{j \in N(i) \cup i} \alpha_{ij} h_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j \, \mathrm{LeakyReLU}(s_i + t_j)

    It has first gradients for all three tensors, and never holds the channels of every edge: the
    weights of one head, one number an edge, stay in a processor's cache.

    Args:
        own: (N, heads), the :math:`s_i`.
        other: (N, heads), the :math:`t_j`.
        h: (N, heads, channels).
        graph: the graph.
        slope: of the leaky ReLU.

    Returns:
        (N, heads, channels).
    """
    if graph.num_nodes == 0:
        return h
    A = graph.matrix("gcn")  # for its pattern: the neighbours, and the node itself
    pattern, transposed = A.pattern, A.transposed
    # The leaky ReLU grows, so the largest score of a node is that of the largest t_j.
    with torch.no_grad():
        top = embedding_bag(pattern.column, other, pattern.first[:-1], mode="max")
    row = pattern.narrow.row
    heads = [
        _Head.apply(s, t, m, v, pattern, transposed, row, slope)  # type: ignore[no-untyped-call]
        for s, t, m, v in zip(*(x.unbind(1) for x in (own, other, top, h)), strict=True)
    ]
    return torch.stack(heads, dim=1)


class _Head(torch.autograd.Function):
    """One head: s, t and the largest t of the neighbours (N,), values (N, c)."""

    @staticmethod
    def forward(
        ctx: Any,
        s: Tensor,
        t: Tensor,
        top: Tensor,
        v: Tensor,
        pattern: Pattern,
        transposed: Pattern,
        row: Tensor,
        slope: float,
    ) -> Tensor:
        scores = s.index_select(0, row).add_(t.index_select(0, pattern.narrow.column))
        largest = leaky_relu(s + top, slope).index_select(0, row)
        weights = leaky_relu(scores, slope).sub_(largest).exp_()
        # With a column of ones, one pass gives the sum of the weights too.
        with_ones = torch.cat([v, torch.ones_like(v[:, :1])], dim=1)
        sums = sparse_product(weights, with_ones, pattern)
        total = sums[:, -1:]
        y = sums[:, :-1] / total
        ctx.pattern, ctx.transposed, ctx.slope = pattern, transposed, slope
        ctx.save_for_backward(weights, scores, with_ones, y, total)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        weights, raw, with_ones, y, total = ctx.saved_tensors
        pattern, transposed, order = ctx.pattern, ctx.transposed, ctx.pattern.narrow.order
        scaled = grads[0] / total
        # The gradient of score ij is alpha_ij (<g_i, v_j> - <g_i, y_i>).
        both = torch.cat([scaled, -(scaled * y).sum(1, keepdim=True)], dim=1)
        scores = inner_products(pattern, both, with_ones).mul_(weights)
        scores = torch.ops.aten.leaky_relu_backward(scores, raw, ctx.slope, False)
        ones = torch.ones_like(total)
        own = sparse_product(scores, ones, pattern).squeeze(1)
        other = sparse_product(scores.index_select(0, order), ones, transposed).squeeze(1)
        values = sparse_product(weights.index_select(0, order), scaled, transposed)
        return own, other, None, values, None, None, None, None


def edge_sum(weights: Tensor, h: Tensor, graph: Neighbourhood) -> Tensor:
    r"""The sums :math:`y_i = \sum_{j \in N(i)} w_{ij} h_j`, with a gradient for both factors.

    Args:
        weights: (E,), in the order of the graph's edges, which are pairs (i, j).
        h: (N, d).
        graph: the graph.

    Returns:
        (N, d); zeros for a node without neighbours.
    """
    row, column = graph.edge_index
    return h.new_zeros(h.shape).index_add(0, row, weights.unsqueeze(-1) * h[column])


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

    search: ClassVar = {"heads": (1, 4, 8), **PeerConfig.search}


class GAT(Peer):
    r"""Graph attention network (Velickovic et al., ICLR 2018), two layers.

    .. math::
        h_i' = \sum_{j \in N(i) \cup i} \alpha_{ij} W h_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j \,
            \mathrm{LeakyReLU}\bigl( a^\top [W h_i \Vert W h_j] \bigr)

    Parameters and numbers are those of PyTorch Geometric's ``GATConv``; where a graph has many
    edges its sums are those of `edge_attention`, and the first linear map is ours, so that features
    may be sparse. Scores have no dropout, and the weights of edges play no role.
    """

    name, title = "gat", "GAT"
    formula = "h_i' = sum_j alpha_ij W h_j"
    reference = "Velickovic et al., ICLR 2018"
    scaling = "O(E d + N d^2)"
    config: GATConfig
    together = False

    def __init__(self, config: GATConfig) -> None:
        super().__init__(config)
        each = max(config.hidden_channels // config.heads, 1)
        width = each * config.heads
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


@dataclass(frozen=True)
class FAGCNConfig(PeerConfig):
    """Settings of `FAGCN`.

    Attributes:
        num_layers: how many rounds.
        eps: the share of the first signal in every round.
    """

    num_layers: int = 4
    eps: float = 0.3

    search: ClassVar = {
        "hidden_channels": WIDTHS,
        "dropout": (0.4, 0.5, 0.6),
        "num_layers": (1, 2, 3, 4, 5, 6, 7, 8),
        "eps": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    }


class FAGCN(Peer):
    r"""Frequency adaptation network (Bo et al., AAAI 2021).

    .. math::
        h_i^{(0)} = \mathrm{ReLU}(W_1 x_i), \qquad
        h_i^{(k)} = \epsilon h_i^{(0)} +
            \sum_{j \in N(i)} \frac{\alpha_{ij}}{\sqrt{d_i d_j}} h_j^{(k-1)}, \qquad
        \alpha_{ij} = \tanh\bigl( g_k^\top [h_i \Vert h_j] \bigr)

    and a linear map at the end. A negative :math:`\alpha` subtracts the neighbour. Dropout acts on
    the features, on :math:`h^{(0)}`, and on the weights of the edges.
    """

    name, title = "fagcn", "FAGCN"
    formula = "h_i' = eps h_i0 + sum_j tanh(g^T [h_i | h_j]) / sqrt(d_i d_j) h_j"
    reference = "Bo, Wang, Shi, Shen, AAAI 2021"
    scaling = "O(K E d + N d^2), K rounds"
    config: FAGCNConfig
    together = False

    def __init__(self, config: FAGCNConfig) -> None:
        super().__init__(config)
        d, rounds = config.hidden_channels, range(config.num_layers)
        self.encoder = FeatureLinear(config.in_channels, d)
        self.dropout = Dropout(config.dropout)
        # The parts of g that meet h_i and h_j; a bias counts once.
        self.receivers = nn.ModuleList(nn.Linear(d, 1) for _ in rounds)
        self.senders = nn.ModuleList(nn.Linear(d, 1, bias=False) for _ in rounds)
        self.score_dropouts = nn.ModuleList(Dropout(config.dropout) for _ in rounds)
        self.last = nn.Linear(d, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All rounds."""
        row, column = graph.edge_index
        root = graph.degree.clamp(min=0).rsqrt().where(graph.degree > 0, 0.0)
        norm = root[row] * graph.edge_weight * root[column]
        first: Tensor = self.dropout(self.encoder(dropped(x, self.input_dropout)).relu())
        h = first
        for receiver, sender, dropout in zip(
            self.receivers, self.senders, self.score_dropouts, strict=True
        ):
            scores = (receiver(h)[row] + sender(h)[column]).squeeze(-1).tanh()
            h = self.config.eps * first + edge_sum(dropout(scores * norm), h, graph)
        y: Tensor = self.last(h)
        return y


class GBKLayer(nn.Module):
    """One convolution of `GBKGNN`.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = FeatureLinear(in_channels, out_channels)
        self.similar = FeatureLinear(in_channels, out_channels, bias=False)
        self.different = FeatureLinear(in_channels, out_channels, bias=False)
        # The parts of the gate that meet h_i and h_j; a bias counts once.
        self.receiver = FeatureLinear(in_channels, 1)
        self.sender = FeatureLinear(in_channels, 1, bias=False)

    def forward(self, h: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """From (N, in_channels) to (N, out_channels)."""
        row, column = graph.edge_index
        gate = (self.receiver(h)[row] + self.sender(h)[column]).squeeze(-1).sigmoid()
        share = graph.edge_weight / graph.degree[row]
        # a W_s + (1 - a) W_d is W_d + a (W_s - W_d): one sum with learned weights, not two.
        other = self.different(h)
        mixed = edge_sum(gate * share, self.similar(h) - other, graph)
        y: Tensor = self.own(h) + graph.matrix("row") @ other + mixed
        return y


class GBKGNN(Convolutions):
    r"""Gated bi-kernel network (Du et al., WWW 2022).

    .. math::
        h_i' = \sigma\Bigl( W_f h_i + \frac{1}{|N(i)|} \sum_{j \in N(i)}
            \alpha_{ij} W_s h_j + (1 - \alpha_{ij}) W_d h_j \Bigr), \qquad
        \alpha_{ij} = \mathrm{sigmoid}\bigl( w_g^\top [h_i \Vert h_j] \bigr)

    The paper also trains the gate to tell whether two training nodes have the same class; here it
    learns from the loss of the task alone. The authors' code differs from the formula in three
    places. It has :math:`h_i` instead of :math:`h_j` behind :math:`W_d`, and a leaky ReLU inside of
    the sigmoid. For even widths it has the two kernels side by side, each of half the width.
    """

    name, title = "gbkgnn", "GBK-GNN"
    formula = "h_i' = s(W_f h_i + mean_j (a_ij W_s h_j + (1 - a_ij) W_d h_j))"
    reference = "Du et al., WWW 2022"
    scaling = "O(E d + N d^2)"
    config: LayersConfig
    together = False

    def __init__(self, config: LayersConfig) -> None:
        super().__init__(config, config.num_layers)
        self.layers = self.for_each(GBKLayer)
