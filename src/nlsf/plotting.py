"""Pictures of spectra. Needs the extra ``nlsf[plot]``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlsf.spectral import Bands, Spectrum
from nlsf.spectral.lens.summary import summarize
from nlsf.store.files import whole_file

# Okabe and Ito: told apart by people who see few colours, and in grey.
_BAR, _LINE, _ENERGY = "#56B4E9", "#D55E00", "#009E73"
_SHADES = ("#f4f4f4", "#e3e3e3")


def plot_spectra(
    spectra: Sequence[Spectrum], bands: Bands, x: Tensor, path: str | Path, *, title: str = ""
) -> Path:
    """Draws complete spectra with their bands, one row each, and writes the picture.

    On the left the density of the eigenvalues over the shaded bands, with the cumulative share as a
    line; on the right, for each band, its share of all eigenvalues and of the signal's energy.

    Args:
        spectra: complete ones.
        bands: the bands to shade.
        x: (N, d), the signal whose energy is divided.
        path: the file to write; its ending says which format.
        title: over the whole picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6 * len(spectra)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(spectra), 2, squeeze=False, width_ratios=(3, 2))
    for (left, right), spectrum in zip(axes, spectra, strict=True):
        _density(left, spectrum, bands)
        _shares(right, spectrum, bands, x)
    if title:
        figure.suptitle(title)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        figure.savefig(file, dpi=120, format=path.suffix.lstrip(".") or "png")
    return path


def _density(axes: Any, spectrum: Spectrum, bands: Bands) -> None:
    frequency = spectrum.frequencies.numpy()
    assigned = bands.assign(spectrum)
    end = 0.0
    for j in range(bands.n_bands):
        inside = spectrum.frequencies[assigned == j]
        if inside.numel():
            start, end = end, max(end, float(inside.max()))
            axes.axvspan(start, end, color=_SHADES[j % 2], lw=0, zorder=0)
    axes.hist(frequency, bins=120, color=_BAR, label="eigenvalues (count)", zorder=2)
    axes.set_xlim(0, spectrum.bandwidth or 1)
    axes.set_xlabel(f"eigenvalue of {spectrum.name} (bands shaded)")
    axes.set_ylabel("eigenvalues")
    share = axes.twinx()
    rank = torch.arange(1, len(frequency) + 1) / max(len(frequency), 1)
    share.step(frequency, rank.numpy(), where="post", color=_LINE, lw=1.5)
    share.set_ylim(0, 1.02)
    share.set_ylabel("cumulative share", color=_LINE)
    names = {"L": "combinatorial Laplacian L", "N": "normalised Laplacian N"}
    kind = names.get(spectrum.name, f"operator {spectrum.name}")
    axes.set_title(f"Spectrum of the {kind}", loc="left", fontsize=11)


def _shares(axes: Any, spectrum: Spectrum, bands: Bands, x: Tensor) -> None:
    rows = summarize(spectrum, bands, x)
    place = range(len(rows))
    axes.bar(
        [i - 0.2 for i in place],
        [100 * row.dimension / max(spectrum.num_nodes, 1) for row in rows],
        width=0.4,
        color=_BAR,
        label="of the eigenvalues",
    )
    axes.bar(
        [i + 0.2 for i in place],
        [100 * row.energy for row in rows],
        width=0.4,
        color=_ENERGY,
        label="of the features' energy",
    )
    axes.set_xticks(list(place), [str(i + 1) for i in place])
    axes.set_xlabel("band, from the lowest frequency")
    axes.set_ylabel("share in %")
    axes.legend(frameon=False)
    axes.set_title("What each band holds", loc="left", fontsize=11)
