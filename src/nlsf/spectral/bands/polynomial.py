"""Bands whose projections are polynomials of the operator, and how sharp they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands.base import Bands, whole
from nlsf.spectral.bands.edges import DyadicBands
from nlsf.spectral.eigen.spectrum import Demand, Spectrum
from nlsf.spectral.kernels.chebyshev import ScaledOperator, chebyshev_traces
from nlsf.spectral.operators.shift import ShiftOperator


@dataclass(frozen=True)
class PolynomialBands(Bands):
    r"""The bands of another family with smooth edges, for which no eigenvector is needed.

    .. math::
        P_j = p_j(\Delta), \qquad p_j(\lambda) \approx 1[e_{j-1} < \lambda \le e_j],
        \qquad 0 \le p_j \le 1, \qquad \sum_j p_j = 1

    Each :math:`p_j` is a Chebyshev series with Jackson's damping: an edge is
    :math:`\pi / (\text{order} + 2)` wide in :math:`\arccos` of the frequency axis scaled to
    [-1, 1], so it is sharper at both ends of the spectrum than in its middle. The cost is one
    sparse product a degree, for all bands together. `Lens.of` applies them to one
    graph or to many.

    Args:
        base: the bands, of a family with fixed edges: `DyadicBands`, `UniformBands`,
            `AffineGeometricBands` or `IntervalBands`.
        order: the degree K of the polynomials.
        pairs: at least so many leading eigenpairs are computed and projected exactly, and the
            polynomials act on what they leave: for narrow bands at the low end.

    Raises:
        BandError: for a base whose edges depend on the eigenvalues, an order below 1, or negative
            pairs.
    """

    exact: ClassVar[bool] = False

    base: Bands = field(default_factory=DyadicBands)
    order: int = 32
    pairs: int = 0

    def __post_init__(self) -> None:
        whole("order", self.order)
        whole("pairs", self.pairs, 0)
        if self.base.limits(1.0) is None:
            raise BandError(
                "Polynomial bands need a base with fixed edges (dyadic, uniform, affine-geometric "
                f"or intervals), and those of {type(self.base).__name__} depend on eigenvalues."
            )

    @property
    def n_bands(self) -> int:
        """The bands of the base."""
        return self.base.n_bands

    @property
    def covers_all(self) -> bool:
        """Whether the base does."""
        return self.base.covers_all

    def demand(self) -> Demand:
        """The leading eigenpairs that are asked for, none by default."""
        return Demand(pairs=self.pairs)

    def assign(self, spectrum: Spectrum) -> Tensor:
        """Raises: a smooth band has a part of every eigenpair.

        Raises:
            BandError: always.
        """
        raise BandError(
            "Polynomial bands act through the operator, not through eigenpairs: use "
            "Lens.of(shift, bands), or the base of the bands."
        )

    def places(self) -> tuple[Sequence[tuple[float, float]], str]:
        """Those of the base."""
        places, axis = self.base.places()
        return places, f"{axis} (the edges are smooth)"


def product_traces(traces: Tensor, order: int) -> Tensor:
    r"""The traces of :math:`T_i T_k = (T_{i+k} + T_{|i-k|}) / 2`: (K + 1, K + 1).

    Args:
        traces: of :math:`T_0, T_1, \dots`, at least 2 K + 1 of them.
        order: K.
    """
    k = torch.arange(order + 1)
    return (traces[k[:, None] + k] + traces[(k[:, None] - k).abs()]) / 2


def band_leakage(series: Tensor, products: Tensor, num_nodes: int) -> Tensor:
    r"""What each band shares with the others, :math:`\mathrm{tr} (P_j (I - P_j)) / N`: (B,).

    It is 0 for a projection, and at most 1/4.

    Args:
        series: (B, K + 1), the coefficients of the bands.
        products: (K + 1, K + 1), of `product_traces`.
        num_nodes: N.
    """
    squares = torch.einsum("jk,kl,jl->j", series, products, series)
    return ((series @ products[:, 0] - squares) / max(num_nodes, 1)).clamp(min=0.0)


def sharp_bands(
    shift: ShiftOperator,
    base: Bands,
    leakage: float = 0.1,
    *,
    complement: bool = True,
    highest: int = 256,
) -> PolynomialBands:
    """Polynomial bands of the lowest order that keeps them apart as wanted on this graph.

    The traces that tell the leakage of every order come from ``highest`` sparse products with at
    most 32 random vectors.

    Args:
        shift: the operator.
        base: the bands, of a family with fixed edges.
        leakage: the largest sum of `band_leakage` over all bands: for two bands, twice the share of
            the spectrum that lies between them, and so on.
        complement: whether what the bands leave out is a band too.
        highest: the largest order that may be chosen.

    Raises:
        BandError: if no order up to ``highest`` is enough, or the base has no fixed edges.

    Example:
        >>> import torch
        >>> from nlsf.spectral import UniformBands, laplacian
        >>> ring = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
        >>> shift = laplacian(ring, symmetrize="sum")
        >>> sharp_bands(shift, UniformBands(S=3), leakage=0.1).order
        20
    """
    if not leakage > 0:
        raise BandError(f"leakage must be positive, not {leakage!r}.")
    PolynomialBands(base, order=highest)  # refuses a base whose edges depend on eigenvalues
    operator = ScaledOperator.of(shift)
    limits = base.limits(operator.bandwidth)
    assert limits is not None
    traces = chebyshev_traces(operator, highest)
    count = base.n_bands + int(complement)

    def total(order: int) -> float:
        series = band_series(limits, operator.bandwidth, order, gap=operator.gap)[:count]
        products = product_traces(traces, order)
        return float(band_leakage(series, products, shift.num_nodes).sum())

    if total(highest) > leakage:
        raise BandError(
            f"Order {highest} has a leakage of {total(highest):.3g}, more than {leakage:.3g}: "
            "allow a higher order, or take wider bands, with no edge on a frequency that many "
            "eigenvalues share."
        )
    low, high = 0, highest  # the order is above low, and at most high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if total(middle) <= leakage else (middle, high)
    return PolynomialBands(base, order=high)


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
