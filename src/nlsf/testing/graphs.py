"""Small graphs with known spectra, and small graphs that break naive code."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class TinyGraph(NamedTuple):
    """A graph that every function of `nlsf.spectral` accepts as it is.

    Attributes:
        edge_index: (2, E), both directions of each edge.
        num_nodes: N.
        edge_weight: (E,), or ``None`` for weights of 1.
    """

    edge_index: Tensor
    num_nodes: int
    edge_weight: Tensor | None = None


def tiny_graphs() -> dict[str, TinyGraph]:
    """Well-behaved graphs, with simple and repeated eigenvalues, all connected."""
    return {
        "path": path(7),
        "ring": ring(9),
        "torus": torus(4, 5),
        "star": star(6),
        "complete": complete(5),
        "bipartite": complete_bipartite(3, 4),
        "weighted": weighted(8),
        "tree": tree(15),
    }


def hostile_graphs() -> dict[str, TinyGraph]:
    """Legal graphs on which code breaks that was only tried on large connected ones."""
    return {
        "empty": TinyGraph(_edges([]), 0),
        "one node": TinyGraph(_edges([]), 1),
        "isolated nodes": TinyGraph(_edges([]), 4),
        "one edge": path(2),
        "one edge and an isolated node": TinyGraph(path(2).edge_index, 3),
        "two equal components": disjoint(torus(3, 3), 2),
        "fifty triangles": disjoint(complete(3), 50),
        "star": star(9),
        "complete": complete(8),
        "torus": torus(4, 4),
        "duplicate nodes": complete_bipartite(2, 7),
        "nearly disconnected": bridge(4, 1e-9),
    }


def path(n: int) -> TinyGraph:
    """So many nodes in a row."""
    return TinyGraph(_edges([(i, i + 1) for i in range(n - 1)]), n)


def ring(n: int) -> TinyGraph:
    """So many nodes in a circle: eigenvalues come in pairs."""
    return TinyGraph(_edges([(i, (i + 1) % n) for i in range(n)]), n)


def torus(n: int, m: int) -> TinyGraph:
    """An n x m grid that wraps around: eigenvalues repeat up to eight times when n = m."""
    right = [(i * m + j, i * m + (j + 1) % m) for i in range(n) for j in range(m)]
    down = [(i * m + j, ((i + 1) % n) * m + j) for i in range(n) for j in range(m)]
    return TinyGraph(_edges(right + down), n * m)


def star(leaves: int) -> TinyGraph:
    """A hub with leaves: the eigenvalue 1 of L and of N is repeated ``leaves - 1`` times."""
    return TinyGraph(_edges([(0, i) for i in range(1, leaves + 1)]), leaves + 1)


def complete(n: int) -> TinyGraph:
    """Every pair joined: two eigenspaces."""
    return TinyGraph(_edges([(i, j) for i in range(n) for j in range(i)]), n)


def complete_bipartite(n: int, m: int) -> TinyGraph:
    """Two sides, every pair across joined: nodes of a side have the same neighbours."""
    return TinyGraph(_edges([(i, n + j) for i in range(n) for j in range(m)]), n + m)


def tree(n: int) -> TinyGraph:
    """A binary tree of n nodes."""
    return TinyGraph(_edges([((i - 1) // 2, i) for i in range(1, n)]), n)


def weighted(n: int) -> TinyGraph:
    """A path with chords and weights that are all different: simple eigenvalues."""
    pairs = [(i, i + 1) for i in range(n - 1)] + [(i, i + 3) for i in range(0, n - 3, 2)]
    weight = torch.linspace(0.5, 2.0, len(pairs), dtype=torch.float64)
    return TinyGraph(_edges(pairs), n, torch.cat([weight, weight]))


def bridge(n: int, weight: float) -> TinyGraph:
    """Two complete graphs of n nodes, joined by one edge of the given weight."""
    two = disjoint(complete(n), 2)
    edge_index = torch.cat([two.edge_index, _edges([(0, n)])], dim=1)
    edge_weight = torch.ones(edge_index.shape[1], dtype=torch.float64)
    edge_weight[-2:] = weight
    return TinyGraph(edge_index, 2 * n, edge_weight)


def disjoint(graph: TinyGraph, copies: int) -> TinyGraph:
    """Several copies of a graph side by side: every multiplicity is multiplied."""
    n = graph.num_nodes
    edge_index = torch.cat([graph.edge_index + i * n for i in range(copies)], dim=1)
    weight = None if graph.edge_weight is None else graph.edge_weight.repeat(copies)
    return TinyGraph(edge_index, copies * n, weight)


def _edges(pairs: list[tuple[int, int]]) -> Tensor:
    """Both directions of each pair, without doubles: (2, E)."""
    half = torch.tensor(sorted({(min(p), max(p)) for p in pairs}), dtype=torch.int64)
    half = half.reshape(-1, 2).T
    return torch.cat([half, half.flip(0)], dim=1)
