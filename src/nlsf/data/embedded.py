"""Data sets that need no files: scikit-learn's digits in three forms, and generated graphs.

Each function is a reader of the catalogue: it gets its entry, no paths, and its options.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data import generators
from nlsf.data.dataset import Dataset
from nlsf.data.generators import check_number, check_whole, digit_images, pixel_grid
from nlsf.data.generators import digits as nearest_digits
from nlsf.errors import ConfigError

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

_DIGITS = tuple(str(digit) for digit in range(10))
# Parts of seeds, so that one seed gives unrelated points, functions and noise.
_FUNCTIONS, _NOISE, _WAVES = 11, 12, 13
# A graph of more numbers fits few machines; a slip of the hand asks for it more often.
_MAX_VALUES = 1e9


def digits(entry: Entry, paths: Sequence[Path], *, neighbors: int = 10) -> Dataset:
    """Node level: images joined to the ``neighbors`` images that look most alike."""
    check_whole("neighbors", neighbors, 1, 1796)
    data = nearest_digits(neighbors)
    graph = Data(x=data.x, edge_index=data.edge_index, num_nodes=data.num_nodes)
    return Dataset(entry.name, "node", (graph,), data.y, classes=_DIGITS, metric=entry.metric)


def digits_grid(
    entry: Entry, paths: Sequence[Path], *, noise: float = 0.0, noise_seed: int = 0
) -> Dataset:
    """Signal level: images as signals (1797, 64, 1) on the 8 x 8 grid, each pixel joined to 4.

    ``noise`` perturbs the grid's edges; see `nlsf.data.generators.pixel_grid`.
    """
    images, y = digit_images()
    graph = pixel_grid(8, 8, noise, noise_seed)
    return Dataset(
        entry.name,
        "signal",
        (graph,),
        y,
        classes=_DIGITS,
        signals=images.reshape(-1, 64, 1),
        metric=entry.metric,
    )


def digits_graphs(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Graph level: the pixels of an image brighter than 1/4, each joined to the 8 around it.

    Features (N, 3) of a pixel: grey value, row and column, all in [0, 1].
    """
    images, y = digit_images()
    bright = images > 0.25
    # Every graph has a node: the brightest pixel belongs to it, however dark it is.
    brightest = images.flatten(1).argmax(1)
    bright.view(-1, 64)[torch.arange(y.numel()), brightest] = True

    image, row, column = bright.nonzero().unbind(1)
    x = torch.stack([images[bright], row / 7, column / 7], dim=1)
    sizes = torch.bincount(image, minlength=y.numel())
    number = torch.full(images.shape, -1)
    number[bright] = torch.arange(image.numel()) - (sizes.cumsum(0) - sizes)[image]

    starts, ends, owners = [], [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        first = number[:, : 8 - down, max(-right, 0) : 8 - max(right, 0)]
        second = number[:, down:, max(right, 0) : 8 + min(right, 0)]
        joined = (first >= 0) & (second >= 0)
        starts.append(first[joined])
        ends.append(second[joined])
        owners.append(joined.nonzero()[:, 0])
    owner, order = torch.cat(owners).sort(stable=True)
    edges = torch.stack([torch.cat(starts), torch.cat(ends)])[:, order]
    counts = torch.bincount(owner, minlength=y.numel())
    graphs = tuple(
        Data(x=own, edge_index=_both_directions(pairs), num_nodes=own.shape[0])
        for own, pairs in zip(
            x.split(sizes.tolist()), edges.split(counts.tolist(), dim=1), strict=True
        )
    )
    return Dataset(entry.name, "graph", graphs, y, classes=_DIGITS, metric=entry.metric)


def csbm(
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
    data = generators.contextual_block_model(
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


def geometric(
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
    data = generators.random_geometric(num_nodes, degree, seed=seed)
    values = _smooth_functions(data.pos.numpy(), 9)
    values = values + noise * np.random.default_rng([seed, _NOISE]).standard_normal(values.shape)
    measured = torch.from_numpy(values.astype(np.float32))
    graph = Data(x=measured[:, :8].contiguous(), edge_index=data.edge_index, num_nodes=num_nodes)
    return Dataset(entry.name, "node", (graph,), measured[:, 8:].contiguous(), metric=entry.metric)


def torus(
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
    data = generators.torus(rows, columns)
    graph = Data(x=x, edge_index=data.edge_index, num_nodes=rows * columns)
    return Dataset(entry.name, "node", (graph,), y, metric=entry.metric)


def _both_directions(pairs: Tensor) -> Tensor:
    return torch.cat([pairs, pairs.flip(0)], dim=1)


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
