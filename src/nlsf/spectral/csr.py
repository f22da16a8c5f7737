"""Sparse matrices by rows: `csr_tensor` for PyTorch, `csr_matrix`, `diagonal_places`."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nlsf.errors import GraphError

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
