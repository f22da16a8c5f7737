"""Graphs as pictures: places for their nodes, and small parts of large ones.

`picture_of` chooses what is drawn of a graph, `layout` finds places, `side_by_side` joins pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from nlsf.report.numbers import evenly_chosen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EDGES = 3_000
"""Edges that a drawing has room for."""

_STEPS = 60
_BRANCHING = 8
"""Neighbours that a sampled node brings along, so that one hub does not fill the picture."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Nodes and edges of a drawing.

    Attributes:
        nodes: which nodes of the graph, ascending.
        places: (n, 2).
        edges: (2, e), numbered within the picture.
        all_edges: how many there are between these nodes.
    """

    nodes: Ints
    places: Floats
    edges: Ints
    all_edges: int

    def drawn(self) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
        """Places and edges as a `GraphDrawing` takes them."""
        places = [(round(float(x), 4), round(float(y), 4)) for x, y in self.places]
        return places, [(int(a), int(b)) for a, b in self.edges.T]


def picture_of(graph: Data, size: int, start: int = 0) -> Picture:
    """A graph, or its part around a node, at its own places where it has some.

    Args:
        graph: with both directions of every edge.
        size: nodes to draw at most.
        start: the node whose neighbourhood is drawn of a larger graph.
    """
    count = int(graph.num_nodes or 0)
    edges = graph.edge_index.numpy()
    nodes = np.arange(count) if count <= size else sample(edges, count, start, size)
    inside = induced(edges, nodes, count)
    position = graph.get("pos")
    if position is not None and position.shape[-1] >= 2:
        places = position.numpy()[nodes, :2].astype(np.float64)
    else:
        places = layout(inside, len(nodes))
    shown = inside[:, evenly_chosen(inside.shape[1], limit=_EDGES)] if inside.size else inside
    return Picture(nodes, places, shown, inside.shape[1])


def side_by_side(pictures: Sequence[Picture]) -> Picture:
    """The pictures in a grid, three times as wide as high or less; nodes are numbered through."""
    columns = max(1, round(np.sqrt(1.5 * len(pictures))))
    places, edges, first = [], [], 0
    for i, picture in enumerate(pictures):
        row, column = divmod(i, columns)
        places.append(picture.places * 0.8 + np.array([column, -row]))
        edges.append(picture.edges + first)
        first += len(picture.nodes)
    total = sum(picture.all_edges for picture in pictures)
    return Picture(np.arange(first), np.concatenate(places), np.concatenate(edges, axis=1), total)


def sample(edges: Ints, num_nodes: int, start: int, size: int) -> Ints:
    """A connected part of a graph around a node: at most ``size`` nodes, ascending.

    The walk goes outwards from the start, and takes a few neighbours of each node. Where that ends
    too early it takes all of them, and then goes on from the first node that it has not seen.

    Args:
        edges: (2, E), both directions of every edge.
        num_nodes: N.
        start: where to begin.
        size: how many nodes are wanted.
    """
    order = np.argsort(edges[0], kind="stable")
    ends = edges[1][order]
    first = np.concatenate([[0], np.cumsum(np.bincount(edges[0], minlength=num_nodes))])
    seen = np.zeros(num_nodes, dtype=bool)
    chosen = [start]
    seen[start] = True
    for branching in (_BRANCHING, num_nodes):
        place = 0
        while place < len(chosen) < size:
            node = chosen[place]
            around = ends[first[node] : first[node + 1]]
            new = around[~seen[around]][:branching][: size - len(chosen)]
            seen[new] = True
            chosen.extend(new.tolist())
            place += 1
    left = np.flatnonzero(~seen)[: max(size - len(chosen), 0)]
    return np.sort(np.concatenate([np.array(chosen, dtype=np.int64), left]))


def induced(edges: Ints, nodes: Ints, num_nodes: int) -> Ints:
    """The edges (2, e) between some nodes, once each, with the nodes numbered from 0."""
    number = np.full(num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    a, b = number[edges]
    inside = (a >= 0) & (b >= 0) & (a < b)
    return np.stack([a[inside], b[inside]])


def layout(edges: Ints, num_nodes: int) -> Floats:
    """Places (N, 2) in the unit square: spectral coordinates, refined by springs.

    Components are laid out one by one and then put side by side. The same graph always gets the
    same places.

    Args:
        edges: (2, e), each edge at least once.
        num_nodes: N; at most a few hundred, because all pairs of nodes are looked at.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(edges.shape[1])
    matrix = coo_matrix((ones, (edges[0], edges[1])), shape=(num_nodes, num_nodes))
    count, owner = connected_components(matrix, directed=False)
    if count <= 1:
        return _connected(edges, num_nodes)
    sizes = np.bincount(owner)
    largest_first = np.argsort(-sizes, kind="stable")
    corners = _packed((np.sqrt(sizes[largest_first]) + 0.6).tolist())
    places, number = np.zeros((num_nodes, 2)), np.full(num_nodes, -1)
    for component, corner in zip(largest_first, corners, strict=True):
        inside = owner == component
        number[inside] = np.arange(sizes[component])
        own = number[edges[:, owner[edges[0]] == component]]
        box = _connected(own, int(sizes[component])) * np.sqrt(sizes[component])
        places[inside] = box + corner
    return _unit(places)


