"""Sums over the rows of each graph or band, for many models: `segment_sum`, `segment_energy`."""

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
