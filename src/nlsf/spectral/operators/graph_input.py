"""One reading of every form in which people hold a graph.

`adjacency_matrix` makes a matrix of it, `edge_list` edges and weights, and `split_batch` takes the
graphs of a batch apart. `TensorMemo` remembers what was made of a tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nlsf.errors import GraphError
from nlsf.spectral.operators.csr import MOST_NODES, counted_edges

Graph: TypeAlias = Any
"""``edge_index`` (an integer tensor or array of shape (2, E)), a square adjacency (torch dense or
sparse, a ``SparseTensor`` such as ``adj_t``, NumPy, SciPy sparse), a ``networkx`` graph, or an
object with ``edge_index`` such as a ``torch_geometric.data.Data``."""

Reduce: TypeAlias = Literal["sum", "max"]

_Result = TypeVar("_Result")


def adjacency_matrix(
    graph: Graph,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    *,
    reduce: Reduce = "sum",
) -> sparse.csr_array:
    r"""The adjacency matrix of a graph given in any common form, checked.

    Entry :math:`(i, j)` is the weight of the edge from node i to node j. Nothing is symmetrised,
    and self loops are kept.

    Args:
        graph: ``edge_index`` of shape (2, E) with integers, as in PyTorch Geometric; or a square
            matrix (tensor, array, SciPy or torch sparse, ``SparseTensor``); or a networkx graph
            (nodes in the order of ``graph.nodes``, weights from the attribute ``weight``); or an
            object with an ``edge_index``. A 2 x 2 *integer* tensor is read as an ``edge_index``.
            The ``adj_t`` of PyTorch Geometric is a transpose: of a directed graph pass
            ``adj_t.t()``.
        edge_weight: E weights; 1 each by default. Only with an ``edge_index``.
        num_nodes: number of nodes; by default the largest index plus one.
        reduce: what becomes of an edge that is listed more than once: its weights are summed (the
            convention of PyTorch Geometric and SciPy), or the largest is kept.

    Returns:
        CSR matrix (N, N), float64, without explicit zeros, column indices sorted.

    Raises:
        GraphError: for a wrong shape, an index outside 0..N-1, or a weight that is negative or not
            finite. The message names the first offending edge.
    """
    if reduce not in ("sum", "max"):
        raise GraphError(f"reduce must be 'sum' or 'max', not {reduce!r}.")
    if hasattr(graph, "edge_index"):
        if edge_weight is None:
            edge_weight = getattr(graph, "edge_weight", None)
        if num_nodes is None:
            num_nodes = getattr(graph, "num_nodes", None)
        graph = graph.edge_index
    elif hasattr(graph, "adj") and hasattr(graph, "nodes"):
        graph = _from_networkx(graph, reduce)
    elif hasattr(graph, "sparse_sizes"):
        graph = _from_sparse_tensor(graph)

    if _is_edge_index(graph):
        return _from_edge_index(_to_numpy(graph), edge_weight, num_nodes, reduce)
    if edge_weight is not None:
        raise GraphError("edge_weight goes with an edge_index; a matrix holds its own weights.")
    return _from_matrix(graph, num_nodes)


class TensorMemo:
    """What was computed of a tensor, for as long as the tensor lives and nobody writes to it."""

    def __init__(self) -> None:
        self._tensors: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
        self._found: dict[int, tuple[Hashable, Any]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def get(self, tensor: Tensor, compute: Callable[[], _Result], key: Hashable = None) -> _Result:
        """What was computed of this tensor under this key; only the last key is remembered."""
        if tensor.is_inference():  # it cannot say whether it changed
            return compute()
        number = id(tensor)
        place = tensor.data_ptr() if tensor.layout == torch.strided else None
        state = (tensor._version, place, key)
        if self._tensors.get(number) is tensor and self._found[number][0] == state:
            known: _Result = self._found[number][1]
            return known
        result = compute()
        if self._tensors.get(number) is not tensor:
            self._tensors[number] = tensor
            weakref.finalize(tensor, self._found.pop, number, None)
        self._found[number] = (state, result)
        return result


_EDGES = TensorMemo()


def edge_list(graph: Graph, edge_weight: Any, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """The edges (2, E) and weights (E,) of a graph given in any form of `adjacency_matrix`.

    An ``edge_index`` is returned as it is, unchecked. What is made of another tensor is remembered,
    so that the same tensor gives the same edges. Weights that are all 1 are left out.

    Args:
        graph: the graph.
        edge_weight: (E,) or ``None``. Only with an ``edge_index``.
        num_nodes: number of nodes.

    Raises:
        GraphError: as `adjacency_matrix`.
    """
    if isinstance(graph, Tensor):
        if _is_edge_index(graph):
            weight = edge_weight if edge_weight is None else torch.as_tensor(edge_weight)
            return graph, weight
        if edge_weight is None:
            return _EDGES.get(graph, lambda: _listed(graph, None, num_nodes), num_nodes)
    return _listed(graph, edge_weight, num_nodes)


def _listed(graph: Graph, edge_weight: Any, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    matrix = adjacency_matrix(graph, edge_weight, num_nodes).tocoo()
    edges = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    weight = None if (matrix.data == 1).all() else torch.from_numpy(matrix.data)
    if isinstance(graph, Tensor):
        edges = edges.to(graph.device)
        weight = weight if weight is None else weight.to(graph.device)
    return edges, weight


def split_batch(
    edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor
) -> list[tuple[Tensor, Tensor | None, int]]:
    """The graphs of a PyTorch Geometric batch: edges, weights and number of nodes of each.

    Args:
        edge_index: (2, E), numbered over the whole batch.
        edge_weight: (E,) or ``None``.
        batch: (N,), ascending.

    Raises:
        GraphError: the batch is not sorted or begins below 0; edges leave the batch or join two of
            its graphs; or there are more or fewer weights than edges.
    """
    _check_batch(edge_index, edge_weight, batch)
    nodes = torch.bincount(batch)
    first = nodes.cumsum(0) - nodes
    graph = batch[edge_index[0]] if edge_index.numel() else batch[:0]
    order = torch.sort(graph, stable=True).indices
    edges = (edge_index - first[graph])[:, order]
    sizes = torch.bincount(graph, minlength=len(nodes)).tolist()
    weights: Sequence[Tensor | None] = [None] * len(nodes)
    if edge_weight is not None:
        weights = edge_weight[order].split(sizes)
    return list(zip(edges.split(sizes, dim=1), weights, nodes.tolist(), strict=True))


def _check_batch(edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor) -> None:
    if batch.numel() and (batch.diff() < 0).any():
        raise GraphError("batch must be sorted: the nodes of a graph stand together.")
    if batch.numel() and batch[0] < 0:
        raise GraphError(f"batch numbers graphs from 0, and begins with {int(batch[0])}.")
    _check_range(_to_numpy(edge_index), len(batch))
    between = (batch[edge_index[0]] != batch[edge_index[1]]).nonzero()
    if len(between):
        e = int(between[0])
        i, j = edge_index[:, e].tolist()
        raise GraphError(
            f"Edge {e} of edge_index joins node {i} of graph {int(batch[i])} and node {j} of "
            f"graph {int(batch[j])}: the graphs of a batch have no edges between them."
        )
    if edge_weight is not None:
        _check_weight_shape(edge_weight, edge_index.shape[1])


def _is_edge_index(graph: Graph) -> bool:
    if sparse.issparse(graph) or (isinstance(graph, Tensor) and graph.layout != torch.strided):
        return False
    if isinstance(graph, list | tuple):
        return True
    if not isinstance(graph, Tensor | np.ndarray):
        raise GraphError(
            f"Cannot read a graph from {type(graph).__name__}: pass an edge_index of shape (2, E), "
            "a square matrix, a networkx graph, or an object with an edge_index."
        )
    return graph.ndim == 2 and graph.shape[0] == 2 and not _is_real(graph)


def _is_real(array: Tensor | NDArray[Any]) -> bool:
    """Whether the entries are weights rather than numbers of nodes; true and false are weights."""
    if isinstance(array, Tensor):
        kind = array.dtype
        return kind.is_floating_point or kind.is_complex or kind == torch.bool
    return array.dtype.kind in "fcb"


def _to_numpy(array: Any) -> NDArray[Any]:
    return array.detach().cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)


def _from_edge_index(
    edges: NDArray[Any], edge_weight: Any, num_nodes: int | None, reduce: Reduce
) -> sparse.csr_array:
    if edges.size == 0:
        edges = edges.reshape(2, 0).astype(np.int64)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise GraphError(
            f"edge_index must hold integers in the shape (2, E), not {edges.dtype} {edges.shape}."
        )
    n_edges = edges.shape[1]
    if num_nodes is None:
        num_nodes = int(edges.max()) + 1 if n_edges else 0
    _check_range(edges, num_nodes)
    if edge_weight is None and num_nodes <= MOST_NODES:
        counted = counted_edges(edges, num_nodes)
        if reduce == "max":
            counted.data[:] = 1.0
        return counted
    weight = np.ones(n_edges) if edge_weight is None else _to_numpy(edge_weight)
    _check_weight_shape(weight, n_edges)
    weight = weight.astype(np.float64)
    _check_weights(weight, edges[0], edges[1], listed=True)
    if reduce == "max":
        order = np.lexsort((-weight, edges[1], edges[0]))
        first = np.ones(n_edges, dtype=bool)
        first[1:] = (np.diff(edges[:, order], axis=1) != 0).any(axis=0)
        edges, weight = edges[:, order[first]], weight[order[first]]
    return _tidy(sparse.coo_array((weight, (edges[0], edges[1])), shape=(num_nodes, num_nodes)))


def _from_matrix(matrix: Any, num_nodes: int | None) -> sparse.csr_array:
    if isinstance(matrix, Tensor) and matrix.layout != torch.strided:
        coo = matrix.detach().cpu().to_sparse_coo().coalesce()
        row, col = coo.indices().numpy()
        matrix = sparse.coo_array((coo.values().numpy(), (row, col)), shape=tuple(coo.shape))
    elif not sparse.issparse(matrix):
        matrix = _to_numpy(matrix)
    if matrix.ndim == 2 and 2 in matrix.shape and matrix.shape[0] != matrix.shape[1]:
        raise GraphError(_not_edges(matrix))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"An adjacency matrix must be square, not {tuple(matrix.shape)}.")
    if num_nodes is not None and matrix.shape[0] != num_nodes:
        raise GraphError(f"The matrix has {matrix.shape[0]} rows, but num_nodes is {num_nodes}.")
    if matrix.dtype.kind == "c":
        raise GraphError("An adjacency matrix must be real; see ShiftOperator.from_matrix.")
    tidy = _tidy(sparse.coo_array(matrix).astype(np.float64))
    coo = tidy.tocoo()
    _check_weights(coo.data, coo.row, coo.col, listed=False)
    return tidy


def _not_edges(matrix: Any) -> str:
    """What is wrong with what looks like an ``edge_index``."""
    if matrix.shape[0] != 2:
        return f"edge_index must have the shape (2, E), not {tuple(matrix.shape)}: pass its .T."
    return f"edge_index must hold integers, not {matrix.dtype}: pass edge_index.long()."


def _from_sparse_tensor(graph: Any) -> sparse.coo_array:
    """A ``SparseTensor`` of torch_sparse, which need not be installed to read it."""
    row, column, value = graph.coo()
    entries = np.ones(len(row)) if value is None else _to_numpy(value)
    return sparse.coo_array(
        (entries, (_to_numpy(row), _to_numpy(column))), shape=tuple(graph.sparse_sizes())
    )


def _from_networkx(graph: Any, reduce: Reduce) -> sparse.csr_array:
    import networkx as nx

    if len(graph) == 0:
        return sparse.csr_array((0, 0), dtype=np.float64)
    if graph.is_multigraph():
        return _from_multigraph(graph, reduce)
    return nx.to_scipy_sparse_array(graph, format="csr", dtype=np.float64)


def _from_multigraph(graph: Any, reduce: Reduce) -> sparse.csr_array:
    """Edge by edge: networkx itself can only sum those that join the same nodes."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    listed = [(number[u], number[v], w) for u, v, w in graph.edges(data="weight", default=1)]
    if not graph.is_directed():
        listed += [(v, u, w) for u, v, w in listed if u != v]
    edges = np.array([(u, v) for u, v, _ in listed], dtype=np.int64).reshape(-1, 2).T
    weight = np.array([w for _, _, w in listed], dtype=np.float64)
    return _from_edge_index(edges, weight, len(graph), reduce)


