"""Leading eigenpairs of a shift operator, with no eigenspace cut and no copy missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nlsf.errors import BandError, SpectrumError
from nlsf.spectral.bands import Bands
from nlsf.spectral.cache import CacheArgument, SpectrumCache
from nlsf.spectral.components import Union, by_size, connected_components, solve_dense
from nlsf.spectral.demand import Demand
from nlsf.spectral.large_components import with_large
from nlsf.spectral.request import EigenRequest
from nlsf.spectral.shift import ShiftOperator
from nlsf.spectral.spectrum import Spectrum, eigenspace_ids
from nlsf.spectral.spectrum_end import extreme_eigenvalue, spectrum_end

SOLVER_VERSION = 3
"""Part of the cache key: raise it when the same request may give other numbers."""

DENSE_LIMIT = 600
"""Components up to this size are solved densely: measured in docs/decisions.md."""


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
    request = EigenRequest(shift, demand, gap_tol, tol, dense_limit, memory_limit, seed)
    store = SpectrumCache.of(cache)
    if store is None:
        return _solve(request)
    key = store.key(shift, request=repr((demand, gap_tol, tol, dense_limit, seed, SOLVER_VERSION)))
    return store.load_or_compute(key, lambda: _solve(request))


def _demand(k: int | None, bands: Bands | None) -> Demand:
    if bands is not None:
        if k is not None:
            raise BandError("Give k or bands, not both: the bands say how many pairs they need.")
        if bands.demand().pairs == 0:
            raise BandError(
                "These bands need no eigenpairs: use PolynomialProjector(shift, bands)."
            )
        return bands.demand()
    if k is None:
        return Demand()
    if k < 1:
        raise BandError(f"k must be at least 1, not {k}.")
    return Demand(pairs=k)


def _solve(request: EigenRequest) -> Spectrum:
    shift, demand = request.shift, request.demand
    n = shift.num_nodes
    components = connected_components(request.low)
    nullity = len(components) if request.kernel else 0
    dense = [c for c in components if demand.is_all or len(c) <= request.dense_limit]
    large = [c for c in components if len(c) > request.dense_limit and not demand.is_all]
    request.require_dense(max(map(len, dense), default=0), n if demand.is_all else 0)
    pieces = [solve_dense(request.low, nodes, kernel=request.kernel) for nodes in by_size(dense)]

    if large:
        far = spectrum_end(request, "LA")
        known = request.bounds[0] >= 0 or not demand.is_cut
        cut = _cut(request, 0.0 if known else extreme_eigenvalue(request, "SA"), far)
        union = with_large(request, pieces, large, nullity, cut)
    else:
        union = Union.of(pieces)
        lowest, far = (float(union.values[0]), float(union.values[-1])) if n else (0.0, 0.0)
        cut = _cut(request, lowest, far)

    count = _needed(union, request, nullity, cut)
    values = union.values[:count]
    vectors = union.assemble(count, n, shift.matrix.dtype)
    residuals = _residuals(request.low, values, vectors)
    _check_residuals(request, values, residuals)
    sign = 1.0 if shift.order == "ascending" else -1.0
    return Spectrum(
        values=torch.from_numpy(sign * values),
        vectors=torch.from_numpy(vectors),
        residuals=torch.from_numpy(residuals),
        far=sign * far,
        reach=_reach(request, values, cut),
        gap_tol=request.gap,
        trace=float(shift.matrix.diagonal().real.sum()),
        nullity=nullity,
        name=shift.name,
        order=shift.order,
        solver="components, block method" if large else "components, dense",
    )


def _cut(request: EigenRequest, lowest: float, far: float) -> float | None:
    """The eigenvalue up to which everything is demanded, if the demand is of that kind."""
    origin = request.origin(lowest)
    frequency = request.demand.cut(far - origin)
    return None if frequency is None else origin + frequency


def _reach(request: EigenRequest, values: NDArray[np.float64], cut: float | None) -> float:
    """The frequency up to which these values are all; see `Spectrum.reach`."""
    if len(values) == request.shift.num_nodes:
        return np.inf
    lowest = float(values[0]) if len(values) else 0.0
    top = max(values[-1:], default=-np.inf) if cut is None else max([cut, *values[-1:]])
    return float(top - request.origin(lowest)) + request.gap


def _needed(union: Union, request: EigenRequest, nullity: int, cut: float | None) -> int:
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
    request: EigenRequest, values: NDArray[np.float64], residuals: NDArray[np.float64]
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
