"""Handwritten digits as a graph: real data that needs no download."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.edges import undirected


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
