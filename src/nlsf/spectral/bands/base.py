"""The contract of every family of bands: `Bands`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import ClassVar

from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.eigen.spectrum import Demand, Spectrum
from nlsf.spectral.notebook import boxes, panel


class Bands(ABC):
    """A partition of the spectrum into ``n_bands`` bands and a complement.

    A family is a frozen dataclass that implements the four members below; `Lens` does the
    rest. The band of an eigenpair may depend on its eigenspace, never on the vector chosen in it.

    Attributes:
        exact: whether every eigenspace lies in one band, so that the bands are made of
            eigenvectors. A family that overlaps has a lens of its own, which reads the operator.
    """

    exact: ClassVar[bool] = True

    @property
    @abstractmethod
    def n_bands(self) -> int:
        """The number of bands, the complement not counted; the same for every graph."""

    @property
    @abstractmethod
    def covers_all(self) -> bool:
        """Whether the bands exhaust the spectrum of every graph, so that nothing is left over."""

    @abstractmethod
    def demand(self) -> Demand:
        """The part of the spectrum that must be computed to tell the bands apart.

        The last band may stay implicit where the bands cover everything: it is what remains.
        """

    @abstractmethod
    def assign(self, spectrum: Spectrum) -> Tensor:
        """The band of each eigenpair: (k,), int64, from 0; n_bands stands for the complement."""

    def has_complement(self, asked: bool | None = None) -> bool:
        """Whether a last band holds what these leave out: as asked, or if they leave anything."""
        return not self.covers_all if asked is None else asked

    def fit(self, spectrum: Spectrum, signal: Tensor | None = None) -> Bands:
        """Bands that no longer adapt: fixed to this spectrum (and signal), usable on any graph.

        Families that do not adapt return themselves.
        """
        del spectrum, signal
        return self

    def limits(self, bandwidth: float) -> Tensor | None:
        """The ends (n_bands, 2) of each band on a frequency axis [0, bandwidth], float64.

        ``None`` for families whose bands depend on the eigenvalues themselves.
        """
        del bandwidth
        return None

    def places(self) -> tuple[Sequence[tuple[float, float]], str]:
        """Where a drawing puts each band: its ends on an axis, and the name of the axis.

        A family that has no drawing has no places.
        """
        return [], ""

    def _repr_html_(self) -> str:
        facts = [("bands", f"{self.n_bands:,}")]
        if is_dataclass(self):
            facts += [(f.name, str(getattr(self, f.name))[:200]) for f in fields(self)]
        facts.append(("cover the whole spectrum", "yes" if self.covers_all else "no"))
        return panel(type(self).__name__, facts, boxes(*self.places()))


def whole(name: str, value: int, low: int = 1) -> None:
    """Raises unless ``value`` is a whole number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise BandError(f"{name} must be a whole number of at least {low}, not {value!r}.")


def finite(name: str, value: float) -> None:
    """Raises unless ``value`` is a finite number."""
    if not math.isfinite(value):
        raise BandError(f"{name} must be a finite number, not {value!r}.")
