"""Graphs that fit on a napkin."""

import torch
from torch_geometric.data import Data


def graph(nodes, pairs, x=None):
    start = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    return Data(x=x, edge_index=torch.cat([start, start.flip(0)], dim=1), num_nodes=nodes)


PATH = graph(3, [(0, 1), (1, 2)])
TRIANGLE = graph(3, [(0, 1), (1, 2), (2, 0)])
STAR = graph(4, [(0, 1), (0, 2), (0, 3)])


def permuted(data, seed):
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    place = order.argsort()
    x = None if data.x is None else data.x[order]
    return Data(x=x, edge_index=place[data.edge_index], num_nodes=data.num_nodes)


def random_graph(nodes, seed, share=0.3):
    generator = torch.Generator().manual_seed(seed)
    upper = torch.rand(nodes, nodes, generator=generator).triu(1)
    pairs = ((upper > 0) & (upper < share)).nonzero().tolist()
    labels = torch.randint(3, (nodes,), generator=generator)
    return graph(nodes, pairs, torch.nn.functional.one_hot(labels, 3).float())
