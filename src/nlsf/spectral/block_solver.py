r"""Lowest eigenpairs of a sparse Hermitian matrix, with every copy of a repeated eigenvalue.

A Krylov method started from one vector sees one copy of a repeated eigenvalue; whether it meets the
others is left to rounding, and tiny residuals do not tell. Three things are done against that here:

1. a *block Davidson* iteration: an orthonormal basis V grows by blocks F(A) X, where X are the lowest
   unconverged Ritz vectors and F is one of the filters of :mod:`nlsf.spectral.spectral_filters`;
   converged pairs are locked lowest first and deflated;
2. the iteration ends only when the next eigenvalue has been *seen* beyond the last eigenspace;
3. then the number of pairs is *verified*: where a factorisation is affordable by an inertia count (an
   exact statement), otherwise by a fresh random block, orthogonal to all that was found, and filtered
   until a missed eigenvector would dominate it. What turns up is locked and verification is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nlsf.spectral.spectral_filters import (
    Array,
    Operator,
    SolveFilter,
    chebyshev_degree,
    count_below,
    estimate_fill,
    probe_spectrum,
    typical_low_value,
)

FilterName = Literal["solve", "chebyshev"]

_LOCK = 0.3  # pairs are locked at this fraction of `tol`: the final rotation mixes their residuals
_MAX_GAIN = 1e10  # beyond, the lowest Ritz vector would drown the rest of its block in rounding
_MAX_DEGREE = 400
_STEP_GAIN = 30.0
_FILL_SOLVE, _FILL_SOLVE_PER_ROW, _FILL_COUNT = 3e7, 200.0, 3e6


@dataclass(frozen=True)
class BlockSolution:
    """Complete set of the lowest eigenpairs (outside the known ones).

    Attributes:
        values: (m,) ascending.
        vectors: (n, m), orthonormal and orthogonal to the known vectors.
        residuals: (m,) norms ||A v - value v||_2.
        filter: "solve", "chebyshev", or "dense" where the matrix is not larger than the basis.
        products: columns multiplied by A plus columns solved for.
        certified: True if an inertia count (or a dense solver) confirmed the number of pairs.
    """

    values: NDArray[np.float64]
    vectors: Array
    residuals: NDArray[np.float64]
    filter: str
    products: int
    certified: bool


class TooManyPairs(RuntimeError):
    """More pairs than `max_pairs` belong to the request; a dense solver is the better tool."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the request needs more pairs than max_pairs allows ({found} found so far): "
            "raise max_pairs or use a dense solver"
        )
        self.found = found


class NotConverged(RuntimeError):
    """The work budget is spent; carries the pairs that are converged."""

    def __init__(
        self, values: NDArray[np.float64], vectors: Array, residuals: NDArray[np.float64]
    ) -> None:
        super().__init__(
            f"only {values.size} eigenpairs converged within the work budget: ask for fewer pairs, "
            "loosen tol, or use a dense solver"
        )
        self.values, self.vectors, self.residuals = values, vectors, residuals


class _Exhausted(Exception):
    """The basis would fill half of the space: a dense solver is the better tool."""


@dataclass(frozen=True)
class _Request:
    """What is asked for, and when a set of values answers it."""

    count: int | None
    below: float | None
    gap_tol: float

    def cut(self, values: NDArray[np.float64], following: float) -> int | None:
        """Number of leading values that answer the request, or None while a gap is not seen.

        Args:
            values: (m,) ascending, converged.
            following: lower bound of the next eigenvalue (inf at the end of the spectrum).
        """
        extended = np.append(values, following)
        first = self.count if self.count is not None else 0
        for index in range(first, extended.size):
            if self.below is not None and extended[index] <= self.below:
                continue
            if index == 0 or extended[index] - extended[index - 1] > self.gap_tol:
                return index
        return None

    def still_wanted(self, locked: int, ritz: NDArray[np.float64]) -> int:
        """How many of the current Ritz values have to converge, plus the next one to be seen."""
        if self.count is not None:
            return max(self.count - locked, 0) + 1
        assert self.below is not None
        return int(np.searchsorted(ritz, self.below, side="right")) + 1


