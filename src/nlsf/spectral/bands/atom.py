"""Bands that set heavy eigenvalues apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands.base import Bands, whole
from nlsf.spectral.bands.edges import UniformBands
from nlsf.spectral.demand import Demand
from nlsf.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class AtomBands(Bands):
    """Another family of bands, out of which the heaviest eigenvalues get a band of their own.

    Real graphs have eigenvalues of enormous multiplicity: nodes with the same neighbours put them
    at 1 for the normalised Laplacian (half of the spectrum of some web graphs). Such an *atom* of
    the spectral density mixes with whatever shares its band, unless it is alone.

    The bands of ``base`` come first, without the atoms; then the atoms, the heaviest first. A graph
    with fewer atoms has empty bands there.

    Args:
        base: the bands of everything else.
        atoms: how many atoms to look for.
        share: an eigenspace is an atom when it holds at least this share of all eigenvalues (and
            more than one).
    """

    base: Bands = field(default_factory=UniformBands)
    atoms: int = 2
    share: float = 0.02

    def __post_init__(self) -> None:
        whole("atoms", self.atoms)
        if not 0 < self.share <= 1:
            raise BandError(f"share must lie between 0 and 1, not {self.share!r}.")

    @property
    def n_bands(self) -> int:
        """The bands of the base and the atoms."""
        return self.base.n_bands + self.atoms

    @property
    def covers_all(self) -> bool:
        """Whether the base does."""
        return self.base.covers_all

    def demand(self) -> Demand:
        """The complete spectrum: an atom can lie anywhere."""
        return Demand()

    def assign(self, spectrum: Spectrum) -> Tensor:
        """The base's band, unless the eigenspace is an atom."""
        band = self.base.assign(spectrum)
        band = torch.where(band == self.base.n_bands, self.n_bands, band)
        for rank, eigenspace in enumerate(self.heaviest(spectrum).tolist()):
            band[spectrum.eigenspaces == eigenspace] = self.base.n_bands + rank
        return band

    def fit(self, spectrum: Spectrum, signal: Tensor | None = None) -> AtomBands:
        """With a base that no longer adapts; the atoms are those of each graph still."""
        return replace(self, base=self.base.fit(spectrum, signal))

    def heaviest(self, spectrum: Spectrum) -> Tensor:
        """The numbers of the eigenspaces that are atoms, heaviest first, at most ``atoms``."""
        count = spectrum.multiplicities
        heavy = count >= max(2.0, self.share * spectrum.num_nodes)
        order = torch.sort(count, descending=True, stable=True).indices
        return order[heavy[order]][: self.atoms]
