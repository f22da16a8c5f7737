"""Sparse matrices by rows: `csr_tensor` for PyTorch, `diagonal_places`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nlsf.errors import GraphError

_LARGEST = 2**31 - 1
"""What the indices of PyTorch's sparse products can count to."""


def csr_tensor(matrix: sparse.csr_array, values: NDArray[Any] | None = None) -> Tensor:
    """A CSR matrix as a sparse tensor that shares its arrays, or has other values.

    Raises:
        GraphError: for more entries than its indices can count.
    """
    if matrix.nnz > _LARGEST:
        raise GraphError(
            f"The operator has {matrix.nnz:,} entries, and one process can multiply with at most "
            f"{_LARGEST:,}: take a graph with fewer edges."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "CSR support is in beta"
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32, copy=False)),
            torch.from_numpy(matrix.indices.astype(np.int32, copy=False)),
            torch.from_numpy(matrix.data if values is None else values),
            size=matrix.shape,
        )


def diagonal_places(matrix: sparse.csr_array) -> NDArray[np.intp]:
    """Where the entries on the diagonal are among all entries of a square CSR matrix."""
    rows = np.arange(matrix.shape[0], dtype=matrix.indices.dtype)
    return np.flatnonzero(matrix.indices == np.repeat(rows, np.diff(matrix.indptr)))
