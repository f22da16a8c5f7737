r"""Lowest eigenpairs of a sparse Hermitian matrix, with every copy of a repeated eigenvalue.

A Krylov method started from one vector sees one copy of a repeated eigenvalue; whether it meets the
others is left to rounding, and tiny residuals do not tell. Three things are done against that here:

1. a *block Davidson* iteration: an orthonormal basis V grows by blocks F(A) X, where X are the
   lowest unconverged Ritz vectors and F is one of the filters of
   `nlsf.spectral.eigen.filters`; converged pairs are locked lowest first and deflated;
2. the iteration ends only when the next eigenvalue has been *seen* beyond the last eigenspace;
3. then the number of pairs is *verified*. Where a factorisation is affordable, inertia counts them
   exactly. Otherwise a fresh random block, orthogonal to all that was found, is filtered until a
   missed eigenvector would dominate it. What turns up is locked, and the verification is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

from nlsf.spectral.eigen.basis import Array, Operator, TooManyPairs
from nlsf.spectral.eigen.davidson import Davidson, Exhausted, Request
from nlsf.spectral.eigen.density import probe_spectrum
from nlsf.spectral.eigen.filters import (
    FILL_COUNT,
    FILL_SOLVE,
    ChebyshevFilter,
    SolveFilter,
    estimate_fill,
    solve_is_cheaper,
    typical_low_value,
)

FilterName: TypeAlias = Literal["solve", "chebyshev"]

_TINY = 50  # smaller matrices are no larger than the basis


@dataclass(frozen=True)
class BlockSolution:
    """Complete set of the lowest eigenpairs (outside the known ones).

    Attributes:
        values: (m,) ascending.
        vectors: (n, m), orthonormal and orthogonal to the known vectors.
        residuals: (m,) norms ||A v - value v||_2.
        filter: "solve" or "chebyshev".
        products: columns multiplied by A plus columns solved for.
        certified: True if an inertia count confirmed the number of pairs.
    """

    values: NDArray[np.float64]
    vectors: Array
    residuals: NDArray[np.float64]
    filter: str
    products: int
    certified: bool


def lowest_eigenpairs(
    A: sp.csr_array,
    *,
    count: int | None = None,
    below: float | None = None,
    known: Array | None = None,
    bounds: tuple[float, float],
    gap_tol: float,
    tol: float,
    max_pairs: int,
    most_products: float = np.inf,
    seed: int = 0,
    _filter: FilterName | None = None,
) -> BlockSolution:
    """Compute all eigenpairs at the low end of a sparse Hermitian matrix; see the module's text.

    Args:
        A: (n, n) Hermitian, float64 or complex128, best of one connected component.
        count: return at least this many pairs, and the whole eigenspace of the last one; or
        below: return all pairs with eigenvalue <= below, and the rest of the last one's eigenspace.
        known: (n, m0) orthonormal exact eigenvectors to be left out (such as the null vector).
        bounds: interval that encloses the spectrum.
        gap_tol: values closer than this belong to one eigenspace (single linkage).
        tol: bound of every residual norm, absolute.
        max_pairs: largest number of pairs that may be returned.
        most_products: what the filters may cost, in products of A and a column, before a dense
            solve is cheaper.
        seed: seed of the random start and verification blocks.

    Returns:
        Pairs such that no eigenvalue <= values[-1] + gap_tol is missing.

    Raises:
        ValueError: if not exactly one of count and below is given, or count is out of range.
        TooManyPairs: if the answer has more than max_pairs pairs, or so many that the basis would
            fill much of the space, or it would take more than most_products: a dense solver is the
            better tool then.
        NotConverged: if the work budget does not suffice.
    """
    n = A.shape[0]
    known = np.zeros((n, 0), A.dtype) if known is None else known.astype(A.dtype)
    room = n - known.shape[1]
    if (count is None) == (below is None):
        raise ValueError("give exactly one of count and below")
    if count is not None and not 1 <= count <= room:
        raise ValueError(f"count must lie between 1 and {room}, got {count}")
    if below is not None:
        below += tol  # a value equal to the bound must not be lost to rounding
    request = Request(count, below, gap_tol)
    if count is not None and count > max_pairs:
        raise TooManyPairs(0)
    rng = np.random.default_rng(seed)
    if n < _TINY or (count is not None and 4 * count > n):
        raise TooManyPairs(count or n)
    operator = Operator(A)
    known = np.asfortranarray(known[operator.order])
    probe = probe_spectrum(operator, known, bounds, rng)
    expected = count if count is not None else int(probe.count_below(float(below or 0.0))) + 1
    if 4 * expected > n or expected > 2 * max_pairs:  # the probe may be wrong by a factor
        raise TooManyPairs(expected)
    fill = estimate_fill(operator.matrix)
    scale = typical_low_value(operator, expected, rng) - probe.low
    if _filter is None:
        cheaper = solve_is_cheaper(operator, fill, scale, probe.high - probe.low)
        _filter = "solve" if cheaper and fill <= FILL_SOLVE else "chebyshev"
    edge = probe.value_at(2.0 * expected + 16)
    chosen: ChebyshevFilter | SolveFilter
    if _filter == "solve":
        chosen = SolveFilter.near(operator, probe.low, 0.1 * scale, bounds[1] - bounds[0])
        edge = min(edge, probe.low + 2 * scale)
    else:
        chosen = ChebyshevFilter(operator, probe.high)
    iteration = Davidson(
        operator,
        request,
        known,
        tol,
        max_pairs,
        bounds,
        rng,
        chosen,
        may_count=_filter == "solve" or fill <= FILL_COUNT,
        low=probe.low,
        high=probe.high,
        edge=max(edge, below if below is not None else -np.inf),
        expected=expected,
        most_products=most_products,
        known_values=np.einsum("ij,ij->j", known.conj(), operator.apply(known)).real
        if known.shape[1]
        else np.empty(0),
    )
    try:
        cut, certified = iteration.run()
    except Exhausted as error:
        raise TooManyPairs(iteration.values.size) from error
    values, vectors, residuals = iteration.polished(cut)
    return BlockSolution(values, vectors, residuals, chosen.name, operator.products, certified)