@dataclass
class _Basis:
    """Orthonormal V (n, m), its image W = (I - Q Q*) A V, and H = V* W."""

    vectors: Array
    images: Array
    projected: Array
    size: int = 0

    @staticmethod
    def empty(n: int, capacity: int, dtype: np.dtype[np.generic]) -> _Basis:
        shape = (n, capacity)
        return _Basis(
            np.empty(shape, dtype, order="F"),
            np.empty(shape, dtype, order="F"),
            np.zeros((capacity, capacity), dtype),
        )

    @property
    def capacity(self) -> int:
        return int(self.vectors.shape[1])

    def append(self, vectors: Array, images: Array) -> None:
        old, new = self.size, self.size + vectors.shape[1]
        self.vectors[:, old:new], self.images[:, old:new] = vectors, images
        cross = self.vectors[:, :new].conj().T @ images
        self.projected[:new, old:new] = cross
        self.projected[old:new, :old] = cross[:old].conj().T
        inner = cross[old:]
        self.projected[old:new, old:new] = (inner + inner.conj().T) / 2
        self.size = new

    def ritz(self) -> tuple[NDArray[np.float64], Array]:
        values, rotation = np.linalg.eigh(self.projected[: self.size, : self.size])
        return values, rotation

    def rotated(self, rotation: Array, values: NDArray[np.float64], capacity: int) -> _Basis:
        """Basis of the Ritz vectors V @ rotation, for which H is diagonal."""
        kept = rotation.shape[1]
        new = _Basis.empty(self.vectors.shape[0], max(capacity, kept), self.vectors.dtype)
        new.vectors[:, :kept] = self.vectors[:, : self.size] @ rotation
        new.images[:, :kept] = self.images[:, : self.size] @ rotation
        new.projected[range(kept), range(kept)] = values
        new.size = kept
        return new


def _project_out(block: Array, *bases: Array) -> None:
    for basis in bases:
        if basis.shape[1]:
            block -= basis @ (basis.conj().T @ block)


def _orthonormalise(block: Array, *bases: Array) -> Array:
    """Orthonormal basis of the block's part outside the bases; directions that vanish are dropped.

    Gram matrices instead of QR: five times faster for tall blocks, and repeated until a pass changes
    little, so that what is left after heavy cancellation is orthogonal to working precision.
    """
    for _ in range(5):
        block = block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(float).tiny)
        _project_out(block, *bases)
        left = np.linalg.norm(block, axis=0)
        block = block[:, left > 1e-13] / left[left > 1e-13]
        if not block.shape[1]:
            break
        weights, rotation = np.linalg.eigh(block.conj().T @ block)
        alive = weights > 1e-13 * weights[-1]
        block = block @ (rotation[:, alive] / np.sqrt(weights[alive]))
        if left.min() > 0.7 and weights[0] > 0.7:
            break
    return block


