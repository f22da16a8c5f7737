"""Edges and features as the rest of the package expects them.

Edges have both directions, no self loops and no doubles: `undirected`. Features that are mostly
zero are ``torch.sparse_csr``: `sparse_csr`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nlsf.errors import GraphError


def undirected(start: NDArray[Any], end: NDArray[Any], num_nodes: int) -> Tensor:
    """Both directions of each edge once, without self loops.

    Args:
        start: (E,), node ids in [0, num_nodes); an edge may be there in one or both directions and
            any number of times.
        end: (E,).
        num_nodes: N.

    Returns:
        (2, E'), int64, ordered by start, then end.
    """
    # In booleans, so that no number of doubles overflows.
    pattern = _matrix(start, end, np.ones(len(start), dtype=np.bool_), num_nodes)
    edges = (pattern + pattern.T).tocsr()
    edges.sort_indices()
    return _pairs(edges)


def undirected_weighted(
    start: NDArray[Any], end: NDArray[Any], weight: NDArray[Any], num_nodes: int
) -> tuple[Tensor, Tensor]:
    """Both directions of each edge once, with its weight, without self loops.

    Args:
        start: as in `undirected`.
        end: (E,).
        weight: (E,), not zero; all mentions of an edge, in either direction, agree.
        num_nodes: N.

    Returns:
        (2, E') int64 and (E',) float32.

    Raises:
        GraphError: two mentions of an edge disagree; names it.
    """
    low, high = np.minimum(start, end), np.maximum(start, end)
    order = np.lexsort((high, low))
    low, high, weight = low[order], high[order], np.asarray(weight, dtype=np.float64)[order]
    again = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    differs = again & (weight[1:] != weight[:-1])
    if differs.any():
        i = int(differs.argmax())
        raise GraphError(
            f"the edge between nodes {low[i]} and {high[i]} has the weights {weight[i]:g} and "
            f"{weight[i + 1]:g}"
        )
    first = np.concatenate([[True], ~again])[: len(low)]
    upper = _matrix(low[first], high[first], weight[first], num_nodes)
    edges = (upper + upper.T).tocsr()
    edges.sort_indices()
    return _pairs(edges), torch.from_numpy(edges.data.astype(np.float32))


def _matrix(
    start: NDArray[Any], end: NDArray[Any], values: NDArray[Any], num_nodes: int
) -> sparse.csr_array:
    """N x N, doubles summed, nothing on the diagonal; 32-bit indices where they suffice."""
    small = np.int32 if num_nodes < 2**31 else np.int64
    keep = start != end
    ends = (start[keep].astype(small), end[keep].astype(small))
    return sparse.coo_array((values[keep], ends), shape=(num_nodes, num_nodes)).tocsr()


def _pairs(edges: sparse.csr_array) -> Tensor:
    pairs = np.empty((2, edges.nnz), dtype=np.int64)
    pairs[0] = np.repeat(np.arange(edges.shape[0]), np.diff(edges.indptr))
    pairs[1] = edges.indices
    return torch.from_numpy(pairs)


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
