"""Fixed graphs as the matrices that methods multiply with: `Neighbourhood`.

A `NeighbourhoodUnion` has many graphs side by side, from which batches are taken; a `BlockSignal`
is what features become there, blocks of a block-diagonal matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from nlsf.errors import ModelError, SignalError
from nlsf.nn.layers.spectra import content_digest, remembered
from nlsf.spectral.kernels.segments import nodes_of_graphs
from nlsf.spectral.kernels.sparse_signal import Pattern, SparseSignal, row_ends
from nlsf.store.memory import Memory

MatrixKind: TypeAlias = Literal["adjacency", "gcn", "sym", "row", "row-loops"]

_graphs = Memory()


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
        return remembered(_graphs, key, lambda: cls(edge_index, num_nodes, edge_weight, dtype))

    def matrix(self, kind: MatrixKind) -> SparseSignal:
        """One of the matrices of the table, (N, N)."""
        if kind not in _KINDS:
            raise ModelError(f"There is no matrix {kind!r} of a graph.")
        return self.derived(_KINDS[kind])

    def derived(self, build: Callable[[Neighbourhood], SparseSignal]) -> SparseSignal:
        """A matrix (N, N) that a method makes of a graph, built once.

        Args:
            build: makes it. In a union each graph must get the block that it would get alone, and
                nothing may lie outside of the blocks.
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


class BlockSignal(SparseSignal):
    """A block-diagonal matrix (M n, M n) for M models, of which each multiplies by its own block.

    It is for the inside of a `torch.func.vmap` over the models: ``matrix @ h`` takes the (n, d) of
    one of them, and the products of all are one.

    Args:
        whole: all blocks.
        models: M.
    """

    def __init__(self, whole: SparseSignal, models: int) -> None:
        super().__init__(whole.values, whole.pattern, whole.transposed, whole.moved)
        self.models = models

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product (n, d) of this model's block with its matrix (n, d)."""
        product: Tensor = _OfModels.apply(weight, self)  # type: ignore[no-untyped-call]
        return product

    def of_all(self, weight: Tensor) -> Tensor:
        """The products (M, n, d) of all models."""
        product: Tensor = super().__matmul__(weight.flatten(0, 1))
        return product.reshape(weight.shape)


class _OfModels(torch.autograd.Function):
    """The product, for `torch.func.vmap` to call; the one of all blocks knows the gradient."""

    @staticmethod
    def forward(weight: Tensor, matrix: BlockSignal) -> Tensor:
        raise SignalError(
            f"The blocks of {matrix.models} models are multiplied inside of a torch.func.vmap "
            "over these models."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], weight: Tensor, matrix: BlockSignal
    ) -> tuple[Tensor, int]:
        if info.batch_size != matrix.models or in_dims[0] is None:
            return _OfModels.forward(weight, matrix), 0
        return matrix.of_all(weight.movedim(in_dims[0], 0)), 0


def diagonal_blocks(matrix: SparseSignal, node: Tensor, inside: Tensor) -> SparseSignal:
    """Some blocks of a square block-diagonal matrix, with rows of zeros where it is padded.

    Args:
        matrix: (N, N).
        node: (n,), the old row of each row; every block comes whole, its rows in their order.
        inside: (n,), whether the row is one of a block; the others become zeros.
    """
    values, pattern = _rows(matrix.values, matrix.pattern, node, inside)
    if matrix.symmetric:
        return SparseSignal(values, pattern, pattern, values)
    moved, transposed = _rows(matrix.moved, matrix.transposed, node, inside)
    return SparseSignal(values, pattern, transposed, moved)


def _rows(values: Tensor, pattern: Pattern, node: Tensor, inside: Tensor) -> tuple[Tensor, Pattern]:
    # index_select takes a fraction of the time of an index in brackets.
    counts = pattern.first.diff().index_select(0, node) * inside
    first = row_ends(counts)
    row = torch.repeat_interleave(counts)
    # Entries of a block follow each other, before and after: they all move by the same number,
    # those of the transposed matrix too.
    moved = (pattern.first.index_select(0, node) - first[:-1]).index_select(0, row)
    entry = torch.arange(len(row)).to(row).add_(moved)
    shift = torch.arange(len(node)).to(node) - node
    column = pattern.column.index_select(0, entry).add_(shift.index_select(0, row))
    order = pattern.order.index_select(0, entry).sub_(moved)
    return values.index_select(0, entry), Pattern(first, column, order, (len(node), len(node)))


