"""Steps and bands as Chebyshev series that stay between 0 and 1."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def jackson_damping(order: int) -> Tensor:
    r"""Jackson's factors :math:`g_0, \dots, g_K` of a Chebyshev series, float64.

    .. math::
        g_k = \frac{(M - k) \cos \frac{\pi k}{M} + \sin \frac{\pi k}{M} \cot \frac{\pi}{M}}{M},
        \qquad M = K + 2

    Their kernel :math:`1/2 + \sum_k g_k \cos k \theta` is not negative: a damped series stays
    between the bounds of the function that it approximates.

    Args:
        order: K, at least 1.
    """
    size = order + 2
    k = torch.arange(order + 1, dtype=torch.float64)
    angle = math.pi * k / size
    return ((size - k) * angle.cos() + angle.sin() / math.tan(math.pi / size)) / size


def step_series(edges: Tensor, order: int) -> Tensor:
    r"""The damped series of the steps :math:`1[t \le e]` on [-1, 1].

    .. math::
        1[t \le e] = 1 - \frac{\theta}{\pi}
            - \sum_{k \ge 1} \frac{2 \sin k \theta}{k \pi} T_k(t), \qquad \theta = \arccos e

    Args:
        edges: (m,), float64. From 1 upwards the step is 1 everywhere, to -1 downwards it is 0.
        order: K.

    Returns:
        (m, K + 1), the coefficients of :math:`T_0, \dots, T_K`.
    """
    theta = edges.clamp(-1, 1).arccos().unsqueeze(-1)
    k = torch.arange(1, order + 1, dtype=torch.float64)
    series = torch.cat([1 - theta / math.pi, -2 * (k * theta).sin() / (k * math.pi)], dim=-1)
    # The sine of a rounded pi is not 0.
    inside = (edges > -1) & (edges < 1)
    flat = torch.zeros_like(series)
    flat[:, 0] = (edges >= 1).to(flat)
    return torch.where(inside.unsqueeze(-1), series, flat) * jackson_damping(order)


def band_series(limits: Tensor, bandwidth: float, order: int, *, gap: float = 0.0) -> Tensor:
    r"""The series of bands and of what they leave out: not negative, with the sum 1.

    A band is the difference of the steps at its ends. A first band that begins at frequency 0 has
    no lower step, and one that ends at the bandwidth or above no upper one.

    Args:
        limits: (n, 2), the ends of each band as frequencies, ascending.
        bandwidth: the largest frequency, which is 1 on the axis of the series; 0 is -1.
        order: K.
        gap: a band that ends so little below the bandwidth reaches it.

    Returns:
        (n + 1, K + 1), the complement last; exactly zero for an empty band.
    """
    low, high = limits.unbind(-1)
    scale = 2 / bandwidth if bandwidth > gap else 0.0

    def place(frequency: Tensor) -> Tensor:
        inner = torch.nan_to_num(frequency) * scale - 1
        return torch.where(frequency >= bandwidth - gap, 1.0, inner)

    begin = place(low)
    if low[0] <= 0:  # also where the bandwidth is 0, and every edge with it
        begin[0] = -1.0
    bands = step_series(place(high), order) - step_series(begin, order)
    rest = -bands.sum(0)
    rest[0] += 1
    # Bands that cover everything leave nothing, not a rounding error.
    rest = torch.where(rest.abs().max() < 1e-13, 0.0, 1.0) * rest
    return torch.cat([bands, rest.unsqueeze(0)])
