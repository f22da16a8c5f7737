"""The cut norm of a matrix: `cut_norm` exactly, `cut_norm_bounds` for any size; `leading`."""

from __future__ import annotations

import numpy as np

from nlsf.lab.study import Floats

_RESTARTS = 12


def leading(M: Floats, m: int) -> Floats:
    """The sum of the m eigenvectors of the largest magnitude: the best approximation of rank m."""
    values, vectors = np.linalg.eigh(M)
    kept = np.argsort(-np.abs(values), kind="stable")[:m]
    found: Floats = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    return found


def cut_norm(M: Floats) -> float:
    r"""The cut norm, exactly: :math:`N^{-2} \max_{S, T} |\sum_{i \in S, j \in T} m_{ij}|`.

    For a set S the best T takes all columns whose sum over S has the same sign. All sets S are
    tried, so N should be at most 16 or so.
    """
    n = len(M)
    sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    sums = sets @ M
    positive, negative = np.maximum(sums, 0).sum(1), np.maximum(-sums, 0).sum(1)
    return float(max(positive.max(), negative.max())) / n**2


def cut_norm_bounds(M: Floats, seed: int = 0) -> tuple[float, float]:
    r"""A lower and an upper bound of the cut norm, for any N.

    The lower one is the value at sets S and T that improve each other in turn, from several random
    starts. The upper one is :math:`\|M\|_2 / N`, because indicators have norms up to
    :math:`\sqrt N`.
    """
    n = len(M)
    random = np.random.default_rng(seed)
    best = 0.0
    for sign in (1, -1):
        for start in (random.random((_RESTARTS, n)) < 0.5).astype(np.float64):
            S, value = start, -1.0
            while True:
                T = (sign * (S @ M) > 0).astype(np.float64)
                S = (sign * (M @ T) > 0).astype(np.float64)
                reached = float(sign * (S @ M @ T))
                if reached <= value + 1e-12:
                    break
                value = reached
            best = max(best, value)
    return best / n**2, float(np.abs(np.linalg.eigvalsh(M)).max()) / n
