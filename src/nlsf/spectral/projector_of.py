"""The projector that suits the bands: `projector_of`."""

from __future__ import annotations

import torch

from nlsf.spectral.bands import Bands, PolynomialBands
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.eigen.eigensolve import partial_eigh
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.operators.shift import ShiftOperator
from nlsf.spectral.polynomial_projector import PolynomialProjector
from nlsf.spectral.projector import Projector


def projector_of(
    shift: ShiftOperator,
    bands: Bands,
    *,
    complement: bool = True,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    cache: CacheArgument = None,
) -> Projector | PolynomialProjector:
    """The projections of an operator on bands: by eigenvectors, or by polynomials.

    Args:
        shift: the operator.
        bands: the partition; `PolynomialBands` need no eigenvectors.
        complement: as in `Projector`.
        dtype: of the signals; double precision by default.
        device: of the signals.
        cache: keep eigenpairs on disk, as in `partial_eigh`.
    """
    if isinstance(bands, PolynomialBands):
        smooth = PolynomialProjector(shift, bands, complement=complement, cache=cache)
        return smooth.to(dtype, device)
    spectrum = _spectrum(shift, bands, complement, cache).to(dtype=dtype, device=device)
    return Projector(spectrum, bands, complement=complement)


def _spectrum(
    shift: ShiftOperator, bands: Bands, complement: bool, cache: CacheArgument
) -> Spectrum:
    """What the bands need of the spectrum; all of it where that makes the projector smaller.

    Bands that reach far up may need nearly every pair, dyadic ones on L for example, whose highest
    eigenvalues are few and far apart. With the last pairs too, not the last band is implicit but
    the largest one, and training multiplies only the columns of the others.
    """
    spectrum = partial_eigh(shift, bands=bands, cache=cache)
    leaves_nothing_out = complement or bands.covers_all
    if leaves_nothing_out and shift.num_nodes / 2 < spectrum.num_pairs < shift.num_nodes:
        return partial_eigh(shift, cache=cache)
    return spectrum
