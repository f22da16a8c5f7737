"""Readings of sensors over time: many signals on one graph.

200 sensors measure a smooth field 300 times, with noise, and in each reading a tenth of them says
nothing (0). A filter learns from half of the readings to recover the field, and is tried on the
others. Time is a leading dimension: the spectrum of the network is computed once.
"""

import torch

from nlsf.data import random_geometric
from nlsf.nn import NodeNLSF
from nlsf.spectral import DyadicBands

generator = torch.Generator().manual_seed(0)
network = random_geometric(200, degree=8.0, seed=0)
places = network.pos.float()

waves = 2 * torch.pi * torch.randn(2, 12, generator=generator) * 0.6
phases = 2 * torch.pi * torch.rand(300, 1, 12, generator=generator)
field = torch.cos(places @ waves + phases).sum(-1, keepdim=True) / 3  # (time, sensors, 1)
noise = 0.7 * torch.randn(field.shape, generator=generator)
silent = torch.rand(field.shape, generator=generator) < 0.1
readings = (field + noise).masked_fill(silent, 0.0)


def error(estimate, truth):
    return (estimate - truth).square().mean().sqrt().item()


past, future = slice(0, 150), slice(150, 300)
torch.manual_seed(0)
layer = NodeNLSF(1, 1, DyadicBands(r=0.5, S=6), a=0.0, start="ppr", relative=False)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    loss = (layer(readings[past], network.edge_index) - field[past]).square().mean()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    recovered = layer(readings[future], network.edge_index)
print(f"as read: error {error(readings[future], field[future]):.3f}")
print(f"recovered: error {error(recovered, field[future]):.3f}")
