"""What large components add to a spectrum: as many eigenpairs of each as the request needs."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nlsf.errors import SpectrumError
from nlsf.spectral.components import Piece, Union, solve_dense
from nlsf.spectral.memory import memory_budget, require_memory
from nlsf.spectral.request import EigenRequest
from nlsf.spectral.solver import TooManyPairs, UnfinishedError, lowest_eigenpairs
from nlsf.spectral.spectrum import eigenspace_ids

DENSE_SHARE = 0.15
"""A component of which more than this share of the eigenpairs is wanted is solved densely."""

DENSE_RESCUE = 8000
"""The size up to which a dense solve steps in where the block method gives up."""

_BLOCK_COPIES = 6
"""Arrays of N x (pairs) that the block method and the result keep at once."""

_BLOCK_EXTRA = 32
"""Columns that the block method keeps beyond the wanted ones."""


def with_large(
    request: EigenRequest,
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
    request: EigenRequest, nodes: NDArray[np.int64], count: int, cut: float | None
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


def _dense_instead(
    request: EigenRequest, matrix: sparse.csr_array, nodes: NDArray[np.int64]
) -> Piece:
    """All eigenpairs of a component of which a block method would need too large a share."""
    request.require_dense(len(nodes), len(nodes))
    return solve_dense(matrix, nodes[None], kernel=request.kernel, whole=True)


def _require_pairs(request: EigenRequest, size: int, pairs: int, bytes_per_pair: int) -> None:
    require_memory(
        pairs * bytes_per_pair,
        request.memory_limit,
        f"About {pairs:,} eigenpairs of a component with {size:,} nodes",
        "Ask for fewer pairs or fewer bands, or raise memory_limit.",
    )


def _trusted(union: Union, request: EigenRequest, nullity: int) -> int:
    """How many of the leading values are in eigenspaces that are complete for certain."""
    spaces = eigenspace_ids(torch.from_numpy(union.values), request.gap, nullity).numpy()
    last_of_space = np.searchsorted(spaces, spaces, side="right") - 1
    complete = union.values[last_of_space] + request.gap <= union.reach
    complete[:nullity] = True
    return int(complete.cumprod().sum())


def _spaces(values: NDArray[np.float64], request: EigenRequest, nullity: int) -> int:
    ids = eigenspace_ids(torch.from_numpy(values), request.gap, nullity)
    return int(ids[-1]) + 1 if len(ids) else 0
