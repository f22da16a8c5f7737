"""Images: MNIST, scikit-learn's digits in three forms, and the grid of their pixels."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Split, undirected
from nlsf.data.generators import check_number, check_whole
from nlsf.data.readers.raw_files import ending, published

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

DIGITS = tuple(str(digit) for digit in range(10))
"""The names of the classes."""


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


def read_digits(entry: Entry, paths: Sequence[Path], *, neighbors: int = 10) -> Dataset:
    """Node level: images joined to the ``neighbors`` images that look most alike."""
    check_whole("neighbors", neighbors, 1, 1796)
    data = digits(neighbors)
    graph = Data(x=data.x, edge_index=data.edge_index, num_nodes=data.num_nodes)
    return Dataset(entry.name, "node", (graph,), data.y, classes=DIGITS, metric=entry.metric)


def read_digits_grid(
    entry: Entry, paths: Sequence[Path], *, noise: float = 0.0, noise_seed: int = 0
) -> Dataset:
    """Signal level: images as signals (1797, 64, 1) on the 8 x 8 grid, each pixel joined to 4.

    ``noise`` perturbs the grid's edges; see `pixel_grid`.
    """
    images, y = digit_images()
    graph = pixel_grid(8, 8, noise, noise_seed)
    return Dataset(
        entry.name,
        "signal",
        (graph,),
        y,
        classes=DIGITS,
        signals=images.reshape(-1, 64, 1),
        metric=entry.metric,
    )


def read_digits_graphs(entry: Entry, paths: Sequence[Path]) -> Dataset:
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
        Data(x=own, edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), num_nodes=own.shape[0])
        for own, pairs in zip(
            x.split(sizes.tolist()), edges.split(counts.tolist(), dim=1), strict=True
        )
    )
    return Dataset(entry.name, "graph", graphs, y, classes=DIGITS, metric=entry.metric)


def read_mnist(
    entry: Entry,
    paths: Sequence[Path],
    *,
    subset: int | None = None,
    noise: float = 0.0,
    noise_seed: int = 0,
) -> Dataset:
    """Grey values in [0, 1] of n images, (n, 784, 1), on the 28 x 28 grid.

    The examples are the training images, then the test images. The split ``"public"`` tests on the
    latter and validates on the last sixth of the training images (10,000 of 60,000).

    Args:
        entry: names the data set, and knows the checksums of its files.
        paths: the four ``*-ubyte.gz`` files, in any order.
        subset: take the first so many training images and a sixth as many test images.
        noise: of the grid's edges; see `pixel_grid`.
        noise_seed: of that noise.

    Raises:
        FormatError: a file is not the published one.
    """
    train, train_y = _images(entry, paths, "train")
    test, test_y = _images(entry, paths, "t10k")
    if subset is not None:
        check_whole("subset", subset, len(DIGITS), len(train))
        train, train_y = train[:subset], train_y[:subset]
        test, test_y = test[: subset // 6], test_y[: subset // 6]
    rows, columns = train.shape[1:]
    images = np.concatenate([train, test]).reshape(-1, rows * columns, 1)
    number = torch.arange(len(images))
    last = len(train) - len(train) // 6
    split = Split(number[:last], number[last : len(train)], number[len(train) :], "public")
    graph = pixel_grid(rows, columns, noise, noise_seed)
    return Dataset(
        name=entry.name,
        level="signal",
        graphs=(graph,),
        y=torch.from_numpy(np.concatenate([train_y, test_y]).astype(np.int64)),
        classes=DIGITS,
        signals=torch.from_numpy(images.astype(np.float32) / np.float32(255)),
        metric=entry.metric,
        given={"public": (split,)},
    )


def _images(
    entry: Entry, paths: Sequence[Path], part: str
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The images (n, rows, columns) of a part, and their labels (n,)."""
    images = _idx(entry, ending(paths, f"{part}-images-idx3-ubyte.gz"), 3)
    return images, _idx(entry, ending(paths, f"{part}-labels-idx1-ubyte.gz"), 1)


def _idx(entry: Entry, path: Path, ndim: int) -> NDArray[np.uint8]:
    """The bytes of an idx file: 4 that say so, then ndim sizes of 32 bits, then the values."""
    content = gzip.decompress(published(entry, path))
    shape = np.frombuffer(content, dtype=">u4", count=ndim, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * ndim).reshape(shape)
