"""The ends of a spectrum, without its eigenvectors: `frequency_range`."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal

from nlsf.spectral.csr import csr_tensor
from nlsf.spectral.demand import Demand
from nlsf.spectral.eigensolve import DENSE_LIMIT, extreme_eigenvalue
from nlsf.spectral.request import EigenRequest
from nlsf.spectral.shift import ShiftOperator

SHARP = 50_000
"""Nodes up to which the ends of a spectrum are computed; they are bounded beyond."""

_STEPS = 30
"""Lanczos steps for a bound."""


def frequency_range(
    shift: ShiftOperator, *, gap_tol: float = 1e-9, seed: int = 0
) -> tuple[float, float]:
    """Where the frequency axis of an operator begins and ends, without its eigenvectors.

    Args:
        shift: the operator.
        gap_tol: as in `partial_eigh`.
        seed: of the random start of the iteration for a large operator.

    Returns:
        The eigenvalue of frequency 0 and the one of the largest frequency: `Spectrum.origin` and
        `Spectrum.far`, of the negative operator where the largest eigenvalues lead. From 50,000
        nodes on, bounds a few hundredths outside of them.
    """
    request = EigenRequest(shift, Demand(pairs=0), gap_tol, 1e-10, DENSE_LIMIT, None, seed)
    if shift.num_nodes == 0:
        return 0.0, 0.0
    if shift.num_nodes <= DENSE_LIMIT:
        values = np.linalg.eigvalsh(request.low.toarray())
        lowest, far = float(values[0]), float(values[-1])
    else:
        find = extreme_eigenvalue if shift.num_nodes <= SHARP else _outer_bound
        far = find(request, "LA")
        lowest = 0.0 if request.bounds[0] >= 0 else find(request, "SA")
    return request.origin(lowest), far


def _outer_bound(request: EigenRequest, which: str) -> float:
    """A bound of the spectrum a little outside of it, from a Ritz value.

    At the edge of the bulk of a large random graph an eigenvalue takes hundreds of products to
    converge; no polynomial resolves what that would add. Thirty steps of Lanczos, without
    orthogonalisation (copies of the extreme value do no harm), can still stop short of it: the
    residual and a hundredth of the width are added.
    """
    matrix = csr_tensor(request.low)  # its product uses all threads
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
        if beta <= 1e-12 * abs(request.bounds[1]):
            break
        before, v = v, w / beta
    values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))
    residual = beside[-1] * abs(float(vectors[-1, -1]))
    bound = float(values[-1] + residual + 0.01 * (values[-1] - values[0]))
    if which == "LA":
        return min(bound, request.bounds[1])
    return max(-bound, request.bounds[0])
