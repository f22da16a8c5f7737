"""Leading eigenpairs of a shift operator, with no eigenspace cut and no copy missed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from nlsf.errors import BandError, NumericalWarning, SpectrumError
from nlsf.spectral.bands import Bands
from nlsf.spectral.cache import CacheArgument, SpectrumCache
from nlsf.spectral.components import (
    Piece,
    Union,
    by_size,
    connected_components,
    solve_dense,
)
from nlsf.spectral.demand import Demand
from nlsf.spectral.memory import memory_budget, require_memory
from nlsf.spectral.shift import ShiftOperator
from nlsf.spectral.solver import TooManyPairs, UnfinishedError, lowest_eigenpairs
from nlsf.spectral.spectrum import Spectrum, eigenspace_ids

SOLVER_VERSION = 1
"""Part of the cache key: raise it when the same request may give other numbers."""

DENSE_LIMIT = 600
"""Components up to this size are solved densely: measured in docs/decisions.md."""

DENSE_SHARE = 0.15
"""So are larger ones when more than this share of their eigenpairs is wanted."""

DENSE_RESCUE = 8000
"""The size up to which a dense solve steps in where the block method gives up."""

_BLOCK_COPIES = 6
"""Arrays of N x (pairs) that the block method and the result keep at once."""

_BLOCK_EXTRA = 32
"""Columns that the block method keeps beyond the wanted ones."""


def partial_eigh(
    shift: ShiftOperator,
    k: int | None = None,
    bands: Bands | None = None,
    *,
    gap_tol: float = 1e-9,
    tol: float = 1e-10,
    dense_limit: int = DENSE_LIMIT,
    memory_limit: int | None = None,
    cache: CacheArgument = None,
    seed: int = 0,
) -> Spectrum:
    r"""The leading eigenpairs of a shift operator, as many as ``k`` or the bands need.

    The graph is taken apart into its connected components. Small ones go to batched dense solves; a
    large one to a block method whose kernel vector is deflated, because it is known: 1 for L,
    :math:`D^{1/2} 1` for N. Equal components give exact multiplicities. See docs/decisions.md for
    the solvers that were measured.

    Args:
        shift: the operator.
        k: at least this many eigenpairs; more where the k-th lies in a larger eigenspace.
        bands: what the bands need. Without ``k`` and ``bands``: everything.
        gap_tol: eigenvalues closer than this belong to one eigenspace; relative to
            ``shift.scale``, a bound on the spectral norm.
        tol: residual that every eigenpair must reach, relative to ``shift.scale``.
        dense_limit: components up to this size are solved densely.
        memory_limit: bytes that may be used; 80 % of what is available by default.
        cache: keep the result on disk: ``True`` for the default folder, or a folder; see
            `SpectrumCache`.
        seed: of the random start of the block method. Results repeat exactly.

    Raises:
        BandError: k is not positive, or both k and bands are given.
        MemoryBudgetError: the request would not fit; raised before the work starts.
        SpectrumError: no convergence after all retries; carries what was found, with residuals.

    Example:
        >>> import torch
        >>> ring = torch.stack([torch.arange(8), (torch.arange(8) + 1) % 8])
        >>> from nlsf.spectral import laplacian
        >>> spectrum = partial_eigh(laplacian(ring, symmetrize="sum"), k=2)
        >>> spectrum.multiplicities.tolist()  # the second eigenspace is a plane: not cut
        [1, 2]
    """
    demand = _demand(k, bands)
    request = _Request(shift, demand, gap_tol, tol, dense_limit, memory_limit, seed)
    store = SpectrumCache.of(cache)
    if store is None:
        return _solve(request)
    key = store.key(shift, request=repr((demand, gap_tol, tol, dense_limit, seed, SOLVER_VERSION)))
    return store.load_or_compute(key, lambda: _solve(request))


def _demand(k: int | None, bands: Bands | None) -> Demand:
    if bands is not None:
        if k is not None:
            raise BandError("Give k or bands, not both: the bands say how many pairs they need.")
        return bands.demand()
    if k is None:
        return Demand()
    if k < 1:
        raise BandError(f"k must be at least 1, not {k}.")
    return Demand(pairs=k)


@dataclass(frozen=True)
class _Request:
    """The arguments of `partial_eigh`, with the operator turned so that its low end leads."""

    shift: ShiftOperator
    demand: Demand
    gap_tol: float
    tol: float
    dense_limit: int
    memory_limit: int | None
    seed: int

    @cached_property
    def low(self) -> sparse.csr_array:
        """The operator, or its negative where the largest eigenvalues lead."""
        return self.shift.matrix if self.shift.order == "ascending" else -self.shift.matrix

    @property
    def bounds(self) -> tuple[float, float]:
        """An interval that encloses the spectrum of `low`."""
        a, b = self.shift.bounds
        return (a, b) if self.shift.order == "ascending" else (-b, -a)

    @property
    def gap(self) -> float:
        """The absolute gap tolerance."""
        return self.gap_tol * self.shift.scale

    @property
    def kernel(self) -> bool:
        """Whether every component is known to have exactly one zero eigenvalue, the lowest."""
        return self.shift.null_vector is not None

    def origin(self, lowest: float) -> float:
        """The eigenvalue of `low` that has frequency 0; see `Spectrum.origin`."""
        if self.shift.order == "ascending" and lowest >= -self.gap:
            return 0.0
        return lowest


def _solve(request: _Request) -> Spectrum:
    shift, demand = request.shift, request.demand
    n = shift.num_nodes
    components = connected_components(request.low)
    nullity = len(components) if request.kernel else 0
    dense = [c for c in components if demand.is_all or len(c) <= request.dense_limit]
    large = [c for c in components if len(c) > request.dense_limit and not demand.is_all]
    _require_dense(request, max((len(c) for c in dense), default=0), n if demand.is_all else 0)
    pieces = [solve_dense(request.low, nodes, kernel=request.kernel) for nodes in by_size(dense)]

    cut = None
    if large:
        far = _extreme(request, "LA")
        if demand.cut(0.0) is not None:
            origin = 0.0 if request.bounds[0] >= 0 else request.origin(_extreme(request, "SA"))
            cut = origin + (demand.cut(far - origin) or 0.0)
        union = _with_large(request, pieces, large, nullity, cut)
    else:
        union = Union.of(pieces)
        far = float(union.values[-1]) if n else 0.0
        if n and demand.cut(0.0) is not None:
            origin = request.origin(float(union.values[0]))
            cut = origin + (demand.cut(far - origin) or 0.0)

    count = _needed(union, request, nullity, cut)
    values = union.values[:count]
    vectors = union.assemble(count, n, shift.matrix.dtype)
    residuals = _residuals(request.low, values, vectors)
    _check_residuals(request, values, residuals)
    sign = 1.0 if shift.order == "ascending" else -1.0
    reach = np.inf
    if count < n:
        top = float(values[-1]) if cut is None else max(cut, values[-1])
        reach = float(top - request.origin(float(values[0]))) + request.gap
    return Spectrum(
        values=torch.from_numpy(sign * values),
        vectors=torch.from_numpy(vectors),
        residuals=torch.from_numpy(residuals),
        far=sign * far,
        reach=reach,
        gap_tol=request.gap,
        nullity=nullity,
        name=shift.name,
        order=shift.order,
        solver="components, block method" if large else "components, dense",
    )


def _with_large(
    request: _Request,
    pieces: list[Piece],
    large: list[NDArray[np.int64]],
    nullity: int,
    cut: float | None,
) -> Union:
    """Adds what the large components contribute, asking for more until the demand is met."""
    demand = request.demand
    count = 0
    if demand.pairs is not None:
        count = demand.pairs - nullity
    elif demand.eigenspaces is not None:
        count = demand.eigenspaces - int(request.kernel)
    while True:
        solved = [_solve_large(request, nodes, count, cut) for nodes in large]
        union = Union.of(pieces + solved)
        if cut is not None or len(union.values) == request.shift.num_nodes:
            return union
        trusted = _trusted(union, request, nullity)
        have = _spaces(union.values[:trusted], request, nullity)
        if demand.pairs is not None and trusted >= min(demand.pairs, request.shift.num_nodes):
            return union
        if demand.eigenspaces is not None and have >= demand.eigenspaces:
            return union
        # Repeated eigenvalues: by experience so far, how many pairs make the missing eigenspaces.
        wanted = demand.eigenspaces if demand.eigenspaces is not None else have + 1
        count = int(max(count, 1) * min(4.0, 1.1 * wanted / max(have, 1))) + 4


def _solve_large(
    request: _Request, nodes: NDArray[np.int64], count: int, cut: float | None
) -> Piece:
    """The lowest eigenpairs of one large component: ``count`` besides the kernel, or up to cut."""
    size = len(nodes)
    matrix = request.low[nodes][:, nodes].tocsr() if size < request.low.shape[0] else request.low
    known = None
    if request.shift.null_vector is not None:
        known = request.shift.null_vector[nodes].astype(matrix.dtype)[:, None]
        known /= np.linalg.norm(known)
        if cut is None and count <= 0:
            return Piece(nodes[None], np.zeros((1, 1)), known[None], reach=0.0)
    below = None if cut is None else cut + request.gap
    if count > DENSE_SHARE * size:
        return _dense_instead(request, matrix, nodes)
    bytes_per_pair = _BLOCK_COPIES * size * matrix.dtype.itemsize
    _require_pairs(request, size, count + _BLOCK_EXTRA, bytes_per_pair)
    affordable = memory_budget(request.memory_limit) // bytes_per_pair
    try:
        found = lowest_eigenpairs(
            matrix,
            count=None if below is not None else max(count, 1),
            below=below,
            known=known,
            bounds=request.bounds,
            gap_tol=request.gap,
            tol=request.tol * request.shift.scale,
            max_pairs=min(max(int(2 * DENSE_SHARE * size), 2 * count), affordable),
            seed=request.seed,
        )
    except TooManyPairs as error:
        if error.found > affordable and 2 * DENSE_SHARE * size > affordable:
            _require_pairs(request, size, error.found, bytes_per_pair)
        return _dense_instead(request, matrix, nodes)
    except UnfinishedError as error:
        if size <= DENSE_RESCUE:
            return _dense_instead(request, matrix, nodes)
        raise SpectrumError(
            f"The block method gave up on a component with {size:,} nodes: {error}",
            values=error.values,
            residuals=error.residuals,
        ) from error
    values, vectors = found.values, found.vectors
    if known is not None:
        values = np.concatenate([[0.0], values])
        vectors = np.hstack([known, vectors])
    reach = float(values[-1]) + request.gap if len(values) else -np.inf
    if below is not None:
        reach = max(reach, below)
    return Piece(nodes[None], values[None], vectors[None], reach)


def _dense_instead(request: _Request, matrix: sparse.csr_array, nodes: NDArray[np.int64]) -> Piece:
    """All eigenpairs of a component of which a block method would need too large a share."""
    _require_dense(request, len(nodes), len(nodes))
    return solve_dense(matrix, nodes[None], kernel=request.kernel, whole=True)


def _require_pairs(request: _Request, size: int, pairs: int, bytes_per_pair: int) -> None:
    require_memory(
        pairs * bytes_per_pair,
        request.memory_limit,
        f"About {pairs:,} eigenpairs of a component with {size:,} nodes",
        "Ask for fewer pairs or fewer bands, or raise memory_limit.",
    )


def _trusted(union: Union, request: _Request, nullity: int) -> int:
    """How many of the leading values are in eigenspaces that are complete for certain."""
    spaces = eigenspace_ids(torch.from_numpy(union.values), request.gap, nullity).numpy()
    last_of_space = np.searchsorted(spaces, spaces, side="right") - 1
    complete = union.values[last_of_space] + request.gap <= union.reach
    complete[:nullity] = True
    return int(complete.cumprod().sum())


def _spaces(values: NDArray[np.float64], request: _Request, nullity: int) -> int:
    ids = eigenspace_ids(torch.from_numpy(values), request.gap, nullity)
    return int(ids[-1]) + 1 if len(ids) else 0


def _needed(union: Union, request: _Request, nullity: int, cut: float | None) -> int:
    """How many of the leading pairs the demand asks for, in whole eigenspaces."""
    demand, values = request.demand, union.values
    if demand.is_all or not len(values):
        return len(values)
    spaces = eigenspace_ids(torch.from_numpy(values), request.gap, nullity).numpy()
    if demand.pairs is not None:
        last = spaces[min(demand.pairs, len(values)) - 1]
    elif demand.eigenspaces is not None:
        last = demand.eigenspaces - 1
    else:
        mean = np.bincount(spaces, weights=values) / np.bincount(spaces)
        last = np.flatnonzero(mean <= (0.0 if cut is None else cut) + request.gap).max(initial=-1)
    return int((spaces <= last).sum())


def _extreme(request: _Request, which: str) -> float:
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
                tol=1e-12,
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


def _residuals(
    matrix: sparse.csr_array, values: NDArray[np.float64], vectors: NDArray[Any]
) -> NDArray[np.float64]:
    """||A v - lam v|| of every pair, some columns at a time."""
    residuals = np.empty(len(values))
    for start in range(0, len(values), 64):
        block = vectors[:, start : start + 64]
        defect = matrix @ block - block * values[start : start + 64]
        residuals[start : start + 64] = np.linalg.norm(defect, axis=0)
    return residuals


def _check_residuals(
    request: _Request, values: NDArray[np.float64], residuals: NDArray[np.float64]
) -> None:
    allowed = max(request.tol, 1e-11) * request.shift.scale
    worst = float(residuals.max(initial=0.0))
    if worst > allowed:
        raise SpectrumError(
            f"An eigenpair has the residual {worst:.2g}, and {allowed:.2g} was asked for: pass a "
            "larger tol, or a larger dense_limit.",
            values=values,
            residuals=residuals,
        )


def _require_dense(request: _Request, size: int, columns: int) -> None:
    """Refuses a dense solve (LAPACK keeps about four squares) that would not fit."""
    item = request.low.dtype.itemsize
    n = request.shift.num_nodes
    require_memory(
        (4 * size * size + n * columns) * item,
        request.memory_limit,
        f"The dense eigendecomposition of a component with {size:,} nodes",
        "Ask for fewer eigenpairs (k, or bands that end lower), or raise memory_limit.",
    )
