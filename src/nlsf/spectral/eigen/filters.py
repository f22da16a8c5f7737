r"""Filters that make the low end of a spectrum stand out, and the choice between them.

A filter is a function of a Hermitian matrix A that is large on the wanted (lowest) eigenvalues and
small on the others. Two of them complement each other:

* the *Chebyshev* filter :math:`T_d((A - c)/e)` needs only products with A. Its degree grows like
  the square root of (width of the spectrum) / (wanted eigenvalues): right for expanders;
* the *solve* filter, the same of :math:`(A - \sigma)^{-1}`, needs a sparse factorisation: right for
  graphs with small separators (paths, trees, roads, large meshes), whose low eigenvalues are tiny.

The same factors count eigenvalues by inertia. SuperLU cannot be interrupted, so `estimate_fill`
predicts the size of a factor before it is computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import SuperLU, splu

from nlsf.spectral.eigen.basis import Array, Operator

FILL_SOLVE, FILL_COUNT = 3e7, 3e6
"""Largest estimated factors for the filter, and for a count or an end of the spectrum alone."""


def chebyshev_degree(argument: float, gain: float) -> int:
    """Smallest degree d with T_d(argument) >= gain, for an argument of at least 1."""
    growth = float(np.arccosh(max(argument, 1.0)))
    return int(np.ceil(np.arccosh(gain) / growth)) if growth > 1e-9 else np.iinfo(np.int32).max


def chebyshev_gain(argument: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """T_degree(argument) for arguments of at least 1 (smaller ones count as 1), below 1e300."""
    growth = np.arccosh(np.maximum(argument, 1.0))
    return np.asarray(np.cosh(np.minimum(degree * growth, 690.0)))


class ChebyshevFilter:
    """T_d of A itself, mapped so that [edge, high] becomes [-1, 1]; d products a column.

    Args:
        operator: the matrix.
        high: upper bound of its spectrum.
    """

    name = "chebyshev"
    degrees = (6, 600)
    cost = 1.0
    """Of one step for one column, in products with the matrix."""

    def __init__(self, operator: Operator, high: float) -> None:
        self._operator, self._high = operator, high

    def argument(self, values: NDArray[np.float64], edge: float) -> NDArray[np.float64]:
        """Where eigenvalues are mapped to, with wanted ones (below the edge) above 1."""
        return np.asarray(1 + 2 * (edge - values) / (self._high - edge))

    def apply(
        self, block: Array, edge: float, degree: int, deflated: Array | None, period: int
    ) -> Array:
        """Filter the columns of a block (n, b); see :meth:`Operator.chebyshev`."""
        return self._operator.chebyshev(block, edge, self._high, degree, deflated, period)


class SolveFilter:
    """T_d of (A - shift I)^{-1}, mapped so that all values above the edge land in [-1, 1].

    One sparse factorisation serves all columns; d solves a column. The polynomial makes the filter
    selective where the inverse alone only halves what is unwanted, and solves are cheaper than the
    orthogonalisation of more columns.

    Args:
        operator: the matrix.
        shift: below the wanted eigenvalues.
    """

    name = "solve"
    degrees = (1, 6)

    def __init__(self, operator: Operator, shift: float) -> None:
        self.shift = shift
        self._operator = operator
        self._factor = factorise(operator, shift)
        self.cost = self._factor.nnz / operator.matrix.nnz

    def argument(self, values: NDArray[np.float64], edge: float) -> NDArray[np.float64]:
        """Where eigenvalues are mapped to, with wanted ones (below the edge) above 1."""
        distance = np.maximum(values - self.shift, 1e-3 * (edge - self.shift))
        return np.asarray(2 * (edge - self.shift) / distance - 1)

    def apply(
        self, block: Array, edge: float, degree: int, deflated: Array | None, period: int
    ) -> Array:
        """Filter the columns of a block (n, b); arguments as in :meth:`Operator.chebyshev`."""
        scale = 2 * (edge - self.shift)
        previous = np.asfortranarray(block)
        current: Array = scale * self._solve(previous) - previous
        for step in range(1, degree):
            previous, current = current, 2 * (scale * self._solve(current) - current) - previous
            if deflated is not None and step % period == 0:
                previous -= deflated @ (deflated.conj().T @ previous)
                current -= deflated @ (deflated.conj().T @ current)
        return current

    def _solve(self, block: Array) -> Array:
        self._operator.products += block.shape[1]
        solution: Array = self._factor.solve(block)
        return solution

    @classmethod
    def near(cls, operator: Operator, low: float, offset: float, width: float) -> SolveFilter:
        """Shift to `offset` below `low`, or further if the shifted matrix is singular there.

        Args:
            operator: the matrix.
            low: lower estimate of the smallest eigenvalue that is not deflated.
            offset: wanted distance, of the order of the wanted eigenvalues: much smaller ones let
                deflated vectors return with rounding errors, much larger ones converge slowly.
            width: width of the spectrum.
        """
        for least in (1e-10, 1e-4):
            try:
                return cls(operator, low - max(offset, least * width))
            except RuntimeError:  # SuperLU: exactly singular
                continue
        return cls(operator, low - 0.01 * width)


def typical_low_value(operator: Operator, count: int, rng: np.random.Generator) -> float:
    """Order of magnitude of the count-th eigenvalue of a Laplacian, from hat functions on balls.

    Take count disjoint balls of n / count nodes, and on each the hat function f(v) = r - dist(v,
    centre). The largest of their Rayleigh quotients bounds the count-th eigenvalue from above. Here
    three balls stand for all.

    Args:
        operator: the matrix, n rows.
        count: index of the eigenvalue.
        rng: picks the centres.
    """
    matrix = operator.matrix
    pattern = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    quotients = []
    for centre in rng.integers(operator.size, size=3):
        order, parents = breadth_first_order(pattern, int(centre), directed=False)
        ball = order[: max(operator.size // max(count, 1), 2)]
        distance = np.zeros(operator.size)
        for node in ball[1:]:
            distance[node] = distance[parents[node]] + 1
        hat = np.zeros((operator.size, 1), operator.dtype)
        hat[ball, 0] = distance[ball[-1]] + 1 - distance[ball]
        image = operator.apply(hat)
        quotients.append(float(np.vdot(hat, image).real / np.vdot(hat, hat).real))
    return float(np.median(quotients))


def solve_is_cheaper(operator: Operator, fill: float, scale: float, width: float) -> bool:
    """Compare measured costs per column of the two filters, factorisations included.

    Args:
        operator: the matrix.
        fill: estimated entries of a factor.
        scale: upper estimate of the largest wanted eigenvalue (above the lowest one); it is
            divided by 4, about what :func:`typical_low_value` is too high.
        width: width of the spectrum.
    """
    degree = 5.3 / np.arccosh(1 + 2 * max(scale, 1e-12 * width) / 4 / width)
    product, solve, factorise = 0.4e-9, 2.5e-9, 0.3e-6  # seconds per entry, one thread
    columns = 300
    products = columns * degree * operator.matrix.nnz * product
    solves = fill * (2 * factorise + 3 * columns * solve)
    return bool(solves < 1.5 * products)  # a solve's answer comes with a certificate


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

    Let w be the largest breadth-first level of the 2-core seen from its periphery, which bounds a
    separator from above. Nested dissection then gives about w^2 log2(n / w) entries beside the
    matrix itself. The estimate only has to tell meshes and point clouds from expanders. For these
    it is far too high, which is the safe side.

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
