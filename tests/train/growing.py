"""A process that grows and shrinks, and tells its peak each time."""

import json

import torch

from nlsf.train.run.training import peak_memory

BLOCK = 64 * 2**20


def growing():
    before = peak_memory()
    block = torch.ones(before + BLOCK, dtype=torch.uint8)  # more than was ever there
    after = peak_memory()
    del block
    print(json.dumps([before, after, peak_memory()]))
