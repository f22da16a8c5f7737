"""Many graphs side by side, from which batches are taken: `NeighbourhoodUnion`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import torch
from torch import Tensor

from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.block_signal import BlockSignal, diagonal_blocks
from nlsf.spectral.node_ranges import nodes_of_graphs
from nlsf.spectral.sparse_signal import SparseSignal


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
