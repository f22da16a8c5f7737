"""Bands where you know that the signal is: slow waves on a torus, under fast ones and noise.

The same layer three times, with other bands. Those that separate the slow waves from all else
leave the least error; the noise inside of their bands is what no filter of this kind removes.
"""

import torch

from nlsf.data import load
from nlsf.nn import NodeNLSF
from nlsf.spectral import DyadicBands, IntervalBands, UniformBands

dataset = load("torus", noise=1.0)  # x: slow + fast + noise, y: slow
graph, slow = dataset.graphs[0], dataset.y

# One or two periods in each direction of 32 nodes: the frequencies of N, by the formula of a torus.
turns = torch.tensor([1.0, 2.0])
one_way = 0.5 * (1 - torch.cos(2 * torch.pi * turns / 32))
lowest, highest = float(2 * one_way[0]), float(2 * one_way[1])
BANDS = {
    "two uniform bands": UniformBands(S=2),
    "six dyadic bands": DyadicBands(r=0.5, S=6),
    "bands of my own": IntervalBands([(0, 0.9 * lowest), (0.9 * lowest, 1.1 * highest)]),
}

print(f"as measured: error {(graph.x - slow).square().mean().sqrt():.3f}")
for name, bands in BANDS.items():
    torch.manual_seed(0)
    layer = NodeNLSF(1, 1, bands, a=0.0)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        error = (layer(graph.x, graph.edge_index) - slow).square().mean()
        error.backward()
        optimizer.step()
    print(f"{name}: error {error.sqrt():.3f}")
