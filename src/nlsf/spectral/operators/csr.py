"""Sparse matrices by rows: shared with PyTorch, counted from edges, checked, taken apart."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from torch import Tensor

from nlsf.errors import GraphError, NotSymmetricError

LARGEST = 2**31 - 1
"""What the indices of PyTorch's sparse products can count to."""


def csr_tensor(matrix: sparse.csr_array, values: NDArray[Any] | None = None) -> Tensor:
    """A CSR matrix as a sparse tensor that shares its arrays, or has other values.

    Raises:
        GraphError: for more entries than its indices can count.
    """
    if matrix.nnz > LARGEST:
        raise GraphError(
            f"The operator has {matrix.nnz:,} entries, and one process can multiply with at most "
            f"{LARGEST:,}: take a graph with fewer edges."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "CSR support is in beta"
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32, copy=False)),
            torch.from_numpy(matrix.indices.astype(np.int32, copy=False)),
            torch.from_numpy(matrix.data if values is None else values),
            size=matrix.shape,
        )


def csr_matrix(first: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR tensor that shares these parts of it, for products that autograd does not see.

    Args:
        first: (rows + 1,), the first entry of each row, in the integers of ``column``.
        column: (nnz,), the column of each entry.
        values: (nnz,), the entries.
        shape: rows and columns.
    """
    _hear_the_warning()
    return torch.sparse_csr_tensor(first, column, values, shape, check_invariants=False)


@cache
def _hear_the_warning() -> None:
    """Makes a first CSR tensor in silence: PyTorch warns of them once, and products are many."""
    csr_tensor(sparse.csr_array((1, 1)))


def diagonal_places(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """Where the entries on the diagonal are among all entries of a square CSR matrix."""
    rows = np.arange(matrix.shape[0], dtype=matrix.indices.dtype)
    return np.flatnonzero(matrix.indices == np.repeat(rows, np.diff(matrix.indptr)))


_BITS = 32
"""Of the second node, in the number of an edge."""

MOST_NODES = 1 << (_BITS - 1)
"""Nodes up to which two of them fit into one number."""


def counted_edges(edges: NDArray[Any], num_nodes: int) -> sparse.csr_array:
    r"""The matrix that counts how often each edge is listed, in canonical form.

    An edge (i, j) becomes the number :math:`2^{32} i + j`, and the sorted numbers are the matrix,
    row by row. Sorting reads memory in order; to put every edge into its row, and then the rows
    into order, reads it at random, which takes several times as long for a large graph.

    Args:
        edges: (2, E), integers from 0 to N - 1.
        num_nodes: N, at most `MOST_NODES`.

    Returns:
        (N, N), float64.
    """
    key = _keys(edges[0], edges[1])
    if (key[1:] < key[:-1]).any():
        key.sort()
    count = np.ones(len(key))
    again = key[1:] == key[:-1]
    if again.any():
        first = np.flatnonzero(np.concatenate([[True], ~again]))
        count = np.diff(first, append=len(key)).astype(np.float64)
        key = key[first]
    index = np.int32 if len(key) <= np.iinfo(np.int32).max else np.int64
    # The cast to 32 bits keeps the low ones, which are the second node.
    columns = key.astype(np.int32).astype(index, copy=False)
    starts = _starts(key, num_nodes).astype(index)
    matrix = sparse.csr_array((count, columns, starts), shape=(num_nodes, num_nodes))
    matrix.has_canonical_format = True
    return matrix


def is_mirrored(matrix: sparse.csr_array) -> bool:
    """Whether an entry (i, j) is there wherever (j, i) is; the values are not looked at.

    Args:
        matrix: (N, N) in canonical form, with at most `MOST_NODES` rows.
    """
    size = matrix.shape[0]
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(matrix.indptr))
    key = _keys(matrix.indices, rows)
    key.sort()
    starts = _starts(key, size)
    key &= (1 << _BITS) - 1
    return np.array_equal(starts, matrix.indptr) and np.array_equal(key, matrix.indices)


def _keys(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    key = first.astype(np.int64)
    key <<= _BITS
    # Without a wider copy of the second, and of any kind of integers.
    np.bitwise_or(key, second, out=key, dtype=np.int64, casting="unsafe")
    return key


def _starts(key: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Where each row begins among the sorted entries, and where the last one ends."""
    return np.searchsorted(key, np.arange(num_nodes + 1, dtype=np.int64) << _BITS)


def check_hermitian(matrix: sparse.csr_array, *, hint: str) -> None:
    """Raises unless a matrix equals its conjugate transpose up to rounding.

    Args:
        matrix: (N, N), in canonical form.
        hint: what to do about it, for the message.

    Raises:
        NotSymmetricError: names the worst entry.
    """
    # Most graphs have no weights: then the places of the entries tell, in a third of the time.
    values = matrix.data
    equal = values.dtype.kind == "f" and values.size > 0 and values.min() == values.max()
    if equal and matrix.shape[0] <= MOST_NODES and is_mirrored(matrix):
        return
    other = matrix.conj().T.tocsr()
    same_pattern = all(
        np.array_equal(getattr(matrix, name), getattr(other, name))
        for name in ("indptr", "indices")
    )
    # Nearly always: two passes over the entries, where a difference takes many.
    if same_pattern and np.array_equal(matrix.data, other.data):
        return
    difference = abs(matrix - other).tocoo()
    if difference.nnz == 0:
        return
    worst = int(np.argmax(difference.data))
    if difference.data[worst] <= 1e-12 * abs(matrix.data).max():
        return
    i, j = int(difference.row[worst]), int(difference.col[worst])
    raise NotSymmetricError(
        f"The matrix is not symmetric: entry ({i}, {j}) is {matrix[i, j]:g} and entry ({j}, {i}) "
        f"is {matrix[j, i]:g}; {hint}"
    )


def connected_components(matrix: sparse.csr_array) -> list[NDArray[np.int64]]:
    """The nodes of each connected component, the components in the order of their first node."""
    if matrix.shape[0] == 0:
        return []
    _, labels = csgraph.connected_components(abs(matrix), directed=False)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
