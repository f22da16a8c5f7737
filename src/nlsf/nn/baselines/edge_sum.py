"""Sums over neighbours with learned weights: `edge_sum`."""

from __future__ import annotations

from torch import Tensor

from nlsf.nn.baselines.neighbourhood import Neighbourhood


def edge_sum(weights: Tensor, h: Tensor, graph: Neighbourhood) -> Tensor:
    r"""The sums :math:`y_i = \sum_{j \in N(i)} w_{ij} h_j`, with a gradient for both factors.

    Args:
        weights: (E,), in the order of the graph's edges, which are pairs (i, j).
        h: (N, d).
        graph: the graph.

    Returns:
        (N, d); zeros for a node without neighbours.
    """
    row, column = graph.edge_index
    return h.new_zeros(h.shape).index_add(0, row, weights.unsqueeze(-1) * h[column])
