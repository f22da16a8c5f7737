"""Norms and powers whose gradient at zero is zero, and in which a NaN stays one."""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
