"""A request for eigenpairs, `EigenRequest`: what it may use, and where the spectrum ends."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from nlsf.errors import MemoryBudgetError, NumericalWarning
from nlsf.spectral.eigen.basis import Operator
from nlsf.spectral.eigen.density import SpectralMeasure
from nlsf.spectral.eigen.filters import FILL_COUNT, estimate_fill, factorise
from nlsf.spectral.eigen.spectrum import Demand
from nlsf.spectral.operators.shift import ShiftOperator

DENSE_LIMIT = 600
"""Components up to this size are solved densely: measured in docs/decisions.md."""

SHARP = 50_000
"""Nodes up to which the ends of a spectrum are computed; they are bounded beyond."""


def available_memory() -> int:
    """Bytes that can be used without swapping, or all physical memory where that is not told."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_budget(limit: int | None) -> int:
    """The limit that was given, or 80 % of what is available."""
    return int(0.8 * available_memory()) if limit is None else limit


def require_memory(needed: int, limit: int | None, what: str, instead: str) -> None:
    """Raises `MemoryBudgetError` with the estimate if ``needed`` bytes exceed the limit.

    Args:
        needed: estimated bytes.
        limit: bytes that may be used; 80 % of what is available by default.
        what: what would need them, the subject of the message.
        instead: what the user can do.
    """
    limit = memory_budget(limit)
    if needed > limit:
        raise MemoryBudgetError(
            f"{what} would need about {needed / 1e9:.3g} GB, and {limit / 1e9:.3g} GB may be used. "
            f"{instead}",
            needed=needed,
            limit=limit,
        )


@dataclass(frozen=True)
class EigenRequest:
    """The arguments of `partial_eigh`, with the operator turned so that its low end leads."""

    shift: ShiftOperator
    demand: Demand
    gap_tol: float
    tol: float
    dense_limit: int
    memory_limit: int | None
    seed: int

    @cached_property
    def low(self) -> sparse.csr_array:
        """The operator, or its negative where the largest eigenvalues lead."""
        return self.shift.matrix if self.shift.order == "ascending" else -self.shift.matrix

    @cached_property
    def measure(self) -> SpectralMeasure:
        """What thirty products tell about the spectrum of `low`."""
        return SpectralMeasure.of(self.low, self.shift.scale, self.seed)

    @property
    def bounds(self) -> tuple[float, float]:
        """An interval that encloses the spectrum of `low`."""
        a, b = self.shift.bounds
        return (a, b) if self.shift.order == "ascending" else (-b, -a)

    @property
    def gap(self) -> float:
        """The absolute gap tolerance."""
        return self.gap_tol * self.shift.scale

    @property
    def kernel(self) -> bool:
        """Whether every component is known to have exactly one zero eigenvalue, the lowest."""
        return self.shift.null_vector is not None

    def origin(self, lowest: float) -> float:
        """The eigenvalue of `low` that has frequency 0; see `Spectrum.origin`."""
        if self.shift.order == "ascending" and lowest >= -self.gap:
            return 0.0
        return lowest

    def dense_bytes(self, size: int, columns: int) -> int:
        """What a dense solve takes: LAPACK keeps about four squares, and columns are the answer."""
        return (4 * size * size + self.shift.num_nodes * columns) * int(self.low.dtype.itemsize)

    def require_dense(self, size: int, columns: int) -> None:
        """Refuses a dense solve that would not fit."""
        require_memory(
            self.dense_bytes(size, columns),
            self.memory_limit,
            f"The dense eigendecomposition of a component with {size:,} nodes",
            "Ask for fewer eigenpairs (k, or bands that end lower), or raise memory_limit.",
        )


def spectrum_end(request: EigenRequest, which: str) -> float:
    """The largest (LA) or smallest (SA) eigenvalue; from 50,000 nodes on, a bound on it.

    The bound is a few hundredths of the width outside of the spectrum: the eigenvalue itself can
    take longer than the leading pairs that are asked for.
    """
    find = extreme_eigenvalue if request.shift.num_nodes <= SHARP else _outer_bound
    return find(request, which)


