"""What a family of bands needs of a spectrum: `Demand`."""

from __future__ import annotations

from dataclasses import dataclass

from nlsf.errors import BandError
from nlsf.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class Demand:
    """How much of the leading end of a spectrum is needed; at most one field is set, none = all.

    Attributes:
        pairs: at least this many eigenpairs.
        eigenspaces: at least this many eigenspaces.
        fraction: all frequencies up to this fraction of the bandwidth.
        frequency: all frequencies up to this one.
    """

    pairs: int | None = None
    eigenspaces: int | None = None
    fraction: float | None = None
    frequency: float | None = None

    @property
    def is_all(self) -> bool:
        """Whether the complete spectrum is needed."""
        return self == Demand()

    @property
    def is_cut(self) -> bool:
        """Whether everything up to some frequency is needed."""
        return self.fraction is not None or self.frequency is not None

    def cut(self, bandwidth: float) -> float | None:
        """The frequency up to which everything is needed, where that is what is demanded."""
        return self.fraction * bandwidth if self.fraction is not None else self.frequency

    def check(self, spectrum: Spectrum) -> None:
        """Raises a `BandError` that says what to do unless the spectrum holds what is needed."""
        if spectrum.is_complete:
            return
        have = f"the spectrum holds {spectrum.num_pairs} of {spectrum.num_nodes} eigenpairs"
        todo = "compute it with partial_eigh(shift, bands=...)"
        if self.is_all:
            raise BandError(f"These bands need every eigenpair, but {have}; {todo}.")
        if self.pairs is not None and spectrum.num_pairs < self.pairs:
            raise BandError(f"These bands need {self.pairs} eigenpairs, but {have}; {todo}.")
        if self.eigenspaces is not None and spectrum.num_eigenspaces < self.eigenspaces:
            raise BandError(
                f"These bands need {self.eigenspaces} eigenspaces, but {have} in "
                f"{spectrum.num_eigenspaces} eigenspaces; {todo}."
            )
        cut = self.cut(spectrum.bandwidth)
        if cut is not None and not spectrum.reach >= cut:
            raise BandError(
                f"These bands need every eigenpair up to the frequency {cut:.6g}, but {have}, "
                f"known to be all up to {spectrum.reach:.6g}; {todo}."
            )