def _check_range(edges: NDArray[Any], num_nodes: int) -> None:
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        outside = (edges < 0) | (edges >= num_nodes)
        e = int(np.flatnonzero(outside.any(axis=0))[0])
        raise GraphError(
            f"Edge {e} of edge_index joins nodes {edges[0, e]} and {edges[1, e]}, but the graph "
            f"has {num_nodes} nodes, numbered from 0."
        )


def _check_weight_shape(weight: Tensor | NDArray[Any], n_edges: int) -> None:
    if tuple(weight.shape) != (n_edges,):
        raise GraphError(
            f"edge_weight must have the shape ({n_edges},), one number an edge, "
            f"not {tuple(weight.shape)}."
        )


def _check_weights(
    weight: NDArray[np.float64], row: NDArray[Any], col: NDArray[Any], *, listed: bool
) -> None:
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        e = int(np.flatnonzero(bad)[0])
        where = f"Edge {e}, from node" if listed else "The edge from node"
        raise GraphError(
            f"{where} {row[e]} to node {col[e]}, has the weight {weight[e]}: weights must be "
            "finite and not negative (a signed matrix goes through ShiftOperator.from_matrix)."
        )


def _tidy(coo: sparse.coo_array) -> sparse.csr_array:
    csr = coo.tocsr()
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    return csr
