"""Sparse factorisations: their size predicted, and eigenvalues counted by inertia.

SuperLU cannot be interrupted: `estimate_fill` predicts the size of a factor before it is computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import SuperLU, splu

from nlsf.spectral.solver.operator import Operator

_EPS = float(np.finfo(np.float64).eps)
_PRUNING_ROUNDS = 64  # a long path loses two nodes a round: never wait for it to vanish


def _two_core(matrix: sp.csr_array) -> sp.csr_array:
    """Remove leaves again and again: trees hanging on a graph cause no fill."""
    for _ in range(_PRUNING_ROUNDS):
        inner = np.diff(matrix.indptr) > 1
        if inner.all():
            break
        matrix = matrix[inner][:, inner].tocsr()
    return matrix


def _level_sizes(matrix: sp.csr_array, start: int) -> tuple[NDArray[np.int64], int]:
    """Sizes of the breadth-first levels around `start`, and a node of the last level."""
    order, parents = breadth_first_order(matrix, start, directed=False)
    position = np.empty(matrix.shape[0], np.int64)
    position[order] = np.arange(order.size)
    parent_position = position[parents[order[1:]]]  # ascending: a level is a range of positions
    ends = [1]
    while ends[-1] < order.size:
        ends.append(1 + int(np.searchsorted(parent_position, ends[-1])))
    return np.diff([0, *ends]), int(order[-1])


def estimate_fill(matrix: sp.csr_array) -> float:
    """Predict the number of entries of a sparse Cholesky-like factor L.

    With w the largest breadth-first level of the 2-core seen from its periphery (an upper bound of
    a separator), nested dissection gives about w^2 log2(n / w) entries beside the matrix itself.
    It only has to tell meshes and point clouds from expanders, for which it is far too high: the
    safe side.

    Args:
        matrix: (n, n) symmetric pattern with or without a diagonal.
    """
    pattern = matrix.tocoo()
    off = pattern.row != pattern.col
    n = matrix.shape[0]
    graph = sp.csr_array(
        (np.ones(int(off.sum())), (pattern.row[off], pattern.col[off])), shape=(n, n)
    )
    base = float(graph.nnz / 2 + n)
    core = _two_core(graph)
    if core.shape[0] < 2:
        return base
    _, far = _level_sizes(core, 0)
    sizes, _ = _level_sizes(core, far)
    width = float(sizes.max())
    return base + width**2 * max(float(np.log2(core.shape[0] / width)), 0.5)


def factorise(operator: Operator, shift: float) -> SuperLU:
    """The factors of A - shift I, pivoted for sparsity only, so that inertia can be read off."""
    n = operator.size
    shifted = (operator.matrix - shift * sp.eye_array(n, dtype=operator.dtype)).tocsc()
    return splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def count_below(operator: Operator, shift: float, clearance: float) -> int | None:
    """Number of eigenvalues below `shift`, by Sylvester's law of inertia, or None if in doubt.

    A - shift I = L D L* has as many negative pivots as A has eigenvalues below the shift. The
    computed pivots are those of a matrix at a distance of about eps * max_i (|L| |D| |L*|)_ii,
    because nothing is pivoted for stability: the count is trusted only while that is well below the
    distance to the nearest eigenvalue.

    Args:
        operator: the matrix.
        shift: where to count, away from any eigenvalue.
        clearance: lower estimate of the distance from `shift` to the nearest eigenvalue.
    """
    try:
        factor = factorise(operator, shift)
    except RuntimeError:  # an exactly zero pivot
        return None
    if not np.array_equal(factor.perm_r, factor.perm_c):
        return None
    upper = factor.U
    pivots = upper.diagonal().real
    growth = abs(factor.L.multiply(upper.T.tocsc())).sum(axis=1).max()
    if not np.isfinite(growth) or 100 * _EPS * growth > clearance:
        return None
    return int((pivots < 0).sum())
