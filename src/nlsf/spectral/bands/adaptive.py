"""Families that follow the eigenvalues: by eigenspace, by quantiles, heavy ones apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from nlsf.errors import BandError, SignalError
from nlsf.spectral.bands.base import Bands, whole
from nlsf.spectral.bands.edges import IntervalBands, UniformBands
from nlsf.spectral.eigen.spectrum import Demand, Spectrum


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

    def places(self) -> tuple[list[tuple[float, float]], str]:
        """One step for each eigenspace."""
        return [(float(j), j + 1.0) for j in range(self.J)], "eigenspaces from the lowest"


@dataclass(frozen=True)
class QuantileBands(Bands):
    """S bands with equal numbers of eigenvalues, or with equal energy of a signal.

    Eigenspaces are not cut, so a heavy one can leave its neighbours empty. The bands need the
    complete spectrum of the graph that they are fitted to.

    Args:
        S: number of bands.
        of: ``"eigenvalues"``: the bands of every graph follow its own eigenvalues;
            ``"energy"``: call `fit` with a signal first, which gives fixed bands.
    """

    S: int = 8
    of: Literal["eigenvalues", "energy"] = "eigenvalues"

    def __post_init__(self) -> None:
        whole("S", self.S)
        if self.of not in ("eigenvalues", "energy"):
            raise BandError(f"of must be 'eigenvalues' or 'energy', not {self.of!r}.")

    @property
    def n_bands(self) -> int:
        """S."""
        return self.S

    @property
    def covers_all(self) -> bool:
        """Always."""
        return True

    def demand(self) -> Demand:
        """The complete spectrum."""
        return Demand()

    def assign(self, spectrum: Spectrum) -> Tensor:
        """The quantile of each eigenpair."""
        if self.of == "energy":
            raise BandError(
                "Bands of equal energy depend on a signal: call bands.fit(spectrum, signal) and "
                "use what it returns."
            )
        return self.fit(spectrum).assign(spectrum)

    def fit(self, spectrum: Spectrum, signal: Tensor | None = None) -> IntervalBands:
        """The quantiles of this spectrum (and signal) as fixed intervals.

        Args:
            spectrum: complete.
            signal: (..., N, d), for ``of="energy"``: the energy is summed over all but the nodes.
        """
        self.demand().check(spectrum)
        if self.of == "eigenvalues":
            weight = spectrum.multiplicities.to(torch.float64)
        elif signal is None:
            raise BandError("Bands of equal energy need a signal: bands.fit(spectrum, signal).")
        else:
            weight = _energy(spectrum, signal)
        share = weight.cumsum(0) / weight.sum().clamp(min=torch.finfo(torch.float64).tiny)
        wanted = torch.arange(1, self.S, dtype=torch.float64) / self.S
        # A share that reaches its quantile up to rounding ends the band there.
        last = torch.searchsorted(share, wanted - 1e-12).clamp(max=max(share.numel() - 1, 0))
        frequency = spectrum.eigenspace_frequencies
        ends = frequency[last].tolist() if share.numel() else [0.0] * (self.S - 1)
        edges = [0.0, *ends, math.inf]
        return IntervalBands(pairwise(edges))

    def places(self) -> tuple[list[tuple[float, float]], str]:
        """Equal shares."""
        return [(j / self.S, (j + 1) / self.S) for j in range(self.S)], f"share of {self.of}"


def _energy(spectrum: Spectrum, signal: Tensor) -> Tensor:
    if signal.ndim < 2 or signal.shape[-2] != spectrum.num_nodes:
        raise SignalError(
            f"The signal must have the shape (..., {spectrum.num_nodes}, channels), "
            f"not {tuple(signal.shape)}."
        )
    coefficients = spectrum.vectors.mH @ signal.to(spectrum.vectors.dtype)
    energy = coefficients.abs().square().to(torch.float64).sum(-1)
    energy = energy.reshape(-1, spectrum.num_pairs).sum(0)
    if not energy.sum() > 0:
        raise SignalError("The signal is zero or not finite: it has no energy to divide.")
    return torch.zeros(spectrum.num_eigenspaces, dtype=torch.float64).index_add(
        0, spectrum.eigenspaces, energy
    )


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

    def places(self) -> tuple[Sequence[tuple[float, float]], str]:
        """Those of the base: an atom can lie anywhere."""
        places, axis = self.base.places()
        return places, f"{axis} (of the base, without the atoms)"

    def heaviest(self, spectrum: Spectrum) -> Tensor:
        """The numbers of the eigenspaces that are atoms, heaviest first, at most ``atoms``."""
        count = spectrum.multiplicities
        heavy = count >= max(2.0, self.share * spectrum.num_nodes)
        order = torch.sort(count, descending=True, stable=True).indices
        return order[heavy[order]][: self.atoms]
