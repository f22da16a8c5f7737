"""The lowest eigenpairs of one connected component, by a block method that counts what it found.

`lowest_eigenpairs` is the entrance; `davidson` holds the iteration, `filters` what makes the low
end of the spectrum stand out, `factorization` the count by inertia, `probe` the first look.
"""

from nlsf.spectral.solver.basis import orthonormal_eigh
from nlsf.spectral.solver.lowest import BlockSolution, lowest_eigenpairs
from nlsf.spectral.solver.unfinished import NotConverged, TooManyPairs, UnfinishedError

__all__ = [
    "BlockSolution",
    "NotConverged",
    "TooManyPairs",
    "UnfinishedError",
    "lowest_eigenpairs",
    "orthonormal_eigh",
]