@dataclass
class _Iteration:
    """State of the block Davidson iteration; `run` drives it to a verified answer."""

    operator: Operator
    request: _Request
    known: Array
    tol: float
    max_pairs: int
    bounds: tuple[float, float]
    rng: np.random.Generator
    solve: SolveFilter | None
    may_count: bool
    low: float  # estimate of the smallest eigenvalue
    high: float
    edge: float  # lower end of the interval that the Chebyshev filter damps
    expected: int  # estimated number of wanted pairs, only used to size the basis
    known_values: NDArray[np.float64]
    locked: Array = field(init=False)
    values: NDArray[np.float64] = field(init=False)
    basis: _Basis = field(init=False)
    settled: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    solves: int = 0
    spare: float = 1.0  # grows when convergence is slow
    fresh: int = 0  # size of the last verification block
    verified_cut: int = -1  # number of pairs below the cut when the last fresh block was added
    spent: int = 0

    def __post_init__(self) -> None:
        n, dtype = self.operator.size, self.operator.dtype
        self.locked = np.empty((n, 0), dtype, order="F")
        self.values = np.empty(0)
        self.block = int(np.clip(-(-self.expected // 4), 4, 16))
        self.limit = n // 2 + self.block
        self.basis = _Basis.empty(n, self._capacity(self.expected), dtype)

    def _keep(self, wanted: int) -> int:
        return wanted + int(self.spare * max(2 * self.block, wanted // 2))

    def _capacity(self, wanted: int) -> int:
        keep = self._keep(wanted)
        return keep + max(4 * self.block, keep // 2)

    def _grow(self, block: Array) -> None:
        active = self.basis.vectors[:, : self.basis.size]
        if self.known.shape[1] + self.values.size + self.basis.size + block.shape[1] > self.limit:
            raise _Exhausted
        block = _orthonormalise(block, self.known, self.locked, active)
        if not block.shape[1]:  # an invariant subspace: only chance leads out of it
            block = _orthonormalise(self._random(self.block), self.known, self.locked, active)
        images = self.operator.apply(block)
        _project_out(images, self.locked)
        self.basis.append(block, images)
        self.spent += block.shape[1]

    def _random(self, columns: int) -> Array:
        block: Array = self.rng.standard_normal((self.operator.size, columns))
        return block.astype(self.operator.dtype)

    def _filtered(self, block: Array, lowest: float, target: float, gain: float) -> Array:
        """One filter application that amplifies `target` by about `gain` (Chebyshev filter)."""
        if self.solve is not None:
            self.solves += block.shape[1]
            return self.solve(block)
        degree = chebyshev_degree(target, self.edge, self.high, gain)
        limit = chebyshev_degree(lowest, self.edge, self.high, _MAX_GAIN)
        degree = int(np.clip(min(degree, limit), 6, _MAX_DEGREE))
        return self.operator.chebyshev(block, self.edge, self.high, degree)

    def _residuals(
        self, ritz: NDArray[np.float64], rotation: Array, columns: slice
    ) -> tuple[Array, Array, NDArray[np.float64]]:
        """Ritz vectors (n, c), residual vectors (n, c) and their norms (c,) of some columns."""
        size = self.basis.size
        vectors = self.basis.vectors[:, :size] @ rotation[:, columns]
        residual = self.basis.images[:, :size] @ rotation[:, columns]
        residual -= vectors * ritz[columns]
        return vectors, residual, np.linalg.norm(residual, axis=0)

    def _settle(self, ritz: NDArray[np.float64]) -> None:
        """Forget the leading pairs believed converged from the first one on that has moved."""
        moved = np.abs(ritz[: self.settled.size] - self.settled) > self.tol
        if moved.any():
            self.settled = self.settled[: int(np.argmax(moved))]

    def _restart(self, room: int) -> None:
        """Lock what is converged, lowest first, and keep the lowest Ritz vectors of the rest."""
        ritz, rotation = self.basis.ritz()
        self._settle(ritz)
        count = self.settled.size
        if count:
            vectors, _, norms = self._residuals(ritz, rotation, slice(count))
            sound = norms <= 2 * _LOCK * self.tol
            count = count if sound.all() else int(np.argmin(sound))
            self.locked = np.asfortranarray(np.hstack([self.locked, vectors[:, :count]]))
            self.values = np.concatenate([self.values, ritz[:count]])
            self.settled = np.empty(0)
            if self.values.size > self.max_pairs + self.block:
                raise TooManyPairs(self.values.size)
        ritz, rotation = ritz[count:], rotation[:, count:]
        wanted = self.request.still_wanted(self.values.size, ritz)
        keep = min(self._keep(wanted), ritz.size)
        capacity = max(self._capacity(wanted), keep + room)
        self.edge = float(ritz[min(keep, ritz.size - 1)])
        self.basis = self.basis.rotated(rotation[:, :keep], ritz[:keep], capacity)

    def _missing(self, cut: int, following: float) -> int | None:
        """Eigenvalues below the gap that were not found, by inertia; None if it cannot be told."""
        if not self.may_count:
            return None
        values = np.sort(self.values)
        last = values[cut - 1] if cut else self.low
        floor = last if self.request.below is None else max(last, self.request.below)
        for fraction in (0.5, 0.37, 0.61):
            shift = floor + fraction * (following - floor)
            counted = count_below(self.operator, shift, 0.3 * (following - floor))
            if counted is not None:
                found = cut + int((self.known_values < shift).sum())
                return counted - found if counted >= found else None
        return None

    def _add_fresh(self, missing: int | None, cut: int, following: float) -> None:
        """Filter a random block until an unseen eigenvector below the gap would stand out in it."""
        columns = self.block if missing is None else missing + 2
        if missing is None and self.fresh:  # the last one found something: look more closely
            columns = 2 * self.fresh
        columns = min(columns, 8 * self.block)
        values = np.sort(self.values)
        last = float(values[cut - 1]) if cut else self.low
        width = self.bounds[1] - self.bounds[0]
        gap = max(following - last, 1e-12 * width)
        needed = 10 * np.sqrt(self.operator.size) * np.sqrt(10 * width / gap)
        if self.basis.size + columns > self.basis.capacity:
            self._restart(columns + self.block)
        block = self._random(columns)
        _project_out(block, self.known, self.locked)
        gained = 1.0
        for _ in range(30):
            lowest = min(self.low, last)
            block = _orthonormalise(
                self._filtered(block, lowest, last, needed / gained),
                self.known,
                self.locked,
            )
            gained *= self._gain(lowest, last, needed / gained)
            if gained >= needed:
                break
        self._grow(block)
        self.fresh, self.verified_cut = columns, cut

    def _gain(self, lowest: float, target: float, gain: float) -> float:
        """Amplification of `target` over the damped part in one call of `_filtered`."""
        if self.solve is not None:
            return max((self.edge - self.solve.shift) / (target - self.solve.shift), 1.1)
        degree = chebyshev_degree(target, self.edge, self.high, gain)
        limit = chebyshev_degree(lowest, self.edge, self.high, _MAX_GAIN)
        degree = int(np.clip(min(degree, limit), 6, _MAX_DEGREE))
        argument = 1 + 2 * max(self.edge - target, 0.0) / (self.high - self.edge)
        return float(np.cosh(degree * np.arccosh(argument)))

    def run(self) -> tuple[int, bool]:
        """Iterate until the answer is complete.

        Returns:
            Number of leading pairs (after sorting) that answer the request, and whether an inertia
            count confirmed it.
        """
        self._grow(self._random(self.block))
        budget = 40 * (self.expected + 8 * self.block)
        while True:
            ritz, rotation = self.basis.ritz()
            self._settle(ritz)
            start = self.settled.size
            window = slice(start, start + self.block + self.block // 2)
            vectors, residual, norms = self._residuals(ritz, rotation, window)
            done = norms <= _LOCK * self.tol
            prefix = done.size if done.all() else int(np.argmin(done))
            self.settled = ritz[: start + prefix]
            following = float(ritz[start + prefix] - norms[prefix]) if not done.all() else -np.inf
            found = np.sort(np.concatenate([self.values, self.settled]))
            cut = self.request.cut(found, following)
            if cut is not None:
                if cut > self.max_pairs:
                    raise TooManyPairs(cut)
                self._restart(self.block)
                if self.values.size < cut:
                    continue
                beyond = float(np.append(found, following)[cut])
                missing = self._missing(cut, beyond)
                if missing == 0 or (missing is None and self.verified_cut == cut):
                    return cut, missing == 0
                if missing is not None and cut + missing > self.max_pairs:
                    raise TooManyPairs(cut + missing)
                self._add_fresh(missing, cut, beyond)
                continue
            if self.spent > budget:
                if self.spare > 1:
                    raise NotConverged(*_finish(self.operator, self.locked, self.values.size))
                self.spare, budget = 3.0, 3 * budget
            if done.all():
                if not done.size:  # all of the basis has converged, but no gap was seen
                    self._restart(self.block)
                    self._grow(self._random(self.block))
                continue
            chosen = np.flatnonzero(~done)[: self.block]
            source = residual if self.solve is not None else vectors
            wanted = self.request.still_wanted(found.size, ritz[start + prefix :])
            target = float(ritz[min(start + prefix + wanted - 1, ritz.size - 1)])
            target = min(target, self.edge - 0.1 * (self.edge - self.low))
            expansion = self._filtered(source[:, chosen], float(ritz[start]), target, _STEP_GAIN)
            if self.basis.size + chosen.size > self.basis.capacity:
                self._restart(self.block)
            self._grow(expansion)


def _finish(
    operator: Operator, locked: Array, keep: int
) -> tuple[NDArray[np.float64], Array, NDArray[np.float64]]:
    """Rayleigh-Ritz on the locked vectors: values, vectors (original node order), residuals."""
    images = operator.apply(locked)
    small = locked.conj().T @ images
    values, rotation = np.linalg.eigh((small + small.conj().T) / 2)
    vectors, images = locked @ rotation[:, :keep], images @ rotation[:, :keep]
    residuals = np.linalg.norm(images - vectors * values[:keep], axis=0)
    restored = np.empty_like(vectors)
    restored[operator.order] = vectors
    return values[:keep], restored, residuals


def _dense(
    A: sp.csr_array, request: _Request, known: Array, max_pairs: int
) -> BlockSolution:
    """All eigenpairs of a matrix that is not larger than the basis would be."""
    n, m0 = known.shape
    complement = np.linalg.qr(np.hstack([known, np.eye(n, dtype=A.dtype)]))[0][:, m0:n]
    small = complement.conj().T @ (A @ complement)
    values, rotation = np.linalg.eigh((small + small.conj().T) / 2)
    cut = request.cut(values, np.inf)
    assert cut is not None
    if cut > max_pairs:
        raise TooManyPairs(cut)
    vectors = complement @ rotation[:, :cut]
    residuals = np.linalg.norm(A @ vectors - vectors * values[:cut], axis=0)
    return BlockSolution(values[:cut], vectors, residuals, "dense", n, True)


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
        seed: seed of the random start and verification blocks.

    Returns:
        Pairs such that no eigenvalue <= values[-1] + gap_tol is missing.

    Raises:
        ValueError: if not exactly one of count and below is given, or count exceeds n - m0.
        TooManyPairs: if the answer has more than max_pairs pairs.
        NotConverged: if the work budget does not suffice.
    """
    n = A.shape[0]
    known = np.zeros((n, 0), A.dtype) if known is None else known.astype(A.dtype)
    room = n - known.shape[1]
    if (count is None) == (below is None):
        raise ValueError("give exactly one of count and below")
    if count is not None and not 1 <= count <= room:
        raise ValueError(f"count must lie between 1 and {room}, got {count}")
    request = _Request(count, below, gap_tol)
    if count is not None and count > max_pairs:
        raise TooManyPairs(0)
    rng = np.random.default_rng(seed)
    if n <= 200 or (count is not None and 4 * count > n):
        return _dense(A, request, known, max_pairs)
    operator = Operator(A)
    known = np.asfortranarray(known[operator.order])
    probe = probe_spectrum(operator, known, bounds, rng)
    expected = count if count is not None else int(probe.count_below(float(below or 0.0))) + 1
    if 4 * expected > n:
        return _dense(A, request, known[np.argsort(operator.order)], max_pairs)
    fill = estimate_fill(operator.matrix)
    if _filter is None:
        _filter = "solve" if fill <= min(_FILL_SOLVE, _FILL_SOLVE_PER_ROW * n) else "chebyshev"
    solve = None
    if _filter == "solve":
        scale = typical_low_value(operator, expected, rng) - probe.low
        shift = probe.low - max(0.1 * scale, 1e-10 * (bounds[1] - bounds[0]))
        solve = SolveFilter(operator, shift)
    iteration = _Iteration(
        operator,
        request,
        known,
        tol,
        max_pairs,
        bounds,
        rng,
        solve,
        may_count=solve is not None or fill <= _FILL_COUNT,
        low=probe.low,
        high=probe.high,
        edge=max(probe.value_at(2.0 * expected + 16), below if below is not None else -np.inf),
        expected=expected,
        known_values=np.einsum("ij,ij->j", known.conj(), operator.apply(known)).real
        if known.shape[1]
        else np.empty(0),
    )
    try:
        cut, certified = iteration.run()
    except _Exhausted:
        return _dense(A, request, known[np.argsort(operator.order)], max_pairs)
    order = np.argsort(iteration.values, kind="stable")[:cut]
    values, vectors, residuals = _finish(operator, iteration.locked[:, order], cut)
    return BlockSolution(
        values, vectors, residuals, _filter, operator.products + iteration.solves, certified
    )
