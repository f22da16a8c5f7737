"""Intervals of the user's choice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands.base import Bands
from nlsf.spectral.demand import Demand
from nlsf.spectral.spectrum import Spectrum


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

    def assign(self, spectrum: Spectrum) -> Tensor:
        """The interval of each eigenpair; an end counts as reached within ``gap_tol``."""
        frequency = spectrum.eigenspace_frequencies
        band = torch.full_like(frequency, self.n_bands, dtype=torch.int64)
        for j, (low, high) in enumerate(self.intervals):
            above = frequency > low + spectrum.gap_tol if low > 0 else frequency >= 0
            band[above & (frequency <= high + spectrum.gap_tol) & (band == self.n_bands)] = j
        return band[spectrum.eigenspaces]
