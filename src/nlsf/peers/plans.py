"""How peers are trained: `GraphUnion` for those of graphs, `KnownOutputs` for solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.nn.plans.plan import Padded, Plan, in_parts_of_nodes
from nlsf.peers.matrices import GraphsOfUnion, NeighbourhoodUnion


class GraphChoice(NamedTuple):
    """Some graphs; or R of them for each of M models, padded to one number n of nodes.

    Attributes:
        x: (n, d) or (M, n, d), the features of their nodes.
        place: (n,) or (M, n), the graph of each node, 0 to R - 1; R for nodes that pad.
        graphs: their matrices.
        num_graphs: R.
    """

    x: Tensor
    place: Tensor
    graphs: GraphsOfUnion
    num_graphs: int


class GraphUnion(Plan):
    """All graphs of a data set side by side, from which batches are gathered.

    Matrices are built once for all graphs; a step picks the rows that it needs. The batches of many
    models are padded with isolated nodes, and a product with the matrices of all is one product.

    Args:
        graphs: all of them.
        dtype: of the training.
        together: whether the model can be computed with others in one call.
    """

    whole = False

    def __init__(self, graphs: Sequence[Data], dtype: torch.dtype, together: bool) -> None:
        self.together = together
        self.x = torch.cat([graph.x for graph in graphs]).to(dtype)
        nodes = [int(graph.num_nodes or 0) for graph in graphs]
        edges = [graph.edge_index for graph in graphs]
        weighted = any("edge_weight" in graph for graph in graphs)
        weights = [graph.edge_weight for graph in graphs] if weighted else None
        self.union = NeighbourhoodUnion(edges, nodes, dtype, weights)

    def select(self, rows: Tensor) -> GraphChoice:
        """The features and matrices of these graphs."""
        take = self.union.batch if rows.ndim == 1 else self.union.batches
        graphs, node, place = take(rows)
        # For rows of a matrix, faster than indexing.
        x = self.x.index_select(0, node.flatten()).unflatten(0, node.shape)
        return GraphChoice(x, place, graphs, rows.shape[-1])

    def apply(self, model: Any, chosen: GraphChoice) -> Tensor:
        """The outputs of a `PeerModel` at these graphs."""
        x, place, graphs, num_graphs = chosen
        if graphs.rows is not None:
            graphs = graphs.seen_by_one(place < num_graphs)
        out: Tensor = model.forward_graphs(x, graphs, place, num_graphs)
        return out

    def padded(self, chosen: GraphChoice) -> Padded | None:
        """The numbers of nodes."""
        graphs = chosen.graphs
        return None if graphs.rows is None else Padded(graphs.rows, graphs.num_nodes)

    def in_parts(self, rows: Tensor) -> Sequence[Tensor]:
        """The graphs (..., R) in parts of few enough nodes."""
        return in_parts_of_nodes(rows, self.union.nodes)


class KnownOutputs(Plan):
    """For a model that needs no inputs: it was solved, and knows the output of every example."""

    together = False
    whole = True

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these examples."""
        out: Tensor = model(chosen)
        return out
