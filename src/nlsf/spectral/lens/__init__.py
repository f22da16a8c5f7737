"""Signals through bands: a `Lens` sees graphs through bands, and a `View` is a signal seen so.

`Lens.of` is the only constructor that others need. Signals that do not change while a model is
trained are fixed: `FixedRows` and `FixedBands` at some nodes of one graph, `FixedNodes` and
`FixedNorms` on many graphs.
"""

from nlsf.spectral.lens.column_view import FixedRows
from nlsf.spectral.lens.columns import ColumnLens
from nlsf.spectral.lens.fixed_norms import FixedNorms
from nlsf.spectral.lens.lens import Lens
from nlsf.spectral.lens.polynomial_view import FixedBands
from nlsf.spectral.lens.polynomials import PolynomialLens
from nlsf.spectral.lens.view import FixedNodes, View

__all__ = [
    "ColumnLens",
    "FixedBands",
    "FixedNodes",
    "FixedNorms",
    "FixedRows",
    "Lens",
    "PolynomialLens",
    "View",
]
