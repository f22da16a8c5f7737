r"""Filters that make the low end of a spectrum stand out, and the choice between them.

A filter is a function of a Hermitian matrix A that is large on the wanted (lowest) eigenvalues and
small on the others. Two of them complement each other:

* the *Chebyshev* filter :math:`T_d((A - c)/e)` needs only products with A, and its degree grows
  like the square root of (width of the spectrum) / (wanted eigenvalues): right for expanders;
* the *solve* filter, the same of :math:`(A - \sigma)^{-1}`, needs a sparse factorisation: right for
  graphs with small separators (paths, trees, roads, large meshes), whose low eigenvalues are tiny.

:func:`estimate_fill` predicts the size of the factor *before* it is computed, because SuperLU
cannot be interrupted.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import SuperLU, splu

Array = NDArray[Any]

_EPS = float(np.finfo(np.float64).eps)
_PRUNING_ROUNDS = 64  # a long path loses two nodes a round: never wait for it to vanish
_PROBE_STEPS, _PROBE_COLUMNS = 60, 4


class Operator:
    """A Hermitian sparse matrix, renumbered for locality, with fast products and filters.

    Neighbouring nodes get neighbouring numbers (reverse Cuthill-McKee): on a point cloud of 200,000
    nodes this alone makes a product five times faster. Products go through torch's CSR kernel
    (MKL), which is twice as fast as SciPy's on one thread and accumulates in place.

    Args:
        matrix: (n, n) Hermitian, float64 or complex128.
    """

    def __init__(self, matrix: sp.csr_array) -> None:
        n = matrix.shape[0]
        self.order: NDArray[np.int64] = reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(
            np.int64
        )
        permuted = matrix[self.order][:, self.order].tocoo()
        diagonal = np.arange(n)
        # An explicit (possibly zero) diagonal lets a shift change the values alone.
        self.matrix = sp.csr_array(
            sp.coo_array(
                (
                    np.concatenate([permuted.data, np.zeros(n, permuted.dtype)]),
                    (
                        np.concatenate([permuted.row, diagonal]),
                        np.concatenate([permuted.col, diagonal]),
                    ),
                ),
                shape=(n, n),
            )
        )
        self.matrix.sort_indices()
        rows = np.repeat(diagonal, np.diff(self.matrix.indptr))
        self._diagonal = np.flatnonzero(self.matrix.indices == rows)
        self._shifted = self.matrix.data.copy()
        self._tensor = self._wrap(self._shifted)
        self.products = 0

    @property
    def size(self) -> int:
        """Number of rows n."""
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or complex128."""
        kind: np.dtype[Any] = np.dtype(self.matrix.dtype)
        return kind

    def _wrap(self, data: Array) -> torch.Tensor | None:
        if not torch.backends.mkl.is_available():
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "CSR support is in beta"
            return torch.sparse_csr_tensor(
                torch.from_numpy(self.matrix.indptr.astype(np.int32)),
                torch.from_numpy(self.matrix.indices.astype(np.int32)),
                torch.from_numpy(data),  # shared: a new shift is visible without a new tensor
                size=self.matrix.shape,
            )

    def _accumulate(self, block: Array, onto: Array, scale: float, keep: float) -> None:
        """Compute onto <- keep * onto + scale * (shifted A) @ block, all (n, b) and row major."""
        self.products += block.shape[1]
        if self._tensor is None:
            shifted = sp.csr_array(
                (self._shifted, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape
            )
            onto *= keep
            onto += scale * (shifted @ block)
            return
        target = torch.from_numpy(onto)
        torch.addmm(
            target, self._tensor, torch.from_numpy(block), beta=keep, alpha=scale, out=target
        )

    def _shift(self, centre: float) -> None:
        self._shifted[self._diagonal] = self.matrix.data[self._diagonal] - centre

    def apply(self, block: Array) -> Array:
        """A @ block, shapes (n, b) -> (n, b)."""
        self._shift(0.0)
        out = np.zeros(block.shape, self.dtype)
        self._accumulate(np.ascontiguousarray(block), out, 1.0, 0.0)
        return out

    def chebyshev(
        self,
        block: Array,
        low: float,
        high: float,
        degree: int,
        deflated: Array | None = None,
        period: int = 1,
    ) -> Array:
        """T_degree((A - c)/e) @ block with [c - e, c + e] = [low, high], the damped interval.

        Args:
            block: (n, b).
            low: lower edge of the damped interval; eigenvalues below it are amplified.
            high: upper edge, at least the largest eigenvalue.
            degree: at least 1.
            deflated: (n, m) orthonormal basis of an invariant subspace to keep out of the result.
            period: number of steps after which that subspace is projected out again.

        Returns:
            (n, b), row major.
        """
        centre, half = (low + high) / 2, (high - low) / 2
        self._shift(centre)
        previous = np.array(block, dtype=self.dtype, order="C")
        current = np.zeros_like(previous)
        self._accumulate(previous, current, 1 / half, 0.0)
        for step in range(1, degree):
            self._accumulate(current, previous, 2 / half, -1.0)
            previous, current = current, previous
            if deflated is not None and step % period == 0:
                previous -= deflated @ (deflated.conj().T @ previous)
                current -= deflated @ (deflated.conj().T @ current)
        return current


def chebyshev_degree(argument: float, gain: float) -> int:
    """Smallest degree d with T_d(argument) >= gain, for an argument of at least 1."""
    growth = float(np.arccosh(max(argument, 1.0)))
    return int(np.ceil(np.arccosh(gain) / growth)) if growth > 1e-9 else np.iinfo(np.int32).max


def chebyshev_gain(argument: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """T_degree(argument) for arguments of at least 1 (smaller ones count as 1), below 1e300."""
    growth = np.arccosh(np.maximum(argument, 1.0))
    return np.asarray(np.cosh(np.minimum(degree * growth, 690.0)))


@dataclass(frozen=True)
class Probe:
    """A coarse picture of the spectrum: nodes and weights of a Gauss quadrature of its density.

    Attributes:
        nodes: (q,) ascending Ritz values of a few short Lanczos runs.
        counts: (q,) estimated number of eigenvalues up to each node.
        low: estimate of the smallest eigenvalue, clipped to the given bounds.
        high: upper bound of the largest one, clipped likewise.
    """

    nodes: NDArray[np.float64]
    counts: NDArray[np.float64]
    low: float
    high: float

    def value_at(self, count: float) -> float:
        """Estimate of the eigenvalue with the given number of eigenvalues below it."""
        return float(np.interp(count, self.counts, self.nodes))

    def count_below(self, value: float) -> float:
        """Estimated number of eigenvalues up to `value`."""
        return float(np.interp(value, self.nodes, self.counts, left=0.0))


def probe_spectrum(
    operator: Operator, known: Array, bounds: tuple[float, float], rng: np.random.Generator
) -> Probe:
    """Estimate the spectral density by Lanczos quadrature with a few random starts.

    For a random unit vector q, the mean of q* f(A) q is trace f(A) / n, and Lanczos gives a Gauss
    rule for it: its nodes are the Ritz values, its weights the squared first components.

    Args:
        operator: the matrix, n rows.
        known: (n, m0) deflated vectors.
        bounds: interval that encloses the spectrum.
        rng: source of the starts.
    """
    n, steps = operator.size, min(_PROBE_STEPS, operator.size - known.shape[1])
    current = rng.standard_normal((n, _PROBE_COLUMNS)).astype(operator.dtype)
    current -= known @ (known.conj().T @ current)
    current /= np.linalg.norm(current, axis=0)
    previous = np.zeros_like(current)
    alpha = np.zeros((steps, _PROBE_COLUMNS))
    beta = np.zeros((steps, _PROBE_COLUMNS))
    for step in range(steps):
        image = operator.apply(current)
        if step:
            image -= beta[step - 1] * previous
        alpha[step] = np.einsum("ij,ij->j", current.conj(), image).real
        image -= alpha[step] * current
        image -= known @ (known.conj().T @ image)
        beta[step] = np.linalg.norm(image, axis=0)
        if beta[step].min() <= 1e-10 * (bounds[1] - bounds[0]):
            steps = step + 1  # an invariant subspace: the rule is exact already
            break
        previous, current = current, image / beta[step]
    nodes, weights = [], []
    low, high = bounds[1], bounds[0]
    for column in range(_PROBE_COLUMNS):
        ritz, vectors = eigh_tridiagonal(alpha[:steps, column], beta[: steps - 1, column])
        doubt = beta[steps - 1, column] * np.abs(vectors[-1])
        nodes.append(ritz)
        weights.append(vectors[0] ** 2)
        low, high = min(low, ritz[0] - doubt[0]), max(high, ritz[-1] + doubt[-1])
    order = np.argsort(np.concatenate(nodes))
    counts = np.cumsum(np.concatenate(weights)[order]) * (n - known.shape[1]) / _PROBE_COLUMNS
    width = bounds[1] - bounds[0]
    return Probe(
        nodes=np.concatenate(nodes)[order],
        counts=counts,
        low=max(low, bounds[0]),
        high=min(high + 1e-3 * width, bounds[1]),
    )


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
    Measured against SuperLU the estimate is within a factor of 2.5 on meshes and point clouds; it
    is too high (the safe side) on small-world and preferential-attachment graphs.

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


def _factorise(operator: Operator, shift: float) -> SuperLU:
    n = operator.size
    shifted = (operator.matrix - shift * sp.eye_array(n, dtype=operator.dtype)).tocsc()
    return splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


class ChebyshevFilter:
    """T_d of A itself, mapped so that [edge, high] becomes [-1, 1]; d products a column.

    Args:
        operator: the matrix.
        high: upper bound of its spectrum.
    """

    name = "chebyshev"
    degrees = (6, 600)

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
        self._factor = _factorise(operator, shift)

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

    On count disjoint balls of n / count nodes, the largest Rayleigh quotient of their hat functions
    f(v) = r - dist(v, centre) bounds the count-th eigenvalue from above; here three balls stand for
    all.

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
    return bool(solves < products)


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
        factor = _factorise(operator, shift)
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