def extreme_eigenvalue(request: EigenRequest, which: str) -> float:
    """The largest (LA) or smallest (SA) eigenvalue, or the bound on it where Lanczos fails.

    On long paths, rings and trees the eigenvalues stand so close together at the ends that Lanczos
    does not tell them apart. Their matrices have sparse factors, so they are inverted there.
    """
    matrix = request.low
    only = _only_eigenvalue(matrix)
    if only is not None:
        return only
    found = _lanczos(matrix, which, 20, request.seed)
    if found is None and estimate_fill(matrix) <= FILL_COUNT:
        found = _inverted(request, which)
    if found is None:
        found = _lanczos(matrix, which, 80, request.seed)
    if found is not None:
        return found
    bound = request.bounds[1 if which == "LA" else 0]
    warnings.warn(
        f"The extreme eigenvalue of {request.shift.name} did not converge; its bound {bound:.6g} "
        "is used in its place.",
        NumericalWarning,
        stacklevel=2,
    )
    return bound


def _lanczos(
    matrix: sparse.csr_array, which: str, ncv: int, seed: int, **inverse: Any
) -> float | None:
    """One eigenvalue by ARPACK with so many vectors; ``None`` if it does not converge."""
    n = matrix.shape[0]
    v0 = np.random.default_rng(seed).standard_normal(n).astype(matrix.dtype)
    options = {"ncv": min(ncv, n), "tol": 1e-8, "maxiter": 300, **inverse}
    try:
        (value,) = eigsh(matrix, k=1, which=which, v0=v0, return_eigenvectors=False, **options)
    except ArpackNoConvergence:
        return None
    return float(value)


def _inverted(request: EigenRequest, which: str) -> float | None:
    """The eigenvalue nearest to the bound at one end, by the inverse of A minus the bound."""
    operator = Operator(request.low)
    bound = request.bounds[1 if which == "LA" else 0]
    # A little outside: the bound itself may be an eigenvalue.
    shift = bound + (1e-8 if which == "LA" else -1e-8) * request.shift.scale
    try:
        factors = factorise(operator, shift)
    except RuntimeError:  # SuperLU: exactly singular
        return None
    inverse = LinearOperator(operator.matrix.shape, factors.solve, dtype=operator.dtype)
    return _lanczos(operator.matrix, "LM", 20, request.seed, sigma=shift, OPinv=inverse)


def _only_eigenvalue(matrix: sparse.csr_array) -> float | None:
    """The c of a matrix c I, which ARPACK refuses to look at: that of a graph without edges."""
    diagonal = matrix.diagonal()
    multiple = bool((diagonal == diagonal[0]).all())
    if multiple and matrix.count_nonzero() == np.count_nonzero(diagonal):
        return float(diagonal[0].real)
    return None


def _outer_bound(request: EigenRequest, which: str) -> float:
    """A bound of the spectrum a little outside of it, from Ritz values.

    At the edge of the bulk of a large random graph an eigenvalue takes hundreds of products to
    converge; no polynomial resolves what that would add.
    """
    low, high = request.measure.bounds()
    return min(high, request.bounds[1]) if which == "LA" else max(low, request.bounds[0])


def ends_request(shift: ShiftOperator, gap_tol: float = 1e-9, seed: int = 0) -> EigenRequest:
    """A request for the ends of a spectrum alone; arguments as in `partial_eigh`."""
    return EigenRequest(shift, Demand(pairs=0), gap_tol, 1e-10, DENSE_LIMIT, None, seed)


def range_of(request: EigenRequest) -> tuple[float, float]:
    """Where the frequency axis of an operator begins and ends, without its eigenvectors.

    Returns:
        The eigenvalue of frequency 0 and the one of the largest frequency: `Spectrum.origin` and
        `Spectrum.far`, of the negative operator where the largest eigenvalues lead. From 50,000
        nodes on, bounds a few hundredths outside of them.
    """
    size = request.shift.num_nodes
    if size == 0:
        return 0.0, 0.0
    if size <= DENSE_LIMIT:
        values = np.linalg.eigvalsh(request.low.toarray())
        lowest, far = float(values[0]), float(values[-1])
    else:
        far = spectrum_end(request, "LA")
        lowest = 0.0 if request.bounds[0] >= 0 else spectrum_end(request, "SA")
    return request.origin(lowest), far
