"""Bands: partitions of the spectrum, by families.

All bands live on the frequency axis (`Spectrum.frequencies`; for a Laplacian the eigenvalues), all
are half-open ``(low, high]`` with the first one closed at 0, and all leave the rest to the
complement, which is numbered last. An eigenspace always lies in one band as a whole (but for
`PolynomialBands`, which overlap).

| family | bands |
|---|---|
| `IndexBands` | the first J eigenspaces, one each |
| `DyadicBands` | ``bandwidth * (r^(S-j+1), r^(S-j)]`` |
| `UniformBands` | S of equal width |
| `AffineGeometricBands` | edges ``a r^j - b`` |
| `IntervalBands` | intervals of your choice |
| `QuantileBands` | equal numbers of eigenvalues, or equal energy of a signal |
| `AtomBands` | eigenvalues of large multiplicity apart from the others |
| `PolynomialBands` | the bands of another family with smooth edges, without eigenvectors |
"""

from nlsf.spectral.bands.adaptive import AtomBands, IndexBands, QuantileBands
from nlsf.spectral.bands.base import Bands
from nlsf.spectral.bands.edges import AffineGeometricBands, DyadicBands, IntervalBands, UniformBands
from nlsf.spectral.bands.polynomial import PolynomialBands, sharp_bands

__all__ = [
    "AffineGeometricBands",
    "AtomBands",
    "Bands",
    "DyadicBands",
    "IndexBands",
    "IntervalBands",
    "PolynomialBands",
    "QuantileBands",
    "UniformBands",
    "sharp_bands",
]
