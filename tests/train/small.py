"""Data sets so small that training on them takes a moment."""

import warnings

import torch
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Split
from nlsf.data.generators import contextual_block_model, torus
from nlsf.spectral import DyadicBands, IndexBands

BANDS = {"index_bands": IndexBands(4), "value_bands": DyadicBands(0.5, 4, 3)}
NODE_MODEL = {
    "hidden_channels": 8,
    "index_bands": {"kind": "index", "J": 4},
    "value_bands": {"kind": "dyadic", "r": 0.5, "S": 4, "K": 3},
}
"""A [model] table: few bands, and so a small eigenproblem."""


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def node_data(num_nodes=60, *, sparse=False, **fields):
    """Three blocks, named a, b and c; ``sparse``: words instead of coordinates."""
    data = contextual_block_model(num_nodes, 3, 8, 6.0, 0.8, 0.7, seed=0)
    x = data.x
    if sparse:
        word = data.y * 4 + torch.arange(num_nodes) % 5
        own = torch.nn.functional.one_hot(word, 40)
        with warnings.catch_warnings():  # PyTorch calls its sparse matrices unfinished
            warnings.simplefilter("ignore", UserWarning)
            x = own.to(torch.float32).to_sparse_csr()
    graph = Data(x=x, edge_index=data.edge_index, num_nodes=num_nodes)
    fields = {"classes": ("a", "b", "c"), **fields}
    return Dataset("small", "node", (graph,), data.y, **fields)


def regression_data(num_nodes=60, **fields):
    """Two targets, smooth on the graph."""
    data = node_data(num_nodes).graphs[0]
    y = torch.stack([data.x[:, 0] + data.x[:, 1], data.x[:, 2]], dim=1)
    return Dataset("numbers", "node", (data,), y, metric="rmse", **fields)


def graph_data(count=30):
    """Rings and paths of 4 to 8 nodes that know their degree, with noise: which is which?"""
    graphs = []
    for i in range(count):
        nodes = 4 + i % 5
        start = torch.arange(nodes if i % 2 else nodes - 1)
        pairs = torch.stack([start, (start + 1) % nodes])
        edges = torch.cat([pairs, pairs.flip(0)], dim=1)
        x = random(nodes, 3, seed=i)
        x[:, 0] += torch.bincount(edges[0])
        graphs.append(Data(x=x, edge_index=edges, num_nodes=nodes))
    y = torch.arange(count) % 2
    return Dataset("shapes", "graph", tuple(graphs), y, classes=("path", "ring"))


def signal_data(count=30):
    """Noise on a torus, smoothed in every second signal."""
    data = torus(4, 5)
    graph = Data(edge_index=data.edge_index, num_nodes=20)
    signals = random(count, 20, 2)
    y = torch.arange(count) % 2
    start, end = data.edge_index
    smooth = torch.zeros_like(signals).index_add(1, start, signals[:, end]) / 4
    signals = torch.where(y[:, None, None] == 0, signals, smooth)
    return Dataset("waves", "signal", (graph,), y, classes=("rough", "smooth"), signals=signals)


def given(count, *sizes, seed=0):
    """Splits with these numbers of training and validation examples; the others are for test."""
    splits = []
    for i, (train, val) in enumerate(sizes):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(100 * seed + i))
        splits.append(Split(order[:train], order[train : train + val], order[train + val :]))
    return {"given": tuple(splits)}
