"""The leading eigenspaces, one band each."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nlsf.spectral.bands.base import Bands, whole
from nlsf.spectral.demand import Demand
from nlsf.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class IndexBands(Bands):
    """Band j is the j-th *eigenspace*, j = 1..J (the paper's index case, Eq. 2).

    A graph with fewer than J eigenspaces has empty bands, where every coefficient is zero.

    Args:
        J: number of eigenspaces.
    """

    J: int

    def __post_init__(self) -> None:
        whole("J", self.J)

    @property
    def n_bands(self) -> int:
        """J."""
        return self.J

    @property
    def covers_all(self) -> bool:
        """No: what lies beyond the J-th eigenspace is the complement."""
        return False

    def demand(self) -> Demand:
        """J eigenspaces, however many eigenpairs that takes."""
        return Demand(eigenspaces=self.J)

    def assign(self, spectrum: Spectrum) -> Tensor:
        """The number of the eigenspace, J from there on."""
        return spectrum.eigenspaces.clamp(max=self.J)
