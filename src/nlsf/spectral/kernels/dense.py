"""Dense numerics with gradients of their own: products with one matrix, powers and norms.

The gradient of a norm at zero is zero, and a NaN stays one.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from nlsf.spectral.kernels.transforms import QuickFunction, is_vmapped

_LARGE = 128
"""Matrices with fewer rows or columns stay in the cache: reading them again costs nothing."""


def shared_product(matrix: Tensor, x: Tensor) -> Tensor:
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
    if is_vmapped(x) or (x.ndim == 2 and x.requires_grad and not matrix.requires_grad):
        product: Tensor = _Product.apply(matrix, x)
        return product
    if x.ndim == 2:
        return _product(matrix, x)
    leading, channels = x.shape[:-2], x.shape[-1]
    columns = x.flatten(0, -3).movedim(0, 1).flatten(1)
    y = _product(matrix, columns).unflatten(1, (leading.numel(), channels))
    many: Tensor = y.movedim(1, 0).unflatten(0, leading)
    return many


def _product(matrix: Tensor, x: Tensor) -> Tensor:
    """The product with few columns (b, d), in the order in which the matrix lies in memory.

    Eigenvectors are stored by rows, so :math:`V^T` is by columns; BLAS multiplies that with few
    columns at half the speed of :math:`x^T V`, which is the same.
    """
    by_columns = matrix.stride(0) == 1 and not matrix.is_complex()
    return (x.mT @ matrix.mT).mT.contiguous() if by_columns else matrix @ x


class _Product(QuickFunction):
    """A product with a fixed matrix, whose gradient is one too.

    PyTorch's own gradient would read the matrix in the slow order. Transforms of `torch.func` hide
    leading dimensions, and inside of them it would read the matrix once for each of these.
    """

    @staticmethod
    def forward(matrix: Tensor, x: Tensor) -> Tensor:
        return _product(matrix, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (matrix,) = ctx.saved_tensors
        return None, shared_product(matrix.mH, grads[0])

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        (matrix,) = ctx.saved_tensors
        return shared_product(matrix, tangents[1])

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], matrix: Tensor, x: Tensor
    ) -> tuple[Tensor, int]:
        dim = in_dims[1]
        assert dim is not None  # the matrix is not batched, and something is
        return shared_product(matrix, x.movedim(dim, 0)), 0


def power(base: Tensor, exponent: float) -> Tensor:
    """``base ** exponent`` of what is not negative: 0 at 0 with gradient 0, but 0^0 = 1."""
    if exponent == 0:
        return torch.ones_like(base)
    if exponent == 1:
        return base
    zero = base == 0  # not "> 0": a NaN must stay one
    base = base + zero  # 1 in place of 0
    raised = base.sqrt() if exponent == 0.5 else base**exponent
    return raised.masked_fill(zero, 0.0)


def energy(x: Tensor) -> Tensor:
    """|x|^2, entry by entry, real."""
    # A product, because its gradient costs less than that of a power.
    return x.real.square() + x.imag.square() if x.is_complex() else x * x


def column_energy(x: Tensor) -> Tensor:
    """The sum of |x|^2 over the rows of (..., N, d): (..., 1, d)."""
    return energy(x).sum(-2, keepdim=True)


def relative(norms: Tensor) -> Tensor:
    """Norms (..., B, d) as shares of the whole: divided by their root of squares over the bands."""
    total = column_energy(norms)
    return norms * (total + (total == 0)).rsqrt()


def lp_norm(x: Tensor, p: float) -> Tensor:
    """The L_p norm over the nodes of (..., N, d): (..., d).

    Entries are divided by the largest first, so that no power overflows.
    """
    size = x.abs()
    if x.shape[-2] == 0:
        return size.sum(-2)
    largest = size.amax(-2, keepdim=True)
    if p == math.inf:
        return largest.squeeze(-2)
    largest = largest.detach()
    unit = largest.masked_fill(largest == 0, 1.0)
    return power((size / unit).pow(p).sum(-2), 1 / p) * unit.squeeze(-2)
