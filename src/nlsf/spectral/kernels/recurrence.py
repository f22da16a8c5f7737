"""Chebyshev polynomials of an operator, applied to signals and differentiated by products alone.

All functions take columns (N, D). Inside of `torch.func.vmap` the columns of all members stand side
by side, so that the operator is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nlsf.spectral.kernels.chebyshev import ScaledOperator


def chebyshev_terms(operator: ScaledOperator, x: Tensor, order: int) -> Tensor:
    r"""All :math:`T_k(\tilde\Delta) X`, k = 0..K, by K sparse products.

    Args:
        operator: :math:`\tilde\Delta`.
        x: (N, D).
        order: K, at least 1.

    Returns:
        (K + 1, N, D).
    """
    terms: Tensor = _Terms.apply(operator, x, order)  # type: ignore[no-untyped-call]
    return terms


def chebyshev_moments(operator: ScaledOperator, x: Tensor, terms: Tensor) -> Tensor:
    r"""The moments :math:`\langle x, T_k x \rangle` of every column, from its terms.

    Their gradient, :math:`2 \sum_k c_k T_k x`, needs no product either.

    Args:
        operator: :math:`\tilde\Delta`.
        x: (N, D).
        terms: what `chebyshev_terms` gave for it; not differentiated.

    Returns:
        (K + 1, D), real.
    """
    moments: Tensor = _Moments.apply(operator, x, terms.detach())  # type: ignore[no-untyped-call]
    return moments


def chebyshev_filter(
    operator: ScaledOperator, x: Tensor, weights: Tensor, terms: Tensor | None = None
) -> Tensor:
    r"""A filter of its own for every column, :math:`\sum_k w_k \odot T_k X`.

    With real weights it is the adjoint of itself: the gradient for x is the same filter of the
    gradient for the result, by K sparse products.

    Args:
        operator: :math:`\tilde\Delta`.
        x: (N, D).
        weights: (K + 1, D), in the dtype of x.
        terms: what `chebyshev_terms` gave for x, if it is at hand; not differentiated. Without it
            the sum is Clenshaw's, which keeps no terms.

    Returns:
        (N, D).
    """
    known = None if terms is None else terms.detach()
    y: Tensor = _Filter.apply(operator, x, weights, known)  # type: ignore[no-untyped-call]
    return y


class _Terms(torch.autograd.Function):
    """x to T_0 x, ..., T_K x. Its adjoint is Clenshaw's sum."""

    @staticmethod
    def forward(operator: ScaledOperator, x: Tensor, order: int) -> Tensor:
        terms = x.new_empty(order + 1, *x.shape)
        terms[0] = x
        terms[1] = operator.apply(terms[0])
        for k in range(1, order):
            operator.advance(terms[k - 1], terms[k], terms[k + 1])
        return terms

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.operator, _, ctx.order = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return None, _Sum.apply(ctx.operator, grads[0]), None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], operator: ScaledOperator, x: Tensor, order: int
    ) -> tuple[Tensor, int]:
        columns = _side_by_side(x, in_dims[1], 1, info.batch_size)
        terms = chebyshev_terms(operator, columns, order)
        return _apart(terms, info.batch_size), 2


class _Sum(torch.autograd.Function):
    """y_0, ..., y_K to the sum of T_k y_k. Its adjoint is the recurrence."""

    @staticmethod
    def forward(operator: ScaledOperator, y: Tensor) -> Tensor:
        return _clenshaw(operator, y.shape[0], lambda k: y[k])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.operator, y = inputs
        ctx.order = y.shape[0] - 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return None, chebyshev_terms(ctx.operator, grads[0], ctx.order)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], operator: ScaledOperator, y: Tensor
    ) -> tuple[Tensor, int]:
        columns = _side_by_side(y, in_dims[1], 2, info.batch_size)
        summed: Tensor = _Sum.apply(operator, columns)  # type: ignore[no-untyped-call]
        return _apart(summed, info.batch_size), 1


