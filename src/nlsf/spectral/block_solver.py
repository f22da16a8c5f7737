r"""Lowest eigenpairs of a sparse Hermitian matrix, with every copy of a repeated eigenvalue.

A Krylov method started from one vector sees one copy of a repeated eigenvalue; whether it meets the
others is left to rounding, and tiny residuals do not tell. Three things are done against that here:

1. a *block Davidson* iteration: an orthonormal basis V grows by blocks F(A) X, where X are the
   lowest unconverged Ritz vectors and F is one of the filters of
   :mod:`nlsf.spectral.spectral_filters`; converged pairs are locked lowest first and deflated;
2. the iteration ends only when the next eigenvalue has been *seen* beyond the last eigenspace;
3. then the number of pairs is *verified*: where a factorisation is affordable by an inertia count
   (an exact statement), otherwise by a fresh random block, orthogonal to all that was found, and
   filtered until a missed eigenvector would dominate it. What turns up is locked, and the
   verification is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nlsf.spectral.spectral_filters import (
    Array,
    ChebyshevFilter,
    Operator,
    SolveFilter,
    chebyshev_degree,
    chebyshev_gain,
    count_below,
    estimate_fill,
    probe_spectrum,
    solve_is_cheaper,
    typical_low_value,
)

FilterName = Literal["solve", "chebyshev"]
_Pairs = tuple[NDArray[np.float64], Array, NDArray[np.float64]]

_LOCK = 0.3  # pairs are locked at this fraction of `tol`: the final rotation mixes their residuals
_MAX_GAIN = 1e10  # beyond, the lowest Ritz vector would drown the rest of its block in rounding
_DOUBT = 10.0  # a Ritz value is seen beyond a gap only if its residual is this much smaller
_STEP_GAIN = 100.0
_DENSE = 2000
_FILL_SOLVE, _FILL_COUNT = 3e7, 3e6  # largest estimated factors for the filter, and to count only


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


class _UnfinishedError(RuntimeError):
    """Base of the errors that carry what is converged so far.

    Attributes:
        values: (m,) converged eigenvalues, not necessarily a complete set.
        vectors: (n, m) their vectors.
        residuals: (m,) norms of their residuals.
    """

    def __init__(self, message: str, pairs: _Pairs | None = None) -> None:
        super().__init__(message)
        if pairs is None:
            pairs = (np.empty(0), np.empty((0, 0)), np.empty(0))
        self.values: NDArray[np.float64] = pairs[0]
        self.vectors: Array = pairs[1]
        self.residuals: NDArray[np.float64] = pairs[2]


class TooManyPairs(_UnfinishedError):  # noqa: N818 - a finding, not a fault
    """The answer has more than `max_pairs` pairs, `found` at least; go dense instead."""

    def __init__(self, found: int, pairs: _Pairs | None = None) -> None:
        super().__init__(
            f"The answer has {found} eigenpairs or more, which is above max_pairs: raise it, ask "
            "for less, or use a dense solver.",
            pairs,
        )
        self.found = found


class NotConverged(_UnfinishedError):  # noqa: N818
    """The work budget is spent."""

    def __init__(self, pairs: _Pairs) -> None:
        super().__init__(
            f"Only {pairs[0].size} eigenpairs converged within the work budget: ask for fewer, "
            "loosen tol, or use a dense solver.",
            pairs,
        )


class _Exhausted(Exception):  # noqa: N818
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
            following: lower bound of the lowest value that is not converged (inf at the end of the
                spectrum); converged values above it do not count as seen.
        """
        extended = np.append(values[values <= following], following)
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
    """Orthonormal basis of the block's part outside the bases; vanishing directions are dropped.

    Gram matrices instead of QR: five times faster for tall blocks, and repeated until a pass
    changes little. What still shrinks in the third pass is rounding noise inside the bases (on a
    symmetric graph even noise is symmetric), and is dropped.
    """
    for attempt in range(6):
        floor = 1e-13 if attempt < 2 else 0.1
        block = block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(float).tiny)
        _project_out(block, *bases)
        left = np.linalg.norm(block, axis=0)
        block = block[:, left > floor] / left[left > floor]
        if not block.shape[1]:
            break
        weights, rotation = np.linalg.eigh(block.conj().T @ block)
        alive = weights > floor * weights[-1]
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
    filter: ChebyshevFilter | SolveFilter
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
    spare: float = 1.0  # grows when convergence is slow
    fresh: int = 0  # size of the last verification block
    checked_cut: int = -1  # number of pairs below the gap when the last fresh block was added,
    checked_value: float = -np.inf  # and the last of them
    spent: int = 0

    def __post_init__(self) -> None:
        n, dtype = self.operator.size, self.operator.dtype
        self.locked = np.empty((n, 0), dtype, order="F")
        self.values = np.empty(0)
        self.block = int(np.clip(-(-self.expected // 4), 4, 16))
        self._set_edge(self.edge)
        self.first_edge = self.edge
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
        columns = block.shape[1]
        block = _orthonormalise(block, self.known, self.locked, active)
        if not block.shape[1]:  # an invariant subspace: only chance leads out of it
            block = _orthonormalise(self._random(columns), self.known, self.locked, active)
        images = self.operator.apply(block)
        _project_out(images, self.locked)
        self.basis.append(block, images)
        self.spent += block.shape[1]

    def _pairs(self) -> _Pairs:
        return _finish(self.operator, self.locked)

    def polished(self, cut: int) -> _Pairs:
        """The lowest `cut` locked pairs, filtered again if the rotation left a residual above tol.

        Raises:
            NotConverged: if that does not help, because `tol` is below rounding errors.
        """
        order = np.argsort(self.values, kind="stable")[:cut]
        block, edge = self.locked[:, order], self.edge
        for _ in range(3):
            pairs = _finish(self.operator, block)
            if pairs[2].max(initial=0.0) <= self.tol:
                return pairs
            degree = self._degree(pairs[0][0], pairs[0][-1], _STEP_GAIN)
            block = self.filter.apply(block, edge, degree, self.known, self.filter.degrees[0])
            block = _orthonormalise(block, self.known)
        raise NotConverged(pairs)

    def _random(self, columns: int) -> Array:
        block: Array = self.rng.standard_normal((self.operator.size, columns))
        return block.astype(self.operator.dtype)

    def _set_edge(self, edge: float) -> None:
        """Move the lower end of what is damped; it must not pass either end of the spectrum."""
        width = self.high - self.low
        self.edge = float(np.clip(edge, self.low + 1e-9 * width, self.high - 0.05 * width))

    def _degree(self, lowest: float, target: float, gain: float) -> int:
        limit, degree = (
            chebyshev_degree(float(self.filter.argument(np.array(value), self.edge)), bound)
            for value, bound in ((lowest, _MAX_GAIN), (target, gain))
        )
        return int(np.clip(min(degree, limit), *self.filter.degrees))

    def _filtered(
        self, block: Array, lowest: float, target: float, gain: float
    ) -> tuple[Array, float]:
        """Filter a block such that `target` grows by `gain` over what is damped, if possible.

        Args:
            block: (n, b).
            lowest: smallest value still present in the block, which must not drown the others.
            target: value whose eigenvector is to be amplified.
            gain: by how much.

        Returns:
            The filtered block (n, b), and the amplification that was reached.
        """
        degree = self._degree(lowest, target, gain)
        # Deflated directions come back as rounding errors: those that would grow too far within
        # this polynomial are projected out on the way (exactly: they span an invariant subspace).
        values = np.concatenate([self.known_values, self.values])
        arguments = self.filter.argument(values, self.edge)
        strong = chebyshev_gain(arguments, degree) > _MAX_GAIN
        deflated, period = None, degree
        if strong.any():
            deflated = np.hstack([self.known, self.locked])[:, strong]
            period = chebyshev_degree(float(arguments.max()), 1e6)
        reached = chebyshev_gain(self.filter.argument(np.array([target]), self.edge), degree)
        filtered = self.filter.apply(block, self.edge, degree, deflated, period)
        return filtered, float(reached[0])

    def _residuals(
        self, ritz: NDArray[np.float64], rotation: Array, columns: slice
    ) -> tuple[Array, NDArray[np.float64]]:
        """Ritz vectors (n, c) of some columns, and the norms (c,) of their residuals."""
        size = self.basis.size
        vectors = self.basis.vectors[:, :size] @ rotation[:, columns]
        residual = self.basis.images[:, :size] @ rotation[:, columns]
        residual -= vectors * ritz[columns]
        return vectors, np.linalg.norm(residual, axis=0)

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
            vectors, norms = self._residuals(ritz, rotation, slice(count))
            sound = norms <= 2 * _LOCK * self.tol
            count = count if sound.all() else int(np.argmin(sound))
            self.locked = np.asfortranarray(np.hstack([self.locked, vectors[:, :count]]))
            self.values = np.concatenate([self.values, ritz[:count]])
            self.settled = np.empty(0)
            if self.values.size > self.max_pairs + self.block:
                raise TooManyPairs(self.values.size, self._pairs())
        ritz, rotation = ritz[count:], rotation[:, count:]
        wanted = self.request.still_wanted(self.values.size, ritz)
        keep = min(self._keep(wanted), ritz.size)
        capacity = max(self._capacity(wanted), keep + room)
        if keep:
            self._set_edge(float(ritz[min(keep, ritz.size - 1)]))
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
        # The Ritz values left after locking may lie far above: damp all but what is near the gap.
        self._set_edge(min(self.edge, max(self.first_edge, 2 * following - last)))
        gained = 1.0
        for _ in range(30):
            block = _orthonormalise(block, self.known, self.locked)
            # All below `last` is locked, and copies not seen yet may outgrow the rest at will.
            block, reached = self._filtered(block, last, last, needed / gained)
            gained *= max(reached, 1.1)
            if gained >= needed:
                break
        self._grow(block)
        self.fresh, self.checked_cut, self.checked_value = columns, cut, last

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
            vectors, norms = self._residuals(ritz, rotation, window)
            done = norms <= _LOCK * self.tol
            prefix = done.size if done.all() else int(np.argmin(done))
            self.settled = ritz[: start + prefix]
            following = -np.inf
            if not done.all():
                following = float(ritz[start + prefix] - _DOUBT * norms[prefix])
            found = np.sort(np.concatenate([self.values, self.settled]))
            cut = self.request.cut(found, following)
            if cut is not None:
                if cut > self.max_pairs:
                    raise TooManyPairs(cut, self._pairs())
                self._restart(self.block)
                if self.values.size < cut:
                    continue
                beyond = float(min(np.append(found, np.inf)[cut], following))
                missing = self._missing(cut, beyond)
                same = cut == self.checked_cut and (
                    cut == 0 or abs(found[cut - 1] - self.checked_value) <= self.tol
                )
                if missing == 0 or (missing is None and same):
                    return cut, missing == 0
                if missing is not None and cut + missing > self.max_pairs:
                    raise TooManyPairs(cut + missing, self._pairs())
                self._add_fresh(missing, cut, beyond)
                continue
            if self.spent > budget:
                if self.spare > 1:
                    raise NotConverged(self._pairs())
                self.spare, budget = 3.0, 3 * budget
            if done.all():
                if not done.size:  # all of the basis has converged, but no gap was seen
                    self._restart(self.block)
                    self._grow(self._random(self.block))
                continue
            chosen = np.flatnonzero(~done)[: self.block]
            wanted = self.request.still_wanted(found.size, ritz[start + prefix :])
            target = float(ritz[min(start + prefix + wanted - 1, ritz.size - 1)])
            target = min(target, self.edge - 0.1 * (self.edge - min(self.low, ritz[start])))
            expansion, _ = self._filtered(
                vectors[:, chosen], float(ritz[start]), target, _STEP_GAIN
            )
            if self.basis.size + chosen.size > self.basis.capacity:
                self._restart(self.block)
            self._grow(expansion)


def _finish(operator: Operator, locked: Array) -> _Pairs:
    """Rayleigh-Ritz on the locked vectors: values, vectors (original node order), residuals."""
    images = operator.apply(locked)
    small = locked.conj().T @ images
    values, rotation = np.linalg.eigh((small + small.conj().T) / 2)
    vectors = locked @ rotation
    residuals = np.linalg.norm(images @ rotation - vectors * values, axis=0)
    restored = np.empty_like(vectors)
    restored[operator.order] = vectors
    return values, restored, residuals


def _dense(A: sp.csr_array, request: _Request, known: Array, max_pairs: int) -> BlockSolution:
    """All eigenpairs of a matrix that is not much larger than the basis would be.

    Raises:
        TooManyPairs: if the answer is too large, or the matrix: that is for the caller to decide.
    """
    n, m0 = known.shape
    if n > _DENSE:
        raise TooManyPairs(n // 4)
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
    if below is not None:
        below += tol  # a value equal to the bound must not be lost to rounding
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
    scale = typical_low_value(operator, expected, rng) - probe.low
    if _filter is None:
        cheaper = solve_is_cheaper(operator, fill, scale, probe.high - probe.low)
        _filter = "solve" if cheaper and fill <= _FILL_SOLVE else "chebyshev"
    edge = probe.value_at(2.0 * expected + 16)
    chosen: ChebyshevFilter | SolveFilter
    if _filter == "solve":
        chosen = SolveFilter.near(operator, probe.low, 0.1 * scale, bounds[1] - bounds[0])
        edge = min(edge, probe.low + 2 * scale)
    else:
        chosen = ChebyshevFilter(operator, probe.high)
    iteration = _Iteration(
        operator,
        request,
        known,
        tol,
        max_pairs,
        bounds,
        rng,
        chosen,
        may_count=_filter == "solve" or fill <= _FILL_COUNT,
        low=probe.low,
        high=probe.high,
        edge=max(edge, below if below is not None else -np.inf),
        expected=expected,
        known_values=np.einsum("ij,ij->j", known.conj(), operator.apply(known)).real
        if known.shape[1]
        else np.empty(0),
    )
    try:
        cut, certified = iteration.run()
    except _Exhausted:
        return _dense(A, request, known[np.argsort(operator.order)], max_pairs)
    values, vectors, residuals = iteration.polished(cut)
    return BlockSolution(values, vectors, residuals, chosen.name, operator.products, certified)
