"""Graphs made on this machine, random and regular ones, and the data sets on them.

All are built without a Python loop over edges. A function ``read_NAME`` is a reader of the
catalogue: it gets its entry, no paths, and its options, which `check_whole` and `check_number`
check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, undirected
from nlsf.errors import ConfigError

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

# Parts of seeds, so that one seed gives unrelated points, functions and noise.
_FUNCTIONS, _NOISE, _WAVES = 11, 12, 13
# A graph of more numbers fits few machines; a slip of the hand asks for it more often.
_MAX_VALUES = 1e9


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

    Each end of a new edge is copied from the end of a random earlier edge, which makes it likely in
    proportion to the degree. The copies are followed back in vectorised rounds.
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


def read_csbm(
    entry: Entry,
    paths: Sequence[Path],
    *,
    num_nodes: int = 1000,
    num_classes: int = 3,
    num_features: int = 16,
    degree: float = 10.0,
    homophily: float = 0.8,
    separation: float = 1.0,
    seed: int = 0,
    means_seed: int = 0,
) -> Dataset:
    """Node level: a `contextual_block_model`, whose options these are."""
    check_whole("num_nodes", num_nodes, 1)
    check_whole("num_classes", num_classes, 1, min(num_nodes, 1000))
    check_whole("num_features", num_features, 1)
    check_number("degree", degree, 0.0)
    check_number("homophily", homophily, 0.0, 1.0)
    check_number("separation", separation, 0.0)
    check_whole("seed", seed, 0)
    check_whole("means_seed", means_seed, 0)
    _fits(num_nodes * (num_features + degree))
    data = contextual_block_model(
        num_nodes,
        num_classes,
        num_features,
        degree,
        homophily,
        separation,
        seed=seed,
        means_seed=means_seed,
    )
    graph = Data(x=data.x, edge_index=data.edge_index, num_nodes=num_nodes)
    classes = tuple(str(c) for c in range(num_classes))
    return Dataset(entry.name, "node", (graph,), data.y, classes=classes, metric=entry.metric)


def read_geometric(
    entry: Entry,
    paths: Sequence[Path],
    *,
    num_nodes: int = 1000,
    degree: float = 8.0,
    noise: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Node level, a regression: sensors in the unit square that do not know where they are.

    Each node measures 8 smooth functions of its place, with noise; the target is a ninth, with
    noise. The functions are the same for every seed and size.
    """
    check_whole("num_nodes", num_nodes, 1)
    check_number("degree", degree, 0.0)
    check_number("noise", noise, 0.0)
    check_whole("seed", seed, 0)
    _fits(num_nodes * (9 + degree))
    data = random_geometric(num_nodes, degree, seed=seed)
    values = _smooth_functions(data.pos.numpy(), 9)
    values = values + noise * np.random.default_rng([seed, _NOISE]).standard_normal(values.shape)
    measured = torch.from_numpy(values.astype(np.float32))
    graph = Data(x=measured[:, :8].contiguous(), edge_index=data.edge_index, num_nodes=num_nodes)
    return Dataset(entry.name, "node", (graph,), measured[:, 8:].contiguous(), metric=entry.metric)


def read_torus(
    entry: Entry,
    paths: Sequence[Path],
    *,
    rows: int = 32,
    columns: int = 32,
    noise: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Node level, a regression: find the slow waves on a torus under fast ones and noise.

    ``x`` (N, 1) is slow + fast + noise and the target is slow. Slow waves have 1 or 2 periods in
    each direction, fast ones have periods of 2 to 3 nodes; both sums have variance 1.
    """
    check_whole("rows", rows, 8)
    check_whole("columns", columns, 8)
    check_number("noise", noise, 0.0)
    check_whole("seed", seed, 0)
    _fits(rows * columns)
    slow_range = [(1, 2), (1, 2)]
    fast_range = [(math.ceil(n / 3), n // 2) for n in (rows, columns)]
    slow = _waves(rows, columns, slow_range, np.random.default_rng([seed, _WAVES, 0]))
    fast = _waves(rows, columns, fast_range, np.random.default_rng([seed, _WAVES, 1]))
    hiss = noise * np.random.default_rng([seed, _NOISE]).standard_normal(slow.shape)
    x, y = (torch.from_numpy(v.astype(np.float32)).unsqueeze(1) for v in (slow + fast + hiss, slow))
    data = torus(rows, columns)
    graph = Data(x=x, edge_index=data.edge_index, num_nodes=rows * columns)
    return Dataset(entry.name, "node", (graph,), y, metric=entry.metric)


def _smooth_functions(points: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(N, count): sums of 8 cosines of about one period over the unit square."""
    rng = np.random.default_rng(_FUNCTIONS)
    frequency = rng.standard_normal((2, count, 8))
    phase = rng.uniform(0, 2 * np.pi, (count, 8))
    angle = 2 * np.pi * np.einsum("nd,dck->nck", points, frequency) + phase
    total: NDArray[np.float64] = np.cos(angle).sum(2) / 2
    return total


def _waves(
    rows: int, columns: int, periods: list[tuple[int, int]], rng: np.random.Generator
) -> NDArray[np.float64]:
    """(rows * columns,): four plane waves with these numbers of periods, variance 1 together."""
    place = np.stack(np.divmod(np.arange(rows * columns), columns))
    total = np.zeros(rows * columns)
    for _ in range(4):
        low, high = np.array(periods).T
        turns = rng.integers(low, high + 1) * rng.choice([-1, 1], 2)
        angle = 2 * np.pi * (turns / [rows, columns]) @ place + rng.uniform(0, 2 * np.pi)
        total += rng.uniform(0.5, 1.0) * np.cos(angle)
    scaled: NDArray[np.float64] = total / total.std()
    return scaled


def _fits(values: float) -> None:
    if values > _MAX_VALUES:
        raise ConfigError(
            f"These options ask for a graph of about {values:.2g} numbers; at most "
            f"{_MAX_VALUES:.2g} are generated: take fewer nodes, features or neighbours."
        )
