"""Molecules: a graph each, one label each. The set of your own, from PyTorch Geometric objects.

Made-up ones stand for yours: rings of six atoms, or chains of as many, with side groups; the class
is whether there is a ring. With files at hand, `train("MUTAG")` is all that it takes.
"""

import random

import torch
from torch_geometric.data import Data

from nlsf.data import from_pyg
from nlsf.train import train

ATOMS = "CNO"


def molecule(ring, rng):
    bonds = [(i, i + 1) for i in range(5)] + ([(5, 0)] if ring else [])
    kinds = [0] * 6
    for _ in range(rng.randint(3, 8)):  # side groups: an atom joined to one that is there
        bonds.append((rng.randrange(len(kinds)), len(kinds)))
        kinds.append(rng.randrange(len(ATOMS)))
    start, end = torch.tensor(bonds).T
    return Data(
        x=torch.eye(len(ATOMS))[kinds],
        edge_index=torch.stack([torch.cat([start, end]), torch.cat([end, start])]),
        y=torch.tensor([int(ring)]),
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
