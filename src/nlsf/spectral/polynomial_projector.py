"""Projections on bands as polynomials of the operator: `PolynomialProjector`."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands import PolynomialBands
from nlsf.spectral.bands.polynomial import band_leakage, product_traces
from nlsf.spectral.chebyshev import ScaledOperator, chebyshev_traces
from nlsf.spectral.decomposition import Decomposition
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.eigen.eigensolve import partial_eigh
from nlsf.spectral.exact_end import ExactEnd
from nlsf.spectral.one_graph import OneGraph
from nlsf.spectral.operators.shift import ShiftOperator
from nlsf.spectral.projector import fitting, on_nodes
from nlsf.spectral.recurrence import chebyshev_filter, chebyshev_moments, chebyshev_terms
from nlsf.spectral.step_series import band_series


class PolynomialDecomposition(Decomposition):
    r"""A signal by its Chebyshev terms :math:`T_k X`, from which every band is a weighted sum.

    Args:
        projector: what it is decomposed with.
        signal: (..., N, d), the signal itself.

    Attributes:
        coefficients: (..., k, d), in the eigenvectors of the exact end, if there is one.
        columns: (N, D), the channels of all signals side by side, without the exact end.
        terms: (K + 1, N, D), their Chebyshev terms.
    """

    projector: PolynomialProjector

    def __init__(self, projector: PolynomialProjector, signal: Tensor) -> None:
        self.projector = projector
        self.signal = signal
        self.coefficients: Tensor | None = None
        if projector.end is not None:
            self.coefficients, signal = projector.end.split(signal)
        self.columns = _columns(signal)
        self.terms = chebyshev_terms(projector.operator, self.columns, projector.bands.order)

    def energies(self) -> Tensor:
        r"""(..., B, d), :math:`\langle x, P_j x \rangle = \sum_k b_{jk} \langle x, T_k x \rangle`.

        They sum to :math:`\|x\|^2`, and are not negative because no :math:`p_j` is.
        """
        moments = chebyshev_moments(self.projector.operator, self.columns, self.terms)
        energies = self._signals(self.projector.series @ moments).clamp(min=0.0)
        if self.coefficients is None or self.projector.end is None:
            return energies
        return energies + self.projector.end.energies(self.coefficients)

    def weighted(self, gain: Tensor) -> Tensor:
        r"""The diagonal synthesis :math:`\sum_k (\sum_j g_j b_{jk}) \odot T_k X`: (..., N, d)."""
        gain = gain.to(self.terms.dtype)
        weights = self.projector.per_term(gain)
        if gain.shape[:-2] == self.signal.shape[:-2]:
            y = self._filtered(_columns(weights))
        else:
            y = (weights.unsqueeze(-2) * self._terms()).sum(-3)
        if self.coefficients is None or self.projector.end is None:
            return y
        return y + self.projector.end.weighted(self.coefficients, gain)

    def mixed(self, r: Tensor) -> Tensor:
        r"""The synthesis :math:`\sum_k T_k X (\sum_j b_{jk} R_j)`: (..., N, d')."""
        r = r.to(self.terms.dtype)
        maps = self.projector.per_term(r.flatten(-2)).unflatten(-1, r.shape[-2:])
        # The channels of all terms side by side: one product for all terms.
        terms = self._terms().movedim(-3, -2).flatten(-2)
        y: Tensor = terms @ maps.flatten(-3, -2)
        if self.coefficients is None or self.projector.end is None:
            return y
        return y + self.projector.end.mixed(self.coefficients, r)

    def part(self, j: int) -> Tensor:
        r"""The projection :math:`\sum_k b_{jk} T_k X` on band j: (..., N, d)."""
        gain = torch.zeros_like(self.projector.series[:, :1])
        gain[j] = 1.0
        return self.weighted(gain.expand(*self.signal.shape[:-2], -1, self.signal.shape[-1]))

    def _filtered(self, weights: Tensor) -> Tensor:
        operator = self.projector.operator
        return self._signals(chebyshev_filter(operator, self.columns, weights, self.terms))

    def _terms(self) -> Tensor:
        """(..., K + 1, N, d)."""
        terms: Tensor = self.terms.unflatten(-1, self._channels)
        return terms.movedim((0, 1), (-3, -2))

    def _signals(self, y: Tensor) -> Tensor:
        """(n, D) as (..., n, d)."""
        apart: Tensor = y.unflatten(-1, self._channels)
        return apart.movedim(0, -2)

    @property
    def _channels(self) -> tuple[int, ...]:
        return (*self.signal.shape[:-2], self.signal.shape[-1])


class PolynomialProjector(OneGraph):
    r"""The projections of one graph on `PolynomialBands`, without an eigenvector.

    .. math::
        P_j = \sum_{k=0}^{K} b_{jk} T_k(\tilde\Delta), \qquad \sum_j P_j = I

    and, where the bands ask for leading eigenpairs V,
    :math:`V_j V_j^* + p_j(\Delta) (I - V V^*)`.

    The terms :math:`T_k(\tilde\Delta) X` come from one recurrence of K sparse products, shared by
    all bands and channels; memory is that of K + 1 signals. The :math:`P_j` overlap near their
    edges, so they are no projections in the strict sense (`leakage` says by how much). They commute
    with all functional shifts of the operator (Def. 1), and so do filters on them, at any order;
    not with the larger group of exact bands (Def. 2), whose shifts mix eigenspaces.

    Args:
        shift: the operator.
        bands: the bands.
        complement: whether what the bands leave out is a last band, or is ignored.
        cache: keep eigenpairs on disk, as in `partial_eigh`, where the bands ask for some.

    Attributes:
        dimension: (B,), float64, :math:`\mathrm{tr} P_j`. The three traces are exact for a graph of
            up to 512 nodes, and otherwise estimated with at most 32 random vectors.
        frequencies: (B,), the mean frequency
            :math:`\mathrm{tr} (P_j \Delta) / \mathrm{tr} P_j`; 0 for an empty band.
        leakage: (B,), :math:`\mathrm{tr} (P_j (I - P_j)) / N`, which is 0 for a projection and at
            most 1/4: the share of the spectrum that the band shares with others.

    Raises:
        BandError: for bands that are not `PolynomialBands`.

    Example:
        >>> import torch
        >>> from nlsf.spectral import PolynomialBands, UniformBands, laplacian
        >>> ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
        >>> shift = laplacian(ring, symmetrize="sum")
        >>> P = PolynomialProjector(shift, PolynomialBands(UniformBands(S=3), order=8))
        >>> x = torch.randn(6, 2, dtype=torch.float64)
        >>> torch.allclose(sum(P.projections(x)), x)
        True
    """

    def __init__(
        self,
        shift: ShiftOperator,
        bands: PolynomialBands,
        *,
        complement: bool = True,
        cache: CacheArgument = None,
    ) -> None:
        limits = None
        self.operator = ScaledOperator.of(shift)
        if isinstance(bands, PolynomialBands):
            limits = bands.base.limits(self.operator.bandwidth)
        if limits is None:
            raise BandError(
                f"A PolynomialProjector takes PolynomialBands, not {type(bands).__name__}: wrap "
                "them, PolynomialBands(base=bands)."
            )
        self.bands = bands
        self.complement = complement
        self.n_bands = bands.n_bands + int(complement)
        series = band_series(limits, self.operator.bandwidth, bands.order, gap=self.operator.gap)
        self.series = series[: self.n_bands]
        self.end: ExactEnd | None = None
        if bands.pairs:
            spectrum = partial_eigh(shift, bands.pairs, cache=cache)
            self.end = ExactEnd.of(spectrum, bands.base, self.n_bands)
        self.dimension, self.frequencies, self.leakage = self._traces()

    def _traces(self) -> tuple[Tensor, Tensor, Tensor]:
        operator, series = self.operator, self.series
        traces = chebyshev_traces(operator, self.bands.order)
        if self.end is not None:
            place = (self.end.frequencies - operator.centre) / operator.half
            every = torch.arange(len(traces), dtype=torch.float64)
            traces = traces - torch.cos(every * place.clamp(-1, 1).arccos()[:, None]).sum(0)
        products = product_traces(traces, self.bands.order)
        leakage = band_leakage(series, products, self.num_nodes)
        dimension = series @ products[:, 0]
        frequency = operator.centre * dimension + operator.half * (series @ products[:, 1])
        if self.end is not None:
            dimension = dimension + self.end.member.sum(0)
            frequency = frequency + self.end.frequencies @ self.end.member
        # A dimension that is a rounding error has no mean frequency.
        some = dimension > 1e-9 * self.num_nodes
        frequency = torch.where(some, frequency / torch.where(some, dimension, 1.0), 0.0)
        frequency = frequency.clamp(0.0, max(operator.bandwidth, 0.0))
        return dimension.clamp(min=0.0), frequency, leakage

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.operator.num_nodes

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the operator."""
        return self.operator.matrix.dtype

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> PolynomialProjector:
        """The same projections in another precision or on another device.

        A real dtype asked of a complex operator sets the precision of its parts.
        """
        if dtype is not None and self.dtype.is_complex and not dtype.is_complex:
            dtype = dtype.to_complex()
        moved = copy.copy(self)
        moved.operator = self.operator.to(dtype=dtype, device=device)
        real = moved.dtype.to_real()
        moved.series = self.series.to(dtype=real, device=device)
        if self.end is not None:
            moved.end = self.end.to(moved.dtype, device)
        for name in ("dimension", "frequencies", "leakage"):
            setattr(moved, name, getattr(self, name).to(device=device))
        return moved

    def decompose(self, x: Tensor, *, check_finite: bool = True) -> PolynomialDecomposition:
        """The Chebyshev terms of a signal: K sparse products.

        Args:
            x: (..., N, d), leading dimensions for many signals on the one graph. A real signal on a
                complex operator becomes complex.
            check_finite: look for NaN and infinity first.

        Raises:
            SignalError: wrong shape or dtype, or a value that is not finite.
        """
        x = fitting(on_nodes(x, self.num_nodes), self.dtype, check_finite=check_finite)
        return PolynomialDecomposition(self, x)

    def per_term(self, per_band: Tensor) -> Tensor:
        """Numbers of bands (..., B, m) as numbers of Chebyshev terms (..., K + 1, m)."""
        return self.series.mT.to(per_band.dtype) @ per_band

    def __repr__(self) -> str:
        dimension = ", ".join(f"{d:.4g}" for d in self.dimension.tolist())
        return (
            f"PolynomialProjector({self.bands}, complement={self.complement}, "
            f"num_nodes={self.num_nodes}, dimension=[{dimension}])"
        )


def _columns(x: Tensor) -> Tensor:
    """Signals (..., n, d) as columns (n, D), the channels of all side by side."""
    return x.movedim(-2, 0).flatten(1) if x.ndim > 2 else x
