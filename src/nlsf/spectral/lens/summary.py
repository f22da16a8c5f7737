"""What a spectrum looks like through its bands: `summarize`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nlsf.spectral.bands import Bands, IndexBands
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.lens.lens import Lens


@dataclass(frozen=True)
class BandSummary:
    """One band of a spectrum.

    Attributes:
        label: which frequencies (or eigenspaces) it holds.
        dimension: how many eigenvalues.
        energy: the share of the signal's energy in it, 0 to 1.
    """

    label: str
    dimension: int
    energy: float


def summarize(spectrum: Spectrum, bands: Bands, x: Tensor) -> list[BandSummary]:
    """Dimension and share of energy of every band that the spectrum has, complement included.

    Args:
        spectrum: as many eigenpairs as the bands need.
        bands: the partition.
        x: (..., N, d), the signal whose energy is divided; its channels are summed.
    """
    lens = Lens.of(spectrum, bands)
    energy = lens(x.to(lens.dtype)).norms().square()
    energy = energy.sum(-1).reshape(-1, lens.n_bands).sum(0)
    share = energy / energy.sum().clamp(min=torch.finfo(energy.dtype).tiny)
    labels = [*_labels(spectrum, bands), "complement"]
    rows = zip(labels, lens.dimension.tolist(), share.tolist(), strict=True)
    return [BandSummary(*row) for row in rows if row[0] != "complement" or not bands.covers_all]


def _labels(spectrum: Spectrum, bands: Bands) -> list[str]:
    """The range of frequencies in each band, as far as they are at hand."""
    if isinstance(bands, IndexBands):
        return [f"eigenspace {j + 1}" for j in range(bands.n_bands)]
    assigned = bands.assign(spectrum)
    labels = []
    for j in range(bands.n_bands):
        inside = spectrum.frequencies[assigned == j]
        if inside.numel() == 0:
            labels.append("empty" if spectrum.is_complete else f"above {spectrum.reach:.4g}")
        elif math.isclose(inside[0], inside[-1], abs_tol=spectrum.gap_tol):
            labels.append(f"{float(inside[0]):.4g}")
        else:
            labels.append(f"{float(inside[0]):.4g} to {float(inside[-1]):.4g}")
    return labels
