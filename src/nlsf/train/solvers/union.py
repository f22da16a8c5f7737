"""Many graphs as one that falls into parts: `union`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Union:
    """The disjoint union of graphs.

    Attributes:
        edge_index: (2, E), both directions of every edge.
        graph: (N,), the graph of each node, ascending.
        sizes: (G,), the nodes of each graph.
    """

    edge_index: Integers
    graph: Integers
    sizes: Integers

    @property
    def num_graphs(self) -> int:
        """G."""
        return len(self.sizes)

    @property
    def degree(self) -> Integers:
        """(N,), the neighbours of each node."""
        return np.bincount(self.edge_index[0], minlength=len(self.graph))

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(G,), the sum over the nodes of each graph of values (N,)."""
        totals = np.zeros(self.num_graphs)
        np.add.at(totals, self.graph, values)
        return totals


def union(graphs: Sequence[Data]) -> Union:
    """Puts graphs beside each other; the nodes of each are numbered after those before it."""
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs], dtype=np.int64)
    first = sizes.cumsum() - sizes
    edges = [g.edge_index.numpy() + start for g, start in zip(graphs, first, strict=True)]
    edge_index = np.concatenate(edges, axis=1) if edges else np.zeros((2, 0), dtype=np.int64)
    return Union(edge_index, np.repeat(np.arange(len(sizes)), sizes), sizes)
