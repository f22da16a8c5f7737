"""Graphs made on this machine: random and regular ones, grids of pixels, images of digits.

All are built without a Python loop over edges. `check_whole` and `check_number` check the options
that a data set is made with.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.graph_arrays import undirected
from nlsf.errors import ConfigError


def check_whole(name: str, value: int, low: int, high: int | None = None) -> None:
    """Refuses what is not a whole number from ``low`` to ``high``, both allowed."""
    if type(value) is not int:
        raise ConfigError(f"{name} must be a whole number, not {value!r}.")
    check_number(name, value, low, high)


def check_number(name: str, value: float, low: float, high: float | None = None) -> None:
    """Refuses what is not a finite number from ``low`` to ``high``, both allowed."""
    # So that two of them can be multiplied; Python's whole numbers have no end.
    if type(value) not in (int, float) or not abs(value) < 1e150:
        raise ConfigError(f"{name} must be a number, not {value!r}.")
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"{name} must be {limits}, not {value!r}.")


def torus(rows: int, columns: int) -> Data:
    """A grid that wraps around in both directions: its eigenvalues repeat up to eight times."""
    node = np.arange(rows * columns).reshape(rows, columns)
    right, down = np.roll(node, -1, axis=1), np.roll(node, -1, axis=0)
    ends = np.concatenate([right.ravel(), down.ravel()])
    return _undirected(np.tile(node.ravel(), 2), ends, node.size)


def random_geometric(num_nodes: int, degree: float = 8.0, *, seed: int = 0) -> Data:
    """Points in the unit square, joined when they are near; ``pos`` holds their places.

    Args:
        num_nodes: N.
        degree: average number of neighbours, away from the border; sets the radius.
        seed: of the points.
    """
    points = np.random.default_rng(seed).random((num_nodes, 2))
    radius = np.sqrt(degree / (np.pi * max(num_nodes, 1)))
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    data = _undirected(pairs[:, 0], pairs[:, 1], num_nodes)
    data.pos = torch.from_numpy(points)
    return data


def block_model(
    num_nodes: int,
    num_blocks: int = 5,
    degree: float = 10.0,
    homophily: float = 0.8,
    *,
    seed: int = 0,
) -> Data:
    """A stochastic block model with blocks of equal size; ``y`` holds the block of each node.

    Args:
        num_nodes: N.
        num_blocks: number of blocks.
        degree: average degree, up to the few pairs that are drawn twice.
        homophily: the share of edges that stay inside a block.
        seed: of the edges.
    """
    rng = np.random.default_rng(seed)
    block = np.arange(num_nodes) % num_blocks
    count = round(num_nodes * degree / 2)
    start = rng.integers(0, num_nodes, count)
    inside = rng.random(count) < homophily
    step = rng.integers(1, max(num_blocks, 2), count)
    target = np.where(inside, block[start], (block[start] + step) % num_blocks)
    # Node j * num_blocks + b is the j-th of block b; the last, short row wraps around.
    end = rng.integers(0, max(num_nodes // num_blocks, 1), count) * num_blocks + target
    data = _undirected(start, end % max(num_nodes, 1), num_nodes)
    data.y = torch.from_numpy(block)
    return data


def contextual_block_model(
    num_nodes: int,
    num_classes: int = 3,
    num_features: int = 16,
    degree: float = 10.0,
    homophily: float = 0.8,
    separation: float = 1.0,
    *,
    seed: int = 0,
    means_seed: int = 0,
) -> Data:
    """A block model whose nodes have features: separation * mean of the block + normal noise.

    Graphs of the same ``num_classes``, ``num_features`` and ``means_seed`` share their means, so
    that a filter trained on one can be applied to another, of any size.

    Args:
        num_nodes: N.
        num_classes: number of blocks C; ``y`` (N,) holds the block of each node.
        num_features: F; ``x`` is (N, F), float32.
        degree: average degree, see `block_model`.
        homophily: the share of edges that stay inside a block.
        separation: length of the means, which are orthogonal if C <= F, and else spread out; the
            noise has variance 1 in every channel.
        seed: of the edges and the noise.
        means_seed: of the directions of the means.
    """
    data = block_model(num_nodes, num_classes, degree, homophily, seed=seed)
    noise = np.random.default_rng([seed, 1]).standard_normal((num_nodes, num_features))
    means = _spread_directions(num_classes, num_features, means_seed)
    data.x = torch.from_numpy((separation * means[data.y.numpy()] + noise).astype(np.float32))
    return data


def preferential_attachment(num_nodes: int, edges_per_node: int = 3, *, seed: int = 0) -> Data:
    """A heavy-tailed graph: every node joins earlier ones in proportion to their degree.

    Each end of a new edge is copied from the end of a random earlier edge (which is what
    "in proportion to degree" means), following the copies back in vectorised rounds.
    """
    rng = np.random.default_rng(seed)
    m = edges_per_node
    start = np.repeat(np.arange(num_nodes), m)
    count = start.size
    # End i copies slot s < 2 i: an even slot is the start of edge s / 2, an odd one its end.
    slot = (rng.random(count) * 2 * np.maximum(start * m, 1)).astype(np.int64)
    slot[:m] = 0
    while (odd := slot % 2 == 1).any():
        slot[odd] = slot[slot[odd] // 2]
    return _undirected(start, start[slot // 2], num_nodes)


def _spread_directions(count: int, dim: int, seed: int) -> NDArray[np.float64]:
    """Unit vectors (count, dim): orthogonal where there is room, else pushed apart."""
    points = np.random.default_rng([seed, count, dim]).standard_normal((count, dim))
    if count <= dim:
        Q, R = np.linalg.qr(points.T)
        # A QR factorisation is unique only up to these signs.
        return np.ascontiguousarray((Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    for _ in range(100):
        between = points[:, None] - points[None, :]
        distance = np.linalg.norm(between, axis=2, keepdims=True)
        points += (between / np.maximum(distance, 1e-3) ** 3).sum(1) / count
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points


def _undirected(start: NDArray[np.int64], end: NDArray[np.int64], num_nodes: int) -> Data:
    return Data(edge_index=undirected(start, end, num_nodes), num_nodes=num_nodes)


def pixel_grid(rows: int, columns: int, noise: float = 0.0, noise_seed: int = 0) -> Data:
    """Each pixel joined to those left, right, above and below it; borders do not wrap around.

    Args:
        rows: of the image.
        columns: of the image.
        noise: sigma; an edge weighs max(0, 1 + sigma z) with z standard normal. Without noise the
            graph has no weights.
        noise_seed: of the noise.

    Returns:
        ``edge_index`` (2, E), both directions, and with noise ``edge_weight`` (E,), float64, the
        same in both.
    """
    check_number("noise", noise, 0.0)
    check_whole("noise_seed", noise_seed, 0)
    pixel = np.arange(rows * columns).reshape(rows, columns)
    start = np.concatenate([pixel[:, :-1].ravel(), pixel[:-1].ravel()])
    end = np.concatenate([pixel[:, 1:].ravel(), pixel[1:].ravel()])
    graph = Data(edge_index=undirected(start, end, pixel.size), num_nodes=pixel.size)
    if noise > 0:
        draws = np.random.default_rng(noise_seed).standard_normal(len(start))
        weight = np.maximum(0.0, 1 + noise * draws)
        # Both directions of an edge share the number of its lower and higher end.
        number, (low, high) = start * pixel.size + end, np.sort(graph.edge_index.numpy(), axis=0)
        order = np.argsort(number)
        place = np.searchsorted(number[order], low * pixel.size + high)
        graph.edge_weight = torch.from_numpy(weight[order][place])
    return graph


def digits(neighbors: int = 10) -> Data:
    """The nearest-neighbour graph of scikit-learn's 1,797 handwritten digits.

    Nodes are images of 8 x 8 pixels; two are joined when one is among the nearest neighbours of the
    other.

    Args:
        neighbors: how many neighbours each image looks for; of equally near ones the first.

    Returns:
        ``x`` (1797, 64), grey values in [0, 1], float32; ``y`` (1797,), the digit;
        ``edge_index``, both directions.
    """
    images, y = digit_images()
    x = images.flatten(1)
    near = _nearest((16 * x).to(torch.int64).numpy(), neighbors)
    start = np.repeat(np.arange(len(near)), neighbors)
    edge_index = undirected(start, near.ravel(), len(near))
    return Data(x=x, edge_index=edge_index, y=y)


def digit_images() -> tuple[Tensor, Tensor]:
    """scikit-learn's digits: grey values (1797, 8, 8) in [0, 1], float32, and digits (1797,)."""
    from sklearn.datasets import load_digits

    images = load_digits()
    grey = torch.from_numpy(images.images / 16.0).to(torch.float32)
    return grey, torch.from_numpy(images.target.astype(np.int64))


def _nearest(points: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """(n, count): the nearest other points; distances are exact, and so are ties."""
    square = (points**2).sum(1)
    distance = square[:, None] + square - 2 * points @ points.T
    np.fill_diagonal(distance, distance.max() + 1)
    return np.argsort(distance, axis=1, kind="stable")[:, :count]
