"""Rows of many graphs: sums over each graph or band, gains of each graph, places of nodes.

All of it works for many models at once, and none of it loops over graphs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def segment_sum(y: Tensor, index: Tensor, count: int) -> Tensor:
    r"""The sums :math:`z_g = \sum_{i : s_i = g} y_i` over the rows of each segment.

    It is ``index_add``, which `torch.func.vmap` would do model by model, with a gradient of the
    size of all models for each of them.

    Args:
        y: (..., N, d).
        index: (N,), or (..., N), the segment of each row, 0 to count - 1.
        count: how many segments there are.

    Returns:
        (..., count, d), zeros for a segment without rows.
    """
    sums: Tensor = _SegmentSum.apply(y, index, count)  # type: ignore[no-untyped-call]
    return sums


def segment_energy(y: Tensor, index: Tensor, count: int) -> Tensor:
    r"""The sums :math:`z_g = \sum_{i : s_i = g} y_i^2` of real rows; arguments as in `segment_sum`.

    Its gradient :math:`2 y_i \nabla z_{s_i}` reads the rows once, where that of a square before the
    sum goes over them five times.
    """
    sums: Tensor = _SegmentEnergy.apply(y, index, count)  # type: ignore[no-untyped-call]
    return sums


def segment_places(index: Tensor, leading: Sequence[int], count: int) -> Tensor:
    """The segments of all rows, numbered through over the leading dimensions: (rows in all,)."""
    members = torch.arange(math.prod(leading)).to(index).reshape(*leading, 1)
    return (index + count * members).flatten()


class _Segments(torch.autograd.Function):
    """How both are computed for many models."""

    @classmethod
    def vmap(
        cls, info: Any, in_dims: tuple[int | None, ...], y: Tensor, index: Tensor, count: int
    ) -> tuple[Tensor, int]:
        y, index = (
            t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip((y, index), in_dims[:2], strict=True)
        )
        # An index that an inner batch shared gets its dimensions, of size one.
        inner = (None,) * (y.ndim - 1 - index.ndim)
        return cls.apply(y, index[:, *inner], count), 0  # type: ignore[no-untyped-call]


class _SegmentSum(_Segments):
    @staticmethod
    def forward(y: Tensor, index: Tensor, count: int) -> Tensor:
        return _added(y, index, count)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        y, index, _ = inputs
        ctx.shape = y.shape
        ctx.save_for_backward(index)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        return _spread(grads[0], index, ctx.shape), None, None


class _SegmentEnergy(_Segments):
    @staticmethod
    def forward(y: Tensor, index: Tensor, count: int) -> Tensor:
        return _added(y.square(), index, count)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        y, index = ctx.saved_tensors
        return _spread(2 * grads[0], index, y.shape) * y, None, None


def _added(y: Tensor, index: Tensor, count: int) -> Tensor:
    """(..., N, d) to (..., count, d)."""
    *leading, _, d = y.shape
    sums = y.new_zeros(math.prod(leading) * count, d)
    sums.index_add_(0, segment_places(index, leading, count), y.reshape(-1, d))
    return sums.reshape(*leading, count, d)


def _spread(sums: Tensor, index: Tensor, shape: torch.Size) -> Tensor:
    """Gives each row what its segment has: (..., count, d) to the shape (..., N, d)."""
    places = segment_places(index, shape[:-2], sums.shape[-2])
    return sums.reshape(-1, shape[-1]).index_select(0, places).reshape(shape)


def segment_filter(projections: Tensor, gains: Tensor, index: Tensor) -> Tensor:
    r"""The sums :math:`y_i = \sum_j g_{s_i, j} \odot x_{i, j}` over the bands of each row.

    It is ``(projections * gains[index]).sum(-2)``, whose gradient `torch.func.vmap` would add up
    entry by entry: here whole rows of bands and channels are copied and added, which takes a fifth
    of the time.

    Args:
        projections: (..., N, B, d).
        gains: (..., G, B, d), one set a segment.
        index: (N,), or (..., N), the segment of each row, 0 to G - 1.

    Returns:
        (..., N, d).
    """
    sums: Tensor = _SegmentFilter.apply(projections, gains, index)  # type: ignore[no-untyped-call]
    return sums


class _SegmentFilter(torch.autograd.Function):
    @staticmethod
    def forward(projections: Tensor, gains: Tensor, index: Tensor) -> Tensor:
        return (_rows(gains, index, projections.shape) * projections).sum(-2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, Tensor | None, None]:
        projections, gains, index = ctx.saved_tensors
        grad = grads[0].unsqueeze(-2)
        to_projections = to_gains = None
        if ctx.needs_input_grad[0]:
            to_projections = _rows(gains, index, projections.shape) * grad
        if ctx.needs_input_grad[1]:
            places = segment_places(index, projections.shape[:-3], gains.shape[-3])
            width = math.prod(gains.shape[-2:])
            to_gains = gains.new_zeros(gains.shape[:-2].numel(), width)
            to_gains.index_add_(0, places, (projections * grad).reshape(-1, width))
            to_gains = to_gains.reshape(gains.shape)
        return to_projections, to_gains, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *tensors: Tensor) -> tuple[Tensor, int]:
        projections, gains, index = (
            t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip(tensors, in_dims, strict=True)
        )
        # An index that an inner batch shared gets its dimensions, of size one.
        inner = (None,) * (projections.ndim - 2 - index.ndim)
        return segment_filter(projections, gains, index[:, *inner]), 0


def _rows(gains: Tensor, index: Tensor, shape: torch.Size) -> Tensor:
    """The gains of each row's segment: of the given shape (..., N, B, d)."""
    places = segment_places(index, shape[:-3], gains.shape[-3])
    return gains.reshape(-1, math.prod(shape[-2:])).index_select(0, places).reshape(shape)


def nodes_of_graphs(sizes: Tensor, models: Tensor, least: int = 0) -> tuple[Tensor, Tensor]:
    """Where the nodes of chosen graphs are in the union of all graphs.

    Args:
        sizes: (G,), the number of nodes of each graph; their nodes follow each other.
        models: (M, R), the graphs that each of M models looks at.
        least: a number of places that there are at least.

    Returns:
        The nodes, and the place 0 to R - 1 of each one's graph in its row: both (M, n), for the
        largest number n of nodes of a row. Rows with fewer nodes end with node 0, of graph R.
    """
    count, graphs = models.shape
    chosen = sizes[models]
    first = (sizes.cumsum(0) - sizes)[models].flatten()
    slot = torch.repeat_interleave(chosen.flatten())
    number = torch.arange(len(slot)).to(slot)
    start = chosen.flatten().cumsum(0) - chosen.flatten()
    total = chosen.sum(1)
    model = slot // graphs
    place = number - (total.cumsum(0) - total)[model]
    width = max(int(total.max()), least) if count else 0
    node = torch.zeros(count, width, dtype=torch.int64, device=slot.device)
    graph = torch.full_like(node, graphs)
    node[model, place] = first[slot] + number - start[slot]
    graph[model, place] = slot % graphs
    return node, graph


def padded_places(sizes: Tensor, width: int) -> Tensor:
    """(N_1 + ... + N_G,): where each node stands when every graph has ``width`` places."""
    graph = torch.repeat_interleave(sizes)
    first = sizes.cumsum(0) - sizes
    return graph * width + torch.arange(len(graph)).to(sizes) - first[graph]
