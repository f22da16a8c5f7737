"""A fixed graph as the matrices that methods multiply with: `Neighbourhood`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from nlsf.errors import ModelError
from nlsf.nn.spectra import Memo, content_digest
from nlsf.spectral.sparse_signal import Pattern, SparseSignal, row_ends

MatrixKind: TypeAlias = Literal["adjacency", "gcn", "sym", "row", "row-loops"]

_graphs = Memo(16)


class Neighbourhood:
    r"""The matrices of a graph, each built when it is first asked for.

    - ``adjacency``: :math:`A`
    - ``gcn``: :math:`\tilde D^{-1/2} (A + I) \tilde D^{-1/2}`
    - ``sym``: :math:`D^{-1/2} A D^{-1/2}`, so that :math:`N = I -` this
    - ``row``: :math:`D^{-1} A`, the mean over neighbours
    - ``row-loops``: :math:`\tilde D^{-1} (A + I)`, the mean over neighbours and the node itself

    An isolated node has a row of zeros (of itself alone, with loops). Where the graph has self
    loops, all is as in PyTorch Geometric: I stands for the loops that are missing, those of the
    graph keep their weight; a loop makes a node a neighbour of its own in ``adjacency`` and
    ``row``; and N does not see loops, nor does ``sym``. Products have a gradient for
    the signal, and `torch.func.vmap` over signals is one product.

    Args:
        edge_index: (2, E), both directions.
        num_nodes: N.
        edge_weight: (E,).
        dtype: of the matrices.

    Attributes:
        degree: (N,), the sums of weights, with loops.
        inside: (N,), which nodes are no padding; ``None`` where there is none. Nodes that pad are
            isolated: only what looks at all nodes at once need ask for it.
    """

    inside: Tensor | None = None

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.edge_index, self.num_nodes, self.dtype = edge_index, num_nodes, dtype
        ones = torch.ones(edge_index.shape[1], dtype=dtype)
        self.edge_weight = ones if edge_weight is None else edge_weight.to(dtype)
        self.degree = self.edge_weight.new_zeros(num_nodes).index_add(
            0, edge_index[0], self.edge_weight
        )
        self._known: dict[Callable[[Neighbourhood], SparseSignal], SparseSignal] = {}

    @classmethod
    def of(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Neighbourhood:
        """The same, remembered for graphs that were seen a short while ago."""
        weight = None if edge_weight is None else content_digest(edge_weight)
        key = (content_digest(edge_index), num_nodes, weight, dtype)
        found: Neighbourhood = _graphs.get(
            key, lambda: cls(edge_index, num_nodes, edge_weight, dtype)
        )
        return found

    def matrix(self, kind: MatrixKind) -> SparseSignal:
        """One of the matrices of the table, (N, N)."""
        if kind not in _KINDS:
            raise ModelError(f"There is no matrix {kind!r} of a graph.")
        return self.derived(_KINDS[kind])

    def derived(self, build: Callable[[Neighbourhood], SparseSignal]) -> SparseSignal:
        """A matrix (N, N) that a method makes of a graph, built once.

        Args:
            build: makes it. In a union of graphs, the block of a graph must be what would be made
                of that graph alone, and there must be nothing outside of the blocks.
        """
        if build not in self._known:
            self._known[build] = build(self)
        return self._known[build]


def _matrix(graph: Neighbourhood, kind: MatrixKind) -> SparseSignal:
    (row, column), weight = graph.edge_index, graph.edge_weight
    if kind in ("gcn", "row-loops"):
        bare = torch.ones(graph.num_nodes, dtype=torch.bool)
        bare[row[row == column]] = False
        nodes = bare.nonzero().squeeze(-1)
        row, column = torch.cat([row, nodes]), torch.cat([column, nodes])
        weight = torch.cat([weight, weight.new_ones(len(nodes))])
    elif kind == "sym":
        others = row != column
        row, column, weight = row[others], column[others], weight[others]
    degree = weight.new_zeros(graph.num_nodes).index_add(0, row, weight)
    if kind in ("gcn", "sym"):
        root = degree.clamp(min=0).rsqrt().where(degree > 0, 0.0)
        weight = root[row] * weight * root[column]
    elif kind in ("row", "row-loops"):
        weight = weight * (1 / degree).where(degree > 0, 0.0)[row]
    return sparse_matrix(row, column, weight, (graph.num_nodes, graph.num_nodes))


_KINDS = {kind: partial(_matrix, kind=kind) for kind in get_args(MatrixKind)}


def sparse_matrix(
    row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]
) -> SparseSignal:
    """A sparse matrix from its entries, in any order, each place at most once."""
    order = torch.argsort(row * shape[1] + column)
    row, column, values = row[order], column[order], values[order]
    counts = torch.bincount(row, minlength=shape[0])
    pattern = Pattern(row_ends(counts), column, torch.argsort(column, stable=True), shape)
    return SparseSignal.fixed(values, pattern)
