"""Handwritten digits as a graph: real data that needs no download."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
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
    images = load_digits()
    x = images.data / 16.0
    near = kneighbors_graph(x, neighbors, mode="connectivity")
    edges = near.maximum(near.T).tocoo()
    return Data(
        x=torch.from_numpy(x).to(torch.float32),
        edge_index=torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64)),
        y=torch.from_numpy(images.target.astype(np.int64)),
    )
