"""Sparse matrices for PyTorch: `csr_tensor`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor


def csr_tensor(matrix: sparse.csr_array, values: NDArray[Any] | None = None) -> Tensor:
    """A CSR matrix as a sparse tensor that shares its values, or others at the same places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "CSR support is in beta"
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data if values is None else values),
            size=matrix.shape,
        )
