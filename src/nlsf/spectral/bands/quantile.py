"""Bands that adapt to the density of the spectrum, or to where a signal has its energy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from nlsf.errors import BandError, SignalError
from nlsf.spectral.bands.base import Bands, whole
from nlsf.spectral.bands.interval import IntervalBands
from nlsf.spectral.demand import Demand
from nlsf.spectral.spectrum import Spectrum


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
