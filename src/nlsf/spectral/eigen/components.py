"""Eigenpairs component by component: small ones densely, large ones by the block method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nlsf.errors import SpectrumError
from nlsf.spectral.eigen.basis import TooManyPairs, UnfinishedError, orthonormal_eigh
from nlsf.spectral.eigen.lowest import lowest_eigenpairs
from nlsf.spectral.eigen.request import DENSE_LIMIT, EigenRequest, memory_budget, require_memory
from nlsf.spectral.eigen.spectrum import eigenspace_ids

Vectors = NDArray[Any]  # float64 or complex128


@dataclass(frozen=True)
class Piece:
    """Eigenpairs of m components of equal size s, all or the lowest of each.

    Attributes:
        nodes: (m, s), the nodes of each component.
        values: (m, t), ascending.
        vectors: (m, s, t).
        reach: the pieces' eigenpairs are complete up to this eigenvalue.
    """

    nodes: NDArray[np.int64]
    values: NDArray[np.float64]
    vectors: Vectors
    reach: float = np.inf


def by_size(components: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Components of equal size stacked: arrays (m, s)."""
    sizes: dict[int, list[NDArray[np.int64]]] = {}
    for nodes in components:
        sizes.setdefault(len(nodes), []).append(nodes)
    return [np.stack(sizes[s]) for s in sorted(sizes)]


def solve_dense(
    matrix: sparse.csr_array, nodes: NDArray[np.int64], *, kernel: bool, whole: bool = False
) -> Piece:
    """All eigenpairs of m components of equal size s, in one batched dense solve.

    Args:
        matrix: (N, N), the operator of the whole graph.
        nodes: (m, s).
        kernel: each component is known to have exactly one zero eigenvalue, the lowest.
        whole: the matrix is already that of the one component.
    """
    m, s = nodes.shape
    if s == 1:
        values = matrix.diagonal()[nodes[:, 0]].real[:, None].astype(np.float64)
        vectors = np.ones((m, 1, 1), dtype=matrix.dtype)
    else:
        blocks = matrix.toarray()[None] if whole else _stack(matrix, nodes)
        values, vectors = orthonormal_eigh(blocks)
    if kernel:
        values[:, 0] = 0.0
    return Piece(nodes, values, vectors)


def _stack(matrix: sparse.csr_array, nodes: NDArray[np.int64]) -> Vectors:
    """The diagonal blocks (m, s, s) of the components."""
    m, s = nodes.shape
    if m == 1:
        return np.asarray(matrix[nodes[0]][:, nodes[0]].toarray())[None]
    position = np.full(matrix.shape[0], -1)
    position[nodes.ravel()] = np.arange(m * s)
    rows = matrix[nodes.ravel()].tocoo()
    blocks = np.zeros((m, s, s), dtype=matrix.dtype)
    blocks[rows.row // s, rows.row % s, position[rows.col] % s] = rows.data
    return blocks


@dataclass(frozen=True)
class Union:
    """The eigenvalues of several pieces, sorted together, with the way back to their vectors.

    Attributes:
        pieces: what was merged.
        values: (k,), ascending.
        source: (k, 3): the piece, the component in it, and the column in that.
        reach: complete up to this eigenvalue.
    """

    pieces: list[Piece]
    values: NDArray[np.float64]
    source: NDArray[np.int64]
    reach: float

    @classmethod
    def of(cls, pieces: list[Piece]) -> Union:
        """Merges and sorts."""
        if not pieces:
            return cls([], np.zeros(0), np.zeros((0, 3), dtype=np.int64), np.inf)
        values = np.concatenate([piece.values.ravel() for piece in pieces])
        source = np.concatenate(
            [
                np.column_stack(
                    [np.full(piece.values.size, i), *np.indices(piece.values.shape).reshape(2, -1)]
                )
                for i, piece in enumerate(pieces)
            ]
        )
        order = np.argsort(values, kind="stable")
        return cls(pieces, values[order], source[order], min(p.reach for p in pieces))

    def assemble(self, count: int, num_nodes: int, dtype: np.dtype[Any]) -> Vectors:
        """The first ``count`` eigenvectors on the whole graph: (N, count), zero elsewhere."""
        V = np.zeros((num_nodes, count), dtype=dtype)
        source = self.source[:count]
        for i, piece in enumerate(self.pieces):
            columns = np.flatnonzero(source[:, 0] == i)
            component, t = source[columns, 1], source[columns, 2]
            if len(piece.nodes) == 1:  # a slice, where the general form would copy twice
                V[piece.nodes[0][:, None], columns] = piece.vectors[0][:, t]
            else:
                V[piece.nodes[component], columns[:, None]] = piece.vectors[component, :, t]
        return V


DENSE_SHARE = 0.15
"""A component of which more than this share of the eigenpairs is wanted is solved densely."""

DENSE_RESCUE = 8000
"""The size up to which a dense solve steps in where the block method gives up."""

_PATIENCE = 3.0
"""Dense solves that the block method may cost before a dense solve takes its place."""

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
            most_products=_most_products(request, matrix),
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


def _most_products(request: EigenRequest, matrix: sparse.csr_array) -> float:
    """How many products the block method may cost; any number where a dense solve would not fit.

    Where an eigenspace fills half of the graph, or values crowd behind the wanted ones, the method
    multiplies for much longer than a dense solve takes. The estimate is that of one thread: 1e-10 s
    times N^3 for a dense solve, 4e-10 s an entry for a column.
    """
    size = matrix.shape[0]
    wanted = size <= DENSE_LIMIT  # whoever lowers dense_limit wants the block method
    if wanted or request.dense_bytes(size, size) > memory_budget(request.memory_limit):
        return np.inf
    return float(_PATIENCE * size**3 / (4 * matrix.nnz))


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
