"""The grid of an image's pixels, clean or with noisy edges: `pixel_grid`."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from nlsf.data.edges import undirected
from nlsf.data.options import check_number, check_whole


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
