"""Everything that nlsf raises or warns about on purpose.

All errors derive from `NLSFError`; each also derives from the built-in error that a caller would
expect (`ValueError`, `MemoryError`, ...), so that existing ``except`` clauses keep working.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BandError",
    "CacheWarning",
    "DataError",
    "GraphError",
    "MemoryBudgetError",
    "ModelError",
    "NLSFError",
    "NotSymmetricError",
    "NumericalWarning",
    "SelfLoopWarning",
    "SignalError",
    "SpectrumError",
]


class NLSFError(Exception):
    """Base class of every error of this package."""


class GraphError(NLSFError, ValueError):
    """The graph is malformed: the message names the offending edge or entry."""


class NotSymmetricError(GraphError):
    """The operator is not Hermitian, so it has no orthogonal eigenspaces."""


class DataError(NLSFError, FileNotFoundError):
    """A data file is not where it should be; the message says where to put it."""


class SignalError(NLSFError, ValueError):
    """The signal does not fit the graph: wrong shape or dtype, or a value that is not finite."""


class BandError(NLSFError, ValueError):
    """The bands are malformed, or need eigenpairs that the spectrum does not hold."""


class ModelError(NLSFError, ValueError):
    """A layer or model is asked to be something that it cannot be; the message says what can."""


class MemoryBudgetError(NLSFError, MemoryError):
    """The request would not fit in memory; raised before the work starts.

    Attributes:
        needed: estimated bytes.
        limit: bytes that may be used.
    """

    def __init__(self, message: str, *, needed: int, limit: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.limit = limit


class SpectrumError(NLSFError, RuntimeError):
    """An eigensolver gave up; what it had found is attached.

    Attributes:
        values: the eigenvalues that it had.
        residuals: the residual norm of each.
    """

    def __init__(
        self, message: str, *, values: NDArray[np.float64], residuals: NDArray[np.float64]
    ) -> None:
        super().__init__(message)
        self.values = values
        self.residuals = residuals


class SelfLoopWarning(UserWarning):
    """Self loops were dropped: a Laplacian does not see them."""


class NumericalWarning(UserWarning):
    """A result is usable, but less accurate than asked for."""


class CacheWarning(UserWarning):
    """A cached file was damaged; it was removed and its content is computed again."""
