"""Leading eigenpairs, no eigenspace cut and no copy missed: of one graph or of many."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse

from nlsf.errors import BandError, GraphError, MemoryBudgetError, SpectrumError
from nlsf.spectral.eigen.cache import CacheArgument, SpectrumCache
from nlsf.spectral.eigen.components import Union, by_size, solve_dense, with_large
from nlsf.spectral.eigen.request import DENSE_LIMIT, EigenRequest, extreme_eigenvalue, spectrum_end
from nlsf.spectral.eigen.spectrum import Demand, Spectrum, eigenspace_ids
from nlsf.spectral.operators.csr import connected_components
from nlsf.spectral.operators.graph_input import Graph
from nlsf.spectral.operators.shift import Normalization, ShiftOperator, Symmetrize, laplacian

if TYPE_CHECKING:  # bands know spectra; spectra know bands by what they ask for
    from nlsf.spectral.bands.base import Bands


SOLVER_VERSION = 3
"""Part of the cache key: raise it when the same request may give other numbers."""


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
            raise BandError("These bands need no eigenpairs: use Lens.of(shift, bands).")
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


_CHUNK = 64
"""Graphs that a thread takes at once: enough to make handing them over cheap."""


def batched_eigh(
    graphs: Iterable[Graph] | Graph,
    k: int | None = None,
    bands: Bands | None = None,
    *,
    normalization: Normalization = None,
    symmetrize: Symmetrize = None,
    n_jobs: int = -1,
    **options: Any,
) -> list[Spectrum]:
    """`partial_eigh` of every graph in a collection, in threads.

    Graph by graph is faster than stacking graphs of equal or padded size (docs/decisions.md), and
    LAPACK releases the interpreter, so threads suffice. Each graph is solved by one BLAS thread, so
    that the bits of the result do not depend on how many there are; `nlsf.cluster.cluster_eigh`
    gives the same bits on many machines.

    Args:
        graphs: `ShiftOperator`s, or graphs in any form that `laplacian` takes, or a PyTorch
            Geometric ``Batch``.
        k: as in `partial_eigh`, for every graph.
        bands: as in `partial_eigh`.
        normalization: which Laplacian to build of graphs that are not operators yet.
        symmetrize: as in `laplacian`.
        n_jobs: threads; all cores by default.
        options: further options of `partial_eigh`.

    Returns:
        One spectrum a graph, in the order of the input; the same as one by one.

    Raises:
        GraphError, SpectrumError, MemoryBudgetError: name the graph by its position.
    """
    if hasattr(graphs, "to_data_list"):
        graphs = graphs.to_data_list()
    if not isinstance(graphs, Sequence):
        graphs = list(graphs)

    def solve(position: int, graph: Graph) -> Spectrum:
        return solve_graph(position, graph, k, bands, normalization, symmetrize, **options)

    def solve_chunk(start: int) -> list[Spectrum]:
        chunk = graphs[start : start + _CHUNK]
        return [solve(start + i, graph) for i, graph in enumerate(chunk)]

    starts = range(0, len(graphs), _CHUNK)
    with one_blas_thread():
        chunks = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(solve_chunk)(s) for s in starts)
    return list(itertools.chain.from_iterable(chunks))


def solve_graph(
    position: int,
    graph: Graph,
    k: int | None,
    bands: Bands | None,
    normalization: Normalization,
    symmetrize: Symmetrize,
    **options: Any,
) -> Spectrum:
    """One graph of a collection; an error about it names its position."""
    try:
        if not isinstance(graph, ShiftOperator):
            graph = laplacian(graph, normalization=normalization, symmetrize=symmetrize)
        return partial_eigh(graph, k, bands, **options)
    except (GraphError, SpectrumError, MemoryBudgetError) as error:
        error.args = (f"Graph {position}: {error}",)
        raise


_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, BLAS and LAPACK use one thread a call, in the whole process.

    Many graphs keep the cores busy without it, and how a product is divided among threads changes
    the last bits of eigenvectors. Several threads may be inside at once: the limit ends with the
    last one that leaves.
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@functools.cache
def _controller() -> Any:
    # To find the libraries takes milliseconds, so once: NumPy and SciPy have loaded theirs by now.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
