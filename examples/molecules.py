"""Molecules: a graph each, one label each. The set of your own, from PyTorch Geometric objects.

Made-up ones stand for yours: decalin (two rings of six that share a bond) or bicyclopentyl (two
rings of five with a bond between them), with side groups. Both have ten atoms of the same degrees,
so that features cannot tell them apart; bare, without side groups, message passing cannot either.
With files at hand, `train("MUTAG")` is all that it takes.
"""

import random

import torch
from torch_geometric.data import Data

from nlsf.data import from_pyg
from nlsf.train import train

ATOMS = "CNO"
RING = [(i, (i + 1) % 10) for i in range(10)]
DECALIN = [*RING, (0, 5)]
BICYCLOPENTYL = [bond for bond in RING if bond not in ((4, 5), (9, 0))] + [(0, 4), (5, 9), (0, 5)]


def molecule(decalin, rng):
    bonds = list(DECALIN if decalin else BICYCLOPENTYL)
    kinds = [0] * 10
    for _ in range(rng.randint(1, 4)):  # side groups: an atom joined to one that is there
        bonds.append((rng.randrange(len(kinds)), len(kinds)))
        kinds.append(rng.randrange(len(ATOMS)))
    start, end = torch.tensor(bonds).T
    return Data(
        x=torch.eye(len(ATOMS))[kinds],
        edge_index=torch.stack([torch.cat([start, end]), torch.cat([end, start])]),
        y=torch.tensor([int(decalin)]),
    )


rng = random.Random(0)
molecules = from_pyg([molecule(i % 2 == 0, rng) for i in range(200)], name="molecules")

# Degrees and a constant beside the kinds of atoms: they let a filter see the shape itself.
features = {"constant": True, "degree": "scaled"}
for model in ("graph", "mlp"):
    settings = {"model": {"name": model}, "features": features, "seeds": 3}
    result = train(molecules, {**settings, "training": {"epochs": 40}}, runs="runs")
    mean, half = result.summary()
    print(f"{model}: test accuracy {100 * mean:.1f} +- {100 * half:.1f} %")
