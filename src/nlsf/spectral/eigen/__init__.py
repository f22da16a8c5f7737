"""Operators to spectra: dense solves, the block solver, the cache, the density of large spectra.

`partial_eigh` is the entrance: `eigensolve` takes the graph apart, `components` chooses the solver
of each part, and `lowest`, `davidson`, `filters` and `basis` are the block method for large ones.
`request` knows what was asked for and where the spectrum ends, `density` what a few products tell.
"""

from nlsf.spectral.eigen.cache import SpectrumCache
from nlsf.spectral.eigen.eigensolve import batched_eigh, partial_eigh
from nlsf.spectral.eigen.spectrum import Demand, Spectrum

__all__ = ["Demand", "Spectrum", "SpectrumCache", "batched_eigh", "partial_eigh"]
