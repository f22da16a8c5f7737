"""Handwritten digits as a graph: real data that needs no download."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data


def digits(neighbors: int = 10) -> Data:
    """The nearest-neighbour graph of scikit-learn's 1,797 handwritten digits.

    Nodes are images of 8 x 8 pixels; two are joined when one is among the nearest neighbours of the
    other.

    Args:
        neighbors: how many neighbours each image looks for.

    Returns:
        ``x`` (1797, 64), grey values in [0, 1], float32; ``y`` (1797,), the digit;
        ``edge_index``, both directions.
    """
    from sklearn.neighbors import kneighbors_graph

    images, y = digit_images()
    x = images.flatten(1)
    # In float64: distances of grey values are exact there, so that ties do not depend on rounding.
    near = kneighbors_graph(x.to(torch.float64).numpy(), neighbors, mode="connectivity")
    edges = near.maximum(near.T).tocoo()
    edge_index = torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64))
    return Data(x=x, edge_index=edge_index, y=y)


def digit_images() -> tuple[Tensor, Tensor]:
    """scikit-learn's digits: grey values (1797, 8, 8) in [0, 1], float32, and digits (1797,)."""
    from sklearn.datasets import load_digits

    images = load_digits()
    grey = torch.from_numpy(images.images / 16.0).to(torch.float32)
    return grey, torch.from_numpy(images.target.astype(np.int64))
