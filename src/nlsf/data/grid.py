"""The grid of an image's pixels, clean or with noisy edges: `pixel_grid`."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch_geometric.data import Data

from nlsf.data.edges import undirected
from nlsf.errors import ConfigError


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
    if not (isinstance(noise, int | float) and math.isfinite(noise) and noise >= 0):
        raise ConfigError(f"'noise' is {noise!r}; it must be a number from 0 on.")
    pixel = np.arange(rows * columns).reshape(rows, columns)
    start = np.concatenate([pixel[:, :-1].ravel(), pixel[:-1].ravel()])
    end = np.concatenate([pixel[:, 1:].ravel(), pixel[1:].ravel()])
    graph = Data(edge_index=undirected(start, end, pixel.size), num_nodes=pixel.size)
    if noise > 0:
        draws = np.random.default_rng(noise_seed).standard_normal(len(start))
        weight = np.zeros((pixel.size, pixel.size))
        weight[start, end] = weight[end, start] = np.maximum(0.0, 1 + noise * draws)
        row, column = graph.edge_index.numpy()
        graph.edge_weight = torch.from_numpy(weight[row, column])
    return graph
