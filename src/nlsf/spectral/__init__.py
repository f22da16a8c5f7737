"""The mathematics under every filter: operators, spectra, bands, analysis, synthesis, symmetry.

The way of the data, left to right, is the way through the files:

| step | call | gives |
|---|---|---|
| graph to operator | `laplacian`, `adjacency`, `magnetic_laplacian` | `ShiftOperator` |
| operator to eigenpairs | `partial_eigh`, `batched_eigh` | `Spectrum` |
| eigenpairs to bands | `DyadicBands`, `IndexBands`, ... in a `Projector` | projections |
| operator to bands | `PolynomialBands` in a `PolynomialProjector` | the same, without eigenpairs |
| signal to invariants | `analyze` | (..., B, d) norms |
| distance of graph-signals | `spectral_distance` | (...) numbers |
| coefficients to signal | `synthesize` | (..., N, d) |
| symmetry | `sample_shift`, `equivariance_error` | `FunctionalShift` |

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
from nlsf.spectral.batch_projector import BatchProjector
from nlsf.spectral.decomposition import BandProjector, Decomposition
from nlsf.spectral.eigen import Demand, Spectrum, SpectrumCache, batched_eigh, partial_eigh
from nlsf.spectral.operators import (
    ShiftOperator,
    adjacency,
    adjacency_matrix,
    laplacian,
    magnetic_laplacian,
)
from nlsf.spectral.polynomial_batch import PolynomialBatchProjector
from nlsf.spectral.polynomial_projector import PolynomialProjector
from nlsf.spectral.prepared_bands import PreparedBands
from nlsf.spectral.prepared_graphs import PreparedGraphs
from nlsf.spectral.prepared_rows import PreparedRows
from nlsf.spectral.projector import Projector
from nlsf.spectral.projector_of import projector_of
from nlsf.spectral.symmetry import (
    FunctionalShift,
    equivariance_error,
    invariance_error,
    random_unitary,
    sample_shift,
    spectral_distance,
)
from nlsf.spectral.transform import analyze, synthesize

__all__ = [
    "AffineGeometricBands",
    "AtomBands",
    "BandProjector",
    "Bands",
    "BatchProjector",
    "Decomposition",
    "Demand",
    "DyadicBands",
    "FunctionalShift",
    "IndexBands",
    "IntervalBands",
    "PolynomialBands",
    "PolynomialBatchProjector",
    "PolynomialProjector",
    "PreparedBands",
    "PreparedGraphs",
    "PreparedRows",
    "Projector",
    "QuantileBands",
    "ShiftOperator",
    "Spectrum",
    "SpectrumCache",
    "UniformBands",
    "adjacency",
    "adjacency_matrix",
    "analyze",
    "batched_eigh",
    "equivariance_error",
    "invariance_error",
    "laplacian",
    "magnetic_laplacian",
    "partial_eigh",
    "projector_of",
    "random_unitary",
    "sample_shift",
    "sharp_bands",
    "spectral_distance",
    "synthesize",
]