def _connected(edges: Ints, num_nodes: int) -> Floats:
    if num_nodes < 3:
        return np.array([[0.5, 0.5]] if num_nodes == 1 else [[0.0, 0.5], [1.0, 0.5]])[:num_nodes]
    adjacency = np.zeros((num_nodes, num_nodes))
    adjacency[edges[0], edges[1]] = adjacency[edges[1], edges[0]] = 1.0
    return _unit(_upright(_springs(_unit(_spectral(adjacency)), adjacency), edges))


def _spectral(adjacency: Floats) -> Floats:
    """The two slowest patterns of the normalised Laplacian, as coordinates."""
    root = 1 / np.sqrt(np.maximum(adjacency.sum(1), 1.0))
    _, vectors = np.linalg.eigh(np.eye(len(root)) - root[:, None] * adjacency * root)
    places = vectors[:, 1:3] * root[:, None]
    # The sign of an eigenvector is arbitrary: fix it, so that pictures can be compared.
    largest = np.abs(places).argmax(0)
    signs: Floats = np.sign(places[largest, [0, 1]])
    # Nodes with the same neighbours would lie on each other, where no force parts them.
    angle = np.arange(len(root)) * 2.399963
    noise = 1e-3 * np.abs(places).max() * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    moved: Floats = places * signs + noise
    return moved


def _springs(places: Floats, adjacency: Floats) -> Floats:
    """Edges pull, all nodes push, with ever smaller steps (Fruchterman and Reingold)."""
    length = 1 / np.sqrt(len(places))
    for step in range(_STEPS):
        x, y = places.T
        distance = np.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)
        np.maximum(distance, 0.01 * length, out=distance)
        force = (length / distance) ** 2 - adjacency * (distance / length)
        # The sum over j of force_ij (p_i - p_j), as a product.
        move = places * force.sum(1)[:, None] - force @ places
        size = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
        limit = 0.1 * (1 - step / _STEPS)
        places = places + move / size * np.minimum(size, limit)
    return _unit(places)


def _upright(places: Floats, edges: Ints) -> Floats:
    """Turned so that edges run along the axes where they can: the pixels of an image stand upright.

    Of the ways to do that, the one in which numbers grow downwards and, if less, to the right.
    """
    x, y = (places[edges[0]] - places[edges[1]]).T
    # The fourth power is the same for all four directions of a grid.
    angle = np.angle(((x + 1j * y) ** 4).sum()) / 4
    turned = places @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    number = np.arange(len(places)) - (len(places) - 1) / 2
    trend = number @ (turned - turned.mean(0))
    if abs(trend[0]) > abs(trend[1]):
        turned, trend = turned[:, ::-1], trend[::-1]
    upright: Floats = turned * np.where(trend * [1, -1] < 0, -1.0, 1.0)
    return upright


def _packed(sides: list[float]) -> Floats:
    """Corners of squares in rows, in an area about as wide as high; the largest comes first."""
    width = max(np.sqrt(sum(side**2 for side in sides)) * 1.15, max(sides))
    corners, x, y, height = [], 0.0, 0.0, 0.0
    for side in sides:
        if x and x + side > width:
            x, y, height = 0.0, y + height, 0.0
        corners.append((x, y))
        x, height = x + side, max(height, side)
    return np.array(corners)


def _unit(places: Floats) -> Floats:
    """Moved and scaled, the same in both directions, to fill the unit square."""
    low, high = places.min(0), places.max(0)
    scale = max(float((high - low).max()), 1e-12)
    centred: Floats = (places - (low + high) / 2) / scale + 0.5
    return centred
