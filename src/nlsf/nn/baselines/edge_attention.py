"""Weighted means over neighbours, the weights by a softmax of scores: `edge_attention`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, leaky_relu

from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.spectral.sparse_signal import Pattern, inner_products, sparse_product


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
