"""Products of one matrix with many signals, as one product: `thin_product`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nlsf.spectral.vmapped import is_vmapped

_LARGE = 128
"""Matrices with fewer rows or columns stay in the cache: reading them again costs nothing."""


def thin_product(matrix: Tensor, x: Tensor) -> Tensor:
    """The product of a matrix (a, b) with signals (..., b, d): (..., a, d).

    The same as ``matrix @ x``. A large matrix is read once for all signals, whose channels stand
    side by side, and not once for each; `torch.func.vmap` over the signals is such a product too.

    Args:
        matrix: (a, b), fixed; or (G, a, b) with one a graph, as in ``matmul``.
        x: the signals.
    """
    shared = matrix.ndim == 2 and not is_vmapped(matrix)
    if not shared or min(matrix.shape) < _LARGE or torch.compiler.is_compiling():
        return matrix @ x
    if is_vmapped(x):
        product: Tensor = _Product.apply(matrix, x)  # type: ignore[no-untyped-call]
        return product
    if x.ndim == 2:
        return matrix @ x
    leading, channels = x.shape[:-2], x.shape[-1]
    columns = x.flatten(0, -3).movedim(0, 1).flatten(1)
    y = (matrix @ columns).unflatten(1, (leading.numel(), channels))
    many: Tensor = y.movedim(1, 0).unflatten(0, leading)
    return many


class _Product(torch.autograd.Function):
    """A product inside of a transform of `torch.func`, where leading dimensions are hidden."""

    @staticmethod
    def forward(matrix: Tensor, x: Tensor) -> Tensor:
        return matrix @ x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (matrix,) = ctx.saved_tensors
        return None, thin_product(matrix.mH, grads[0])

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], matrix: Tensor, x: Tensor
    ) -> tuple[Tensor, int]:
        dim = in_dims[1]
        assert dim is not None  # the matrix is not batched, and something is
        return thin_product(matrix, x.movedim(dim, 0)), 0
