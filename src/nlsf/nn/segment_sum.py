"""Sums over the nodes of each graph, for many models at once: `segment_sum`."""

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


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(y: Tensor, index: Tensor, count: int) -> Tensor:
        *leading, _, d = y.shape
        place = _places(index, leading, count)
        sums = y.new_zeros(math.prod(leading) * count, d)
        return sums.index_add_(0, place, y.reshape(-1, d)).reshape(*leading, count, d)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        y, index, ctx.count = inputs
        ctx.shape = y.shape
        ctx.save_for_backward(index)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        place = _places(index, ctx.shape[:-2], ctx.count)
        rows = grads[0].reshape(-1, ctx.shape[-1]).index_select(0, place)
        return rows.reshape(ctx.shape), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], y: Tensor, index: Tensor, count: int
    ) -> tuple[Tensor, int]:
        y, index = (
            t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip((y, index), in_dims[:2], strict=True)
        )
        # An index that an inner batch shared gets its dimensions, of size one.
        inner = (None,) * (y.ndim - 1 - index.ndim)
        return segment_sum(y, index[:, *inner], count), 0


def _places(index: Tensor, leading: Sequence[int], count: int) -> Tensor:
    """The segments of all rows, numbered through over the leading dimensions: (rows in all,)."""
    members = torch.arange(math.prod(leading)).to(index).reshape(*leading, 1)
    return (index + count * members).flatten()
