"""Edges brought into order by one number each: `counted_edges` and `is_mirrored`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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
