"""Families with fixed edges: dyadic, uniform, affine-geometric, intervals of your choice."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands.base import Bands, finite, whole
from nlsf.spectral.eigen.spectrum import Demand, Spectrum


class _EdgeBands(Bands):
    """Bands ``(e_{j-1}, e_j]``, j = 1..K, with ``e_0 = 0`` included in the first."""

    @abstractmethod
    def edges(self, bandwidth: float) -> Tensor:
        """The edges (K + 1,) on a frequency axis [0, bandwidth], float64."""

    def limits(self, bandwidth: float) -> Tensor:
        """Neighbouring edges."""
        edges = self.edges(bandwidth)
        return torch.stack([edges[:-1], edges[1:]], dim=-1)

    def places(self) -> tuple[list[tuple[float, float]], str]:
        """The limits, where the largest frequency is 1."""
        return list(pairwise(self.edges(1.0).tolist())), "share of the largest frequency"

    def assign(self, spectrum: Spectrum) -> Tensor:
        """The band of each eigenpair, by the mean frequency of its eigenspace.

        A frequency that equals an edge up to the spectrum's ``gap_tol`` lies in the lower band.
        Rounding cannot move it to the next.
        """
        upper = self.edges(spectrum.bandwidth)[1:].to(spectrum.frequencies)
        frequency = spectrum.eigenspace_frequencies
        band = torch.searchsorted(upper, frequency - spectrum.gap_tol)
        if self.covers_all:
            band = band.clamp(max=self.n_bands - 1)
        return band[spectrum.eigenspaces]


@dataclass(frozen=True)
class DyadicBands(_EdgeBands):
    r"""Bands that widen geometrically with the frequency (the paper's choice, Sec. 3.2).

    .. math::
        (\lambda_N r^{S-j+1}, \lambda_N r^{S-j}], \qquad j = 1..K

    and the first band reaches down to 0.

    Args:
        r: decay rate, 0 < r < 1.
        S: number of bands that would cover [0, lam_max].
        K: how many of them to use, from the lowest; S by default. The others are the complement.
    """

    r: float = 0.5
    S: int = 6
    K: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", _count(self.S, self.K))
        if not 0 < self.r < 1:
            raise BandError(f"The decay rate r must lie between 0 and 1, not {self.r!r}.")

    @property
    def n_bands(self) -> int:
        """K."""
        return self.S if self.K is None else self.K

    @property
    def covers_all(self) -> bool:
        """Whether K = S."""
        return self.n_bands == self.S

    def edges(self, bandwidth: float) -> Tensor:
        """0, then bandwidth times r^(S-1), ..., r^(S-K)."""
        power = torch.arange(self.S - 1, self.S - self.n_bands - 1, -1, dtype=torch.float64)
        return torch.cat([torch.zeros(1, dtype=torch.float64), bandwidth * self.r**power])

    def demand(self) -> Demand:
        """Everything up to the last edge, or to the one before it where all is covered."""
        edge = min(self.n_bands, self.S - 1)
        return Demand(fraction=self.r ** (self.S - edge) if edge else 0.0)


@dataclass(frozen=True)
class UniformBands(_EdgeBands):
    r"""Bands of equal width (App. F.8): :math:`((j-1) \lambda_N / S, j \lambda_N / S]`, j = 1..K.

    Args:
        S: number of bands that would cover [0, lam_max].
        K: how many of them to use, from the lowest; S by default.
    """

    S: int = 8
    K: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", _count(self.S, self.K))

    @property
    def n_bands(self) -> int:
        """K."""
        return self.S if self.K is None else self.K

    @property
    def covers_all(self) -> bool:
        """Whether K = S."""
        return self.n_bands == self.S

    def edges(self, bandwidth: float) -> Tensor:
        """0, bandwidth / S, ..., K bandwidth / S."""
        return bandwidth * torch.arange(self.n_bands + 1, dtype=torch.float64) / self.S

    def demand(self) -> Demand:
        """Everything up to the last edge, or to the one before it where all is covered."""
        return Demand(fraction=min(self.n_bands, self.S - 1) / self.S)


@dataclass(frozen=True)
class AffineGeometricBands(_EdgeBands):
    r"""Bands with the edges :math:`a r^j - b`, between dyadic and uniform (App. F.8, open there).

    By default a = b = lam_max / (r^S - 1), so that the edges run from 0 (j = 0) to lam_max (j = S):

    .. math::
        e_j = \lambda_N \frac{r^j - 1}{r^S - 1}, \qquad j = 0..K.

    As r goes to 1 they become uniform; as r grows, dyadic with the decay rate 1/r.

    Args:
        r: growth rate, r > 1.
        S: number of bands that would cover [0, lam_max].
        K: how many of them to use, from the lowest; S by default.
        a: scale in units of the frequency; give ``b`` with it, and S only sets the default of K.
        b: offset.
    """

    r: float = 1.5
    S: int = 8
    K: int | None = None
    a: float | None = None
    b: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", _count(self.S, self.K))
        finite("r", self.r)
        if self.r <= 1:
            raise BandError(f"The growth rate r must be larger than 1, not {self.r!r}.")
        if (self.a is None) != (self.b is None):
            raise BandError("Give both a and b, or neither.")
        if self.a is not None and self.b is not None:
            finite("a", self.a)
            finite("b", self.b)
            if self.a <= 0 or self.a * self.r <= self.b:
                raise BandError(
                    f"The first edge a r - b must be positive, but a = {self.a}, r = {self.r}, "
                    f"b = {self.b}."
                )

    @property
    def n_bands(self) -> int:
        """K."""
        return self.S if self.K is None else self.K

    @property
    def covers_all(self) -> bool:
        """Whether K = S and the edges are fitted to the spectrum (no a and b)."""
        return self.a is None and self.n_bands == self.S

    def edges(self, bandwidth: float) -> Tensor:
        """0, then the K edges."""
        power = self.r ** torch.arange(self.n_bands + 1, dtype=torch.float64)
        if self.a is not None and self.b is not None:
            edges = self.a * power - self.b
            edges[0] = 0.0
            return edges
        return bandwidth * (power - 1.0) / (self.r**self.S - 1.0)

    def places(self) -> tuple[list[tuple[float, float]], str]:
        """The limits; frequencies themselves where ``a`` and ``b`` are given."""
        places, axis = super().places()
        return places, axis if self.a is None else "frequency"

    def demand(self) -> Demand:
        """Everything up to the last edge, or to the one before it where all is covered."""
        if self.a is not None:
            return Demand(frequency=float(self.edges(0.0)[-1]))
        edge = min(self.n_bands, self.S - 1)
        return Demand(fraction=(self.r**edge - 1.0) / (self.r**self.S - 1.0))


def _count(S: int, K: int | None) -> int:
    """K, or S where it is left out: so that both ways to write the same bands are equal."""
    whole("S", S)
    if K is None:
        return S
    whole("K", K)
    if K > S:
        raise BandError(f"K = {K} bands cannot be taken from S = {S}.")
    return K


@dataclass(frozen=True)
class IntervalBands(Bands):
    """Explicit intervals of interest ``(low, high]`` on the frequency axis.

    An interval that starts at 0 includes 0. What lies in none of them is the complement.

    Args:
        intervals: pairs (low, high), ascending and disjoint; the last may end at ``math.inf``.
    """

    intervals: tuple[tuple[float, float], ...]

    def __init__(self, intervals: Iterable[Iterable[float]]) -> None:
        pairs = tuple(tuple(float(end) for end in pair) for pair in intervals)
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise BandError(f"intervals must be pairs (low, high), at least one, not {pairs!r}.")
        end = 0.0
        for low, high in pairs:
            if not end <= low <= high:
                raise BandError(
                    f"intervals must ascend from 0 without overlap, but ({low}, {high}) follows "
                    f"{end}."
                )
            end = high
        object.__setattr__(self, "intervals", pairs)

    @property
    def n_bands(self) -> int:
        """The number of intervals."""
        return len(self.intervals)

    @property
    def covers_all(self) -> bool:
        """Whether they join end to end from 0 to infinity."""
        ends = [0.0, *(high for _, high in self.intervals)]
        joined = all(low == end for (low, _), end in zip(self.intervals, ends, strict=False))
        return joined and ends[-1] == math.inf

    def demand(self) -> Demand:
        """Everything up to the end of the last interval; it may stay implicit if all is covered."""
        last = self.intervals[-1]
        end = last[0] if self.covers_all else last[1]
        return Demand() if end == math.inf else Demand(frequency=end)

    def limits(self, bandwidth: float) -> Tensor:
        """The intervals themselves, whatever the bandwidth."""
        del bandwidth
        return torch.tensor(self.intervals, dtype=torch.float64)

    def places(self) -> tuple[list[tuple[float, float]], str]:
        """The intervals; one without end ends a quarter after the last edge."""
        end = 1.25 * max(e for pair in self.intervals for e in pair if math.isfinite(e)) or 1.0
        return [(low, min(high, end)) for low, high in self.intervals], "frequency"

    def assign(self, spectrum: Spectrum) -> Tensor:
        """The interval of each eigenpair; an end counts as reached within ``gap_tol``."""
        frequency = spectrum.eigenspace_frequencies
        band = torch.full_like(frequency, self.n_bands, dtype=torch.int64)
        for j, (low, high) in enumerate(self.intervals):
            above = frequency > low + spectrum.gap_tol if low > 0 else frequency >= 0
            band[above & (frequency <= high + spectrum.gap_tol) & (band == self.n_bands)] = j
        return band[spectrum.eigenspaces]
