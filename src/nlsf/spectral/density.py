"""How many eigenvalues lie below a cut, without computing them."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def estimate_count(
    matrix: sparse.csr_array,
    bounds: tuple[float, float],
    cut: float,
    *,
    degree: int = 100,
    probes: int = 8,
    seed: int = 0,
) -> float:
    r"""A kernel-polynomial estimate of the number of eigenvalues up to ``cut``.

    The step function is expanded in Chebyshev polynomials with Jackson damping, and its trace is
    averaged over random signs z:

    .. math::
        \#\{\lambda \le c\} \approx \frac{1}{R} \sum_{r=1}^R \sum_{n=0}^{M}
            g_n s_n \; z_r^* T_n(\tilde\Delta) z_r

    Its step is about ``3 / degree`` of the spectrum wide: it is for planning, not for counting.

    Args:
        matrix: (N, N), Hermitian.
        bounds: an interval that encloses the spectrum.
        cut: the c of the formula.
        degree: M.
        probes: R.
        seed: of the random signs.
    """
    n = matrix.shape[0]
    low, high = bounds
    if cut < low or n == 0:
        return 0.0
    if cut >= high:
        return float(n)
    centre, half = (high + low) / 2, (high - low) / 2
    order = np.arange(degree + 1)
    theta = np.arccos((cut - centre) / half)
    step = np.empty(degree + 1)
    step[0] = (np.pi - theta) / np.pi
    step[1:] = -2 * np.sin(order[1:] * theta) / (np.pi * order[1:])
    q = np.pi / (degree + 2)
    jackson = ((degree - order + 2) * np.cos(q * order) + np.sin(q * order) / np.tan(q)) / (
        degree + 2
    )
    rng = np.random.default_rng(seed)
    z = rng.choice([-1.0, 1.0], size=(n, probes))
    previous, current = z.astype(matrix.dtype), (matrix @ z - centre * z) / half
    moments = np.empty(degree + 1)
    moments[0] = n
    moments[1] = np.vdot(z, current).real / probes
    for i in range(2, degree + 1):
        previous, current = current, 2 * (matrix @ current - centre * current) / half - previous
        moments[i] = np.vdot(z, current).real / probes
    return float(np.clip((step * jackson * moments).sum(), 0.0, n))
