"""Where the nodes of many graphs are, without a loop over graphs."""

from __future__ import annotations

import torch
from torch import Tensor


def nodes_of_graphs(sizes: Tensor, models: Tensor, least: int = 0) -> tuple[Tensor, Tensor]:
    """Where the nodes of chosen graphs are in the union of all graphs.

    Args:
        sizes: (G,), the number of nodes of each graph; their nodes follow each other.
        models: (M, R), the graphs that each of M models looks at.
        least: a number of places that there are at least.

    Returns:
        The nodes, and the place 0 to R - 1 of each one's graph in its row: both (M, n), for the
        largest number n of nodes of a row. Rows with fewer nodes end with node 0, of graph R.
    """
    count, graphs = models.shape
    chosen = sizes[models]
    first = (sizes.cumsum(0) - sizes)[models].flatten()
    slot = torch.repeat_interleave(chosen.flatten())
    number = torch.arange(len(slot)).to(slot)
    start = chosen.flatten().cumsum(0) - chosen.flatten()
    total = chosen.sum(1)
    model = slot // graphs
    place = number - (total.cumsum(0) - total)[model]
    width = max(int(total.max()), least) if count else 0
    node = torch.zeros(count, width, dtype=torch.int64, device=slot.device)
    graph = torch.full_like(node, graphs)
    node[model, place] = first[slot] + number - start[slot]
    graph[model, place] = slot % graphs
    return node, graph


def padded_places(sizes: Tensor, width: int) -> Tensor:
    """(N_1 + ... + N_G,): where each node stands when every graph has ``width`` places."""
    graph = torch.repeat_interleave(sizes)
    first = sizes.cumsum(0) - sizes
    return graph * width + torch.arange(len(graph)).to(sizes) - first[graph]