class _Filter(torch.autograd.Function):
    """x and weights to the sum of w_k T_k x."""

    @staticmethod
    def forward(
        operator: ScaledOperator, x: Tensor, weights: Tensor, terms: Tensor | None
    ) -> Tensor:
        if terms is None:
            return _clenshaw(operator, weights.shape[0], lambda k: x * weights[k])
        y = terms[0] * weights[0]
        for term, weight in zip(terms[1:], weights[1:], strict=True):
            y.addcmul_(term, weight)
        return y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.operator, x, weights, terms = inputs
        ctx.known = terms is not None
        ctx.save_for_backward(x, weights, *([terms] if ctx.known else []))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        x, weights, *known = ctx.saved_tensors
        for_x = for_weights = None
        if ctx.needs_input_grad[1]:
            for_x = chebyshev_filter(ctx.operator, grads[0], weights.conj())
        if ctx.needs_input_grad[2]:
            order = weights.shape[0] - 1
            terms = known[0] if known else chebyshev_terms(ctx.operator, x.detach(), order)
            for_weights = _Products.apply(ctx.operator, x, grads[0], terms)  # type: ignore[no-untyped-call]
        return None, for_x, for_weights, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        operator: ScaledOperator,
        x: Tensor,
        weights: Tensor,
        terms: Tensor | None,
    ) -> tuple[Tensor, int]:
        size = info.batch_size
        columns = _side_by_side(x, in_dims[1], 1, size)
        weights = _side_by_side(weights, in_dims[2], 1, size)
        known = None if terms is None else _side_by_side(terms, in_dims[3], 2, size)
        return _apart(chebyshev_filter(operator, columns, weights, known), size), 1


class _Moments(torch.autograd.Function):
    """x to the moments <x, T_k x>."""

    @staticmethod
    def forward(operator: ScaledOperator, x: Tensor, terms: Tensor) -> Tensor:
        moments = _inner(x, terms)
        return moments.real if x.is_complex() else moments

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.operator, x, terms = inputs
        ctx.save_for_backward(x, terms)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        x, terms = ctx.saved_tensors
        return None, 2 * chebyshev_filter(ctx.operator, x, grads[0].to(x.dtype), terms), None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        operator: ScaledOperator,
        x: Tensor,
        terms: Tensor,
    ) -> tuple[Tensor, int]:
        columns = _side_by_side(x, in_dims[1], 1, info.batch_size)
        known = _side_by_side(terms, in_dims[2], 2, info.batch_size)
        return _apart(chebyshev_moments(operator, columns, known), info.batch_size), 1


class _Products(torch.autograd.Function):
    """x and y to the products <T_k x, y>: what the weights of a filter have for a gradient."""

    @staticmethod
    def forward(operator: ScaledOperator, x: Tensor, y: Tensor, terms: Tensor) -> Tensor:
        return _inner(y, terms)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.operator, x, y, terms = inputs
        ctx.save_for_backward(x, y, terms)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        x, y, terms = ctx.saved_tensors
        for_x = chebyshev_filter(ctx.operator, y, grads[0].conj())
        return None, for_x, chebyshev_filter(ctx.operator, x, grads[0], terms), None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        operator: ScaledOperator,
        x: Tensor,
        y: Tensor,
        terms: Tensor,
    ) -> tuple[Tensor, int]:
        size = info.batch_size
        columns = [_side_by_side(t, d, 1, size) for t, d in zip((x, y), in_dims[1:], strict=False)]
        known = _side_by_side(terms, in_dims[3], 2, size)
        products: Tensor = _Products.apply(operator, *columns, known)  # type: ignore[no-untyped-call]
        return _apart(products, size), 1


def _clenshaw(operator: ScaledOperator, count: int, y: Callable[[int], Tensor]) -> Tensor:
    """The sum of T_k y_k, from the last of ``count`` to the first; y_k is computed when needed."""
    current = y(count - 1).clone(memory_format=torch.contiguous_format)
    above = torch.zeros_like(current)
    for k in range(count - 2, 0, -1):
        # y_k + 2 A current - above, written over what is not needed any more.
        operator.advance(above, current, above)
        above += y(k)
        above, current = current, above
    return y(0) - above + operator.apply(current)


def _inner(x: Tensor, terms: Tensor) -> Tensor:
    """The inner products of the columns of each term with those of x: (K + 1, D)."""
    return torch.stack([(term.conj() * x).sum(0) for term in terms])


def _side_by_side(x: Tensor, dim: int | None, at: int, size: int) -> Tensor:
    """The columns of all members, where the members and their columns are dimension ``at``."""
    if dim is None:
        return x.unsqueeze(at).expand(*x.shape[:at], size, *x.shape[at:]).flatten(at)
    return x.movedim(dim, at).flatten(at)


def _apart(x: Tensor, size: int) -> Tensor:
    """The inverse, for the last dimension: (..., M D) to (..., M, D)."""
    apart: Tensor = x.unflatten(-1, (size, x.shape[-1] // size))
    return apart
