"""A collection of graphs in pieces of similar cost: `bare` and `cut`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from nlsf.errors import GraphError
from nlsf.spectral import ShiftOperator
from nlsf.spectral.operators import adjacency_matrix
from nlsf.spectral.operators.graph_input import Graph

_OVERHEAD = 100**3
"""The cost of a graph without nodes, in the unit of N^3: building the operator, and Python."""

_NUMBERS = 1 << 23
"""Numbers in the eigenvectors of a chunk, 64 MB: what a worker holds and sends at once."""

_ROUNDS = 8
"""Chunks a worker: the last ones, when some workers are idle, are an eighth of the work each."""


@dataclass(frozen=True, eq=False)
class Edges:
    """What a Laplacian is built of: a ``Data`` object without features and labels."""

    edge_index: Any
    edge_weight: Any
    num_nodes: int | None


def bare(position: int, graph: Graph) -> Edges | Any:
    """A graph as it travels: an operator, a CSR matrix, or `Edges`; without what nobody reads.

    Raises:
        GraphError: a graph that cannot be read, by its position.
    """
    if isinstance(graph, ShiftOperator):
        return graph
    if hasattr(graph, "edge_index"):
        return Edges(
            _array(graph.edge_index),
            _array(getattr(graph, "edge_weight", None)),
            getattr(graph, "num_nodes", None),
        )
    try:
        return adjacency_matrix(graph)
    except GraphError as error:
        error.args = (f"Graph {position}: {error}",)
        raise


def cut(graphs: Sequence[Edges | Any], workers: int) -> list[range]:
    r"""Neighbouring graphs together, so that the chunks cost about the same.

    The cost of a chunk is :math:`\sum_i (N_i^3 + c)`; it is at most an eighth of a worker's share,
    unless one graph alone is dearer.

    Args:
        graphs: what `bare` gave.
        workers: threads of the cluster.

    Returns:
        Ranges of positions that cover all graphs in order.
    """
    sizes = [_size(graph) for graph in graphs]
    target = sum(n**3 + _OVERHEAD for n in sizes) / (_ROUNDS * max(workers, 1))
    chunks, start, cost, numbers = [], 0, 0, 0
    for position, n in enumerate(sizes):
        cost, numbers = cost + n**3 + _OVERHEAD, numbers + n * n
        if position > start and (cost > target or numbers > _NUMBERS):
            chunks.append(range(start, position))
            start, cost, numbers = position, n**3 + _OVERHEAD, n * n
    return [*chunks, range(start, len(sizes))] if sizes else []


def _size(graph: Edges | Any) -> int:
    if isinstance(graph, Edges) and graph.num_nodes is None:
        return int(getattr(graph.edge_index, "shape", (0,))[-1])  # edges: a guess will do
    if isinstance(graph, Edges | ShiftOperator):
        return int(graph.num_nodes or 0)
    return int(graph.shape[0])


def _array(values: Any) -> Any:
    """Tensors as arrays, which Dask sends without a copy."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
