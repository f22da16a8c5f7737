"""Eigenpairs of a disconnected graph: the union of those of its connected components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from nlsf.spectral.solver import orthonormal_eigh

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


def connected_components(matrix: sparse.csr_array) -> list[NDArray[np.int64]]:
    """The nodes of each connected component, the components in the order of their first node."""
    if matrix.shape[0] == 0:
        return []
    _, labels = csgraph.connected_components(abs(matrix), directed=False)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


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
