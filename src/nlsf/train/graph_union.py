"""A data set of graphs for models that multiply with its matrices: `GraphUnion`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.nn.baselines import PeerModel
from nlsf.nn.baselines.neighbourhood_union import GraphsOfUnion, NeighbourhoodUnion
from nlsf.train.inputs import Inputs, Padded

_NODES = 32_768
"""Nodes, those of all models together, that are evaluated at once."""


class GraphChoice(NamedTuple):
    """Some graphs; or R of them for each of M models, padded to one number n of nodes.

    Attributes:
        x: (n, d) or (M, n, d), the features of their nodes.
        place: (n,) or (M, n), the graph of each node, 0 to R - 1; R for nodes that pad.
        graphs: their matrices.
        count: R.
        padded: how they are padded; ``None`` for one model.
    """

    x: Tensor
    place: Tensor
    graphs: GraphsOfUnion
    count: int
    padded: Padded | None


class GraphUnion(Inputs):
    """All graphs of a data set side by side, from which batches are gathered.

    Matrices are built once for all graphs; a step picks the rows that it needs. The batches of many
    models are padded with isolated nodes, and a product with the matrices of all is one product.

    Args:
        graphs: all of them.
        together: whether the model can be computed with others in one call.
    """

    whole = False

    def __init__(self, graphs: Sequence[Data], together: bool) -> None:
        self.together = together
        self.x = torch.cat([graph.x for graph in graphs])
        nodes = [int(graph.num_nodes or 0) for graph in graphs]
        edges = [graph.edge_index for graph in graphs]
        self.union = NeighbourhoodUnion(edges, nodes, self.x.dtype)

    def select(self, rows: Tensor) -> GraphChoice:
        """The features and matrices of these graphs."""
        count = rows.shape[-1]
        if rows.ndim == 1:
            graphs, node, place = self.union.batch(rows)
            return GraphChoice(self.x[node], place, graphs, count, None)
        graphs, node, place = self.union.batches(rows)
        padded = Padded(self.union.nodes[rows].sum(1).tolist(), node.shape[1])
        return GraphChoice(self.x[node], place, graphs, count, padded)

    def apply(self, model: nn.Module, chosen: GraphChoice) -> Tensor:
        """The outputs at these graphs."""
        x, place, graphs, count, padded = chosen
        if not isinstance(model, PeerModel):
            out: Tensor = model(x, graphs.edge_index, batch=place)
            return out
        if padded is not None:
            graphs = graphs.seen_by_one(place < count)
        return model.forward_graphs(x, graphs, place, count)

    def padded(self, chosen: GraphChoice) -> Padded | None:
        """The numbers of nodes."""
        return chosen.padded

    def in_parts(self, rows: Tensor) -> Sequence[Tensor]:
        """The graphs (..., R) in parts of few enough nodes."""
        nodes = self.union.nodes[rows].reshape(-1, rows.shape[-1]).sum(0)
        _, counts = (nodes.cumsum(0) // _NODES).unique_consecutive(return_counts=True)
        return rows.split(counts.tolist(), dim=-1) if len(nodes) else (rows,)
