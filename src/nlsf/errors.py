"""Everything that nlsf raises or warns about on purpose.

All errors derive from `NLSFError`; each also derives from the built-in error that a caller would
expect (`ValueError`, `MemoryError`, ...), so that existing ``except`` clauses keep working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BandError",
    "CacheWarning",
    "ClusterError",
    "ConfigError",
    "DataError",
    "FormatError",
    "GraphError",
    "GroupError",
    "MemoryBudgetError",
    "ModelError",
    "NLSFError",
    "NotSymmetricError",
    "NumericalWarning",
    "SelfLoopWarning",
    "SignalError",
    "SpectrumError",
    "unknown_name",
]


class NLSFError(Exception):
    """Base class of every error of this package."""


class GraphError(NLSFError, ValueError):
    """The graph is malformed: the message names the offending edge or entry."""


class NotSymmetricError(GraphError):
    """The operator is not Hermitian, so it has no orthogonal eigenspaces."""


class DataError(NLSFError, FileNotFoundError):
    """A data file is not where it should be; the message says where to put it."""


class FormatError(NLSFError, ValueError):
    """A file does not hold what it should; the message names file, line or field, and what fits."""


class ClusterError(NLSFError, RuntimeError):
    """A cluster cannot be reached, or its workers failed; the message says what to do."""


class ConfigError(NLSFError, ValueError):
    """A setting is unknown or has a value that it cannot have; the message names its key."""


class SignalError(NLSFError, ValueError):
    """The signal does not fit the graph: wrong shape or dtype, or a value that is not finite."""


class BandError(NLSFError, ValueError):
    """The bands are malformed, or need eigenpairs that the spectrum does not hold."""


class ModelError(NLSFError, ValueError):
    """A layer or model is asked to be something that it cannot be; the message says what can."""


class GroupError(NLSFError, RuntimeError):
    """A process that shares the training cannot be reached, so the others cannot go on."""


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

    def __reduce__(self) -> tuple[Any, ...]:  # the default forgets the keywords
        return partial(type(self), needed=self.needed, limit=self.limit), self.args


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

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), values=self.values, residuals=self.residuals), self.args


class SelfLoopWarning(UserWarning):
    """Self loops were dropped: a Laplacian does not see them."""


class NumericalWarning(UserWarning):
    """A result is usable, but less accurate than asked for."""


class CacheWarning(UserWarning):
    """A cached file is damaged, or cannot be read or kept; its content is computed again."""


_LISTED = 32
"""Names that a sentence can list and still be read."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence for a name that does not exist, with the nearest one that does.

    Example:
        >>> unknown_name("data set", "coda", ["cora", "digits"])
        "There is no data set 'coda'. Did you mean 'cora'?"
    """
    names = list(known)
    folded = {n.lower(): n for n in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    if near:
        return f"There is no {what} {name!r}. Did you mean {folded[near[0]]!r}?"
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return f"There is no {what} {name!r}. There are: {listed}."
