"""The mathematics under every filter: operators, spectra, bands, analysis, synthesis, symmetry.

The way of the data, left to right, is the way through the files:

| step | call | gives |
|---|---|---|
| graph to operator | `laplacian`, `adjacency`, `magnetic_laplacian` | `ShiftOperator` |
| operator to eigenpairs | `partial_eigh`, `batched_eigh` | `Spectrum` |
| graph to bands | `Lens.of(operator or spectrum, bands)` | `Lens` |
| signal to bands | `lens(x)` | `View` |
| signal to invariants | `view.norms()` | (..., B, d) norms |
| coefficients to signal | `view.synthesize(r)` | (..., N, d) |
| distance of graph-signals | `spectral_distance` | (...) numbers |
| symmetry | `sample_shift`, `equivariance_error` | `FunctionalShift` |

Families of bands are `DyadicBands`, `IndexBands` and others; `PolynomialBands` need no eigenpairs.

Shape letters: N nodes, d channels, k eigenpairs, B bands (with the complement, unless it is left
out), ``...`` any leading dimensions: many signals on one graph.
"""

from nlsf.spectral.bands import (
    AffineGeometricBands,
    AtomBands,
    Bands,
    DyadicBands,
    IndexBands,
    IntervalBands,
    PolynomialBands,
    QuantileBands,
    UniformBands,
    sharp_bands,
)
from nlsf.spectral.eigen import Demand, Spectrum, SpectrumCache, batched_eigh, partial_eigh
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.lens import Lens, View
from nlsf.spectral.operators import (
    ShiftOperator,
    adjacency,
    laplacian,
    magnetic_laplacian,
)
from nlsf.spectral.symmetry import (
    FunctionalShift,
    equivariance_error,
    invariance_error,
    sample_shift,
    spectral_distance,
)

__all__ = [
    "AffineGeometricBands",
    "AtomBands",
    "Bands",
    "Demand",
    "DyadicBands",
    "FunctionalShift",
    "IndexBands",
    "IntervalBands",
    "Lens",
    "PolynomialBands",
    "QuantileBands",
    "ShiftOperator",
    "SparseSignal",
    "Spectrum",
    "SpectrumCache",
    "UniformBands",
    "View",
    "adjacency",
    "batched_eigh",
    "equivariance_error",
    "invariance_error",
    "laplacian",
    "magnetic_laplacian",
    "partial_eigh",
    "sample_shift",
    "sharp_bands",
    "spectral_distance",
]
