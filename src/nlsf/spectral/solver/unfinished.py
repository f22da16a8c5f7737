"""How the block method says that it did not finish, with what it had."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nlsf.spectral.solver.operator import Array

Pairs: TypeAlias = tuple[NDArray[np.float64], Array, NDArray[np.float64]]
"""Values (m,), vectors (n, m), norms of the residuals (m,)."""


class UnfinishedError(RuntimeError):
    """Base of the errors that carry what is converged so far.

    Attributes:
        values: (m,) converged eigenvalues, not necessarily a complete set.
        vectors: (n, m) their vectors.
        residuals: (m,) norms of their residuals.
    """

    def __init__(self, message: str, pairs: Pairs | None = None) -> None:
        super().__init__(message)
        if pairs is None:
            pairs = (np.empty(0), np.empty((0, 0)), np.empty(0))
        self.values: NDArray[np.float64] = pairs[0]
        self.vectors: Array = pairs[1]
        self.residuals: NDArray[np.float64] = pairs[2]


class TooManyPairs(UnfinishedError):  # noqa: N818 - a finding, not a fault
    """The answer has more than `max_pairs` pairs, or a large share of all: go dense instead.

    Attributes:
        found: how many it has at least, or is expected to have.
    """

    def __init__(self, found: int, pairs: Pairs | None = None) -> None:
        super().__init__(
            f"The answer has {found} eigenpairs or more, too many for a block method here: ask for "
            "less, or use a dense solver.",
            pairs,
        )
        self.found = found


class NotConverged(UnfinishedError):  # noqa: N818
    """The work budget is spent."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(
            f"Only {pairs[0].size} eigenpairs converged within the work budget: ask for fewer, "
            "loosen tol, or use a dense solver.",
            pairs,
        )
