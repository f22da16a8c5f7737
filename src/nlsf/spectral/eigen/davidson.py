"""The block Davidson iteration with a filter, locking and verification: `Davidson`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nlsf.spectral.eigen.basis import (
    Array,
    Basis,
    NotConverged,
    Operator,
    Pairs,
    TooManyPairs,
    orthonormal_eigh,
    orthonormalise,
    project_out,
)
from nlsf.spectral.eigen.filters import (
    ChebyshevFilter,
    SolveFilter,
    chebyshev_degree,
    chebyshev_gain,
    count_below,
)

_LOCK = 0.3  # pairs are locked at this fraction of `tol`: the final rotation mixes their residuals
_MAX_GAIN = 1e10  # beyond, the lowest Ritz vector would drown the rest of its block in rounding
_DOUBT = 10.0  # a Ritz value is seen beyond a gap only if its residual is this much smaller
_STEP_GAIN = 100.0  # amplification of the last wanted value in one expansion of the basis


class Exhausted(Exception):  # noqa: N818
    """The basis would fill half of the space, or cost too much: a dense solver is better."""


@dataclass(frozen=True)
class Request:
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
class Davidson:
    """State of the block Davidson iteration; `run` drives it to a verified answer."""

    operator: Operator
    request: Request
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
    most_products: float
    known_values: NDArray[np.float64]
    locked: Array = field(init=False)
    values: NDArray[np.float64] = field(init=False)
    basis: Basis = field(init=False)
    settled: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    spare: float = 1.0  # grows when convergence is slow
    fresh: int = 0  # size of the last verification block
    checked_cut: int = -1  # number of pairs below the gap when the last fresh block was added,
    checked_value: float = -np.inf  # and the last of them
    spent: int = 0
    cost: float = 0.0  # of the filters so far, in products

    def __post_init__(self) -> None:
        n, dtype = self.operator.size, self.operator.dtype
        self.locked = np.empty((n, 0), dtype, order="F")
        self.values = np.empty(0)
        self.block = int(np.clip(-(-self.expected // 4), 4, 16))
        self._set_edge(self.edge)
        self.first_edge = self.edge
        self.limit = n // 2 + self.block
        self.basis = Basis.empty(n, self._capacity(self.expected), dtype)

    def _keep(self, wanted: int) -> int:
        return wanted + int(self.spare * max(2 * self.block, wanted // 2))

    def _capacity(self, wanted: int) -> int:
        keep = self._keep(wanted)
        return keep + max(4 * self.block, keep // 2)

    def _grow(self, block: Array) -> None:
        active = self.basis.vectors[:, : self.basis.size]
        if self.known.shape[1] + self.values.size + self.basis.size + block.shape[1] > self.limit:
            raise Exhausted
        columns = block.shape[1]
        block = orthonormalise(block, self.known, self.locked, active)
        if not block.shape[1]:  # an invariant subspace: only chance leads out of it
            block = orthonormalise(self._random(columns), self.known, self.locked, active)
        images = self.operator.apply(block)
        project_out(images, self.locked)
        self.basis.append(block, images)
        self.spent += block.shape[1]

    def _pairs(self) -> Pairs:
        return rayleigh_ritz(self.operator, self.locked)

    def polished(self, cut: int) -> Pairs:
        """The lowest `cut` locked pairs, filtered again if the rotation left a residual above tol.

        Raises:
            NotConverged: if that does not help, because `tol` is below rounding errors.
        """
        order = np.argsort(self.values, kind="stable")[:cut]
        block, edge = self.locked[:, order], self.edge
        for _ in range(3):
            pairs = rayleigh_ritz(self.operator, block)
            if pairs[2].max(initial=0.0) <= self.tol:
                return pairs
            degree = self._degree(pairs[0][0], pairs[0][-1], _STEP_GAIN)
            block = self.filter.apply(block, edge, degree, self.known, self.filter.degrees[0])
            block = orthonormalise(block, self.known)
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
        self.cost += degree * block.shape[1] * self.filter.cost
        if self.cost > self.most_products:
            raise Exhausted
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
            block = orthonormalise(block, self.known, self.locked)
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


def rayleigh_ritz(operator: Operator, locked: Array) -> Pairs:
    """Rayleigh-Ritz on the locked vectors: values, vectors (original node order), residuals."""
    images = operator.apply(locked)
    small = locked.conj().T @ images
    values, rotation = orthonormal_eigh((small + small.conj().T) / 2)
    vectors = locked @ rotation
    residuals = np.linalg.norm(images @ rotation - vectors * values, axis=0)
    restored = np.empty_like(vectors)
    restored[operator.order] = vectors
    return values, restored, residuals
