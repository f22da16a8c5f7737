"""Feature matrices that are mostly zero, as ``torch.sparse_csr``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data


def sparse_csr(matrix: Any) -> Tensor:
    """A SciPy matrix as ``torch.sparse_csr`` in float32."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
            check_invariants=True,
        )


def adjacency_rows(graph: Data) -> Tensor:
    """(N, N): the edges of each node; only links that go out where ``adj_out`` knows them.

    Args:
        graph: with ``edge_index``, and maybe ``edge_weight`` or ``adj_out``.
    """
    links = graph.get("adj_out")
    if links is not None:
        out: Tensor = links
        return out
    row, column = graph.edge_index.numpy()
    weight = graph.get("edge_weight")
    values = np.ones(len(row)) if weight is None else weight.numpy()
    size = int(graph.num_nodes or 0)
    return sparse_csr(sparse.csr_array((values, (row, column)), shape=(size, size)))


def side_by_side(first: Tensor, second: Tensor) -> Tensor:
    """(N, F + G) of (N, F) and (N, G), dense or sparse: the second after the first, sparse."""
    return sparse_csr(sparse.hstack([_scipy(first), _scipy(second)]))


def _scipy(x: Tensor) -> Any:
    if x.layout == torch.strided:
        return sparse.csr_array(x.numpy())
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return sparse.csr_array(parts, shape=tuple(x.shape))