class NeighbourhoodUnion:
    """All graphs of a data set as one, whose matrices are built once.

    They are block-diagonal, so that those of a batch are rows of them with other column numbers: no
    graph is normalised, or sorted, twice.

    Args:
        edges: the edges (2, E_g) of each graph, both directions.
        nodes: the number of nodes of each graph.
        dtype: of the matrices.
        weights: the weights (E_g,) of the edges of each graph; all 1 by default.
    """

    def __init__(
        self,
        edges: Sequence[Tensor],
        nodes: Sequence[int],
        dtype: torch.dtype = torch.float32,
        weights: Sequence[Tensor] | None = None,
    ) -> None:
        self.nodes = torch.tensor(nodes, dtype=torch.int64)
        self.first = self.nodes.cumsum(0) - self.nodes
        self.edges = torch.tensor([e.shape[1] for e in edges], dtype=torch.int64)
        none = [torch.zeros(2, 0, dtype=torch.int64)]
        edge_index = torch.cat([*none, *edges], dim=1)
        edge_index = edge_index + self.first.repeat_interleave(self.edges)
        weight = torch.cat([*weights]) if weights else None
        self.whole = Neighbourhood(edge_index, int(self.nodes.sum()), weight, dtype)

    def __len__(self) -> int:
        return len(self.nodes)

    def batch(self, graphs: Tensor) -> tuple[GraphsOfUnion, Tensor, Tensor]:
        """Some of the graphs, (R,), one after the other.

        Returns:
            The batch, its nodes (n,) in the union, and the place of each one's graph in the batch.
        """
        node, place = (t[0] for t in nodes_of_graphs(self.nodes, graphs[None]))
        edge, of = (t[0] for t in nodes_of_graphs(self.edges, graphs[None]))
        sizes = self.nodes[graphs]
        shift = sizes.cumsum(0) - sizes - self.first[graphs]
        part = GraphsOfUnion(self.whole, node, torch.ones_like(place, dtype=torch.bool))
        part.edge_index = self.whole.edge_index[:, edge] + shift[of]
        part.edge_weight = self.whole.edge_weight[edge]
        part.degree = self.whole.degree[node]
        return part, node, place

    def batches(self, graphs: Tensor) -> tuple[GraphsOfUnion, Tensor, Tensor]:
        """A batch (M, R) for each of M models, for the inside of a `torch.func.vmap` over them.

        Returns:
            The batches, which have matrices but no edges; their nodes (M, n) in the union; and the
            place of each one's graph in its batch, R for nodes that pad. There are more than R of
            them, so that a signal on nodes never has the shape of one on graphs.
        """
        node, place = nodes_of_graphs(self.nodes, graphs, least=graphs.shape[1] + 1)
        return GraphsOfUnion(self.whole, node, place < graphs.shape[1]), node, place


class GraphsOfUnion(Neighbourhood):
    """The graphs of a batch, or of one batch for each of M models.

    Args:
        whole: the union.
        node: (n,) or (M, n), the nodes.
        inside: of the same shape, which of them are no padding.

    Attributes:
        rows: how many nodes each of M models has; ``None`` for one batch.
    """

    def __init__(self, whole: Neighbourhood, node: Tensor, inside: Tensor) -> None:
        # Not that of the base class, which would build what the union has already.
        self.num_nodes, self.dtype = node.shape[-1], whole.dtype
        self._whole, self._node, self._inside = whole, node, inside
        self._known = {}
        self.rows: list[int] | None = inside.sum(1).tolist() if inside.ndim == 2 else None

    def seen_by_one(self, inside: Tensor) -> GraphsOfUnion:
        """The same, as one of M models sees it inside of a `torch.func.vmap`.

        Args:
            inside: (n,), which nodes of this model are no padding.
        """
        part = copy(self)
        part.inside = inside
        return part

    def derived(self, build: Callable[[Neighbourhood], SparseSignal]) -> SparseSignal:
        """The blocks of the union's matrix."""
        if build not in self._known:
            matrix = self._whole.derived(build)
            blocks = diagonal_blocks(matrix, self._node.flatten(), self._inside.flatten())
            alone = self.rows is None
            self._known[build] = blocks if alone else BlockSignal(blocks, len(self._node))
        return self._known[build]
