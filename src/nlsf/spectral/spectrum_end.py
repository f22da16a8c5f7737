"""The ends of a spectrum, computed or bounded: `spectrum_end`."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from nlsf.errors import NumericalWarning
from nlsf.spectral.request import EigenRequest

SHARP = 50_000
"""Nodes up to which the ends of a spectrum are computed; they are bounded beyond."""


def spectrum_end(request: EigenRequest, which: str) -> float:
    """The largest (LA) or smallest (SA) eigenvalue; from 50,000 nodes on, a bound on it.

    The bound is a few hundredths of the width outside of the spectrum: the eigenvalue itself can
    take longer than the leading pairs that are asked for.
    """
    find = extreme_eigenvalue if request.shift.num_nodes <= SHARP else _outer_bound
    return find(request, which)


def extreme_eigenvalue(request: EigenRequest, which: str) -> float:
    """The largest (LA) or smallest (SA) eigenvalue, or the bound on it where Lanczos fails."""
    matrix = request.low
    only = _only_eigenvalue(matrix)
    if only is not None:
        return only
    n = matrix.shape[0]
    v0 = np.random.default_rng(request.seed).standard_normal(n).astype(matrix.dtype)
    for ncv in (20, 80):
        try:
            (value,) = eigsh(
                matrix,
                k=1,
                which=which,
                v0=v0,
                ncv=min(ncv, n),
                tol=1e-8,
                maxiter=300,
                return_eigenvectors=False,
            )
            return float(value)
        except ArpackNoConvergence:
            continue
    bound = request.bounds[1 if which == "LA" else 0]
    warnings.warn(
        f"The extreme eigenvalue of {request.shift.name} did not converge; its bound {bound:.6g} "
        "is used in its place.",
        NumericalWarning,
        stacklevel=2,
    )
    return bound


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
