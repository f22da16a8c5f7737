"""The ends of a spectrum, computed or bounded: `spectrum_end`."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from nlsf.errors import NumericalWarning
from nlsf.spectral.csr import csr_tensor
from nlsf.spectral.request import EigenRequest

SHARP = 50_000
"""Nodes up to which the ends of a spectrum are computed; they are bounded beyond."""

_STEPS = 30
"""Lanczos steps for a bound."""

_ROUNDING = 1e-6
"""Of single precision, after so many steps."""


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


def _outer_bound(request: EigenRequest, which: str) -> float:
    """A bound of the spectrum a little outside of it, from a Ritz value.

    At the edge of the bulk of a large random graph an eigenvalue takes hundreds of products to
    converge; no polynomial resolves what that would add. Thirty steps of Lanczos, without
    orthogonalisation (copies of the extreme value do no harm), can still stop short of it: the
    residual and a hundredth of the width are added. Single precision is exact beside that, and
    less to read; the operator is divided by a bound of its norm, to fit into its range.
    """
    low, scale = request.low, request.shift.scale
    values = np.empty(low.nnz, np.complex64 if request.shift.is_complex else np.float32)
    np.divide(low.data, scale, out=values, casting="same_kind")
    matrix = csr_tensor(low, values)  # its product uses all threads
    sign = 1.0 if which == "LA" else -1.0
    start = torch.Generator().manual_seed(request.seed)
    v = torch.randn(matrix.shape[0], generator=start, dtype=matrix.dtype)
    v /= v.norm()
    before, beta = torch.zeros_like(v), 0.0
    diagonal, beside = [], []
    for _ in range(_STEPS):
        w = sign * (matrix @ v) - beta * before
        diagonal.append(float(torch.vdot(v, w).real))
        w -= diagonal[-1] * v
        beta = float(w.norm())
        beside.append(beta)
        if beta <= _ROUNDING:
            break
        before, v = v, w / beta
    ritz, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))
    residual = beside[-1] * abs(float(vectors[-1, -1]))
    rounding = _ROUNDING * float(abs(ritz).max())
    bound = scale * float(ritz[-1] + residual + 0.01 * (ritz[-1] - ritz[0]) + rounding)
    if which == "LA":
        return min(bound, request.bounds[1])
    return max(-bound, request.bounds[0])
