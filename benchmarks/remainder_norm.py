"""Accuracy of the complement's norm: from the remainder, by Pythagoras, and as `analyze` chooses.

    python benchmarks/remainder_norm.py

Signals on the digits graph with a known share of their norm outside of 64 eigenspaces of N.
"""

import torch

from nlsf.data import digits
from nlsf.spectral import IndexBands, Lens, laplacian, partial_eigh


def signal(lens, share):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(lens.num_nodes, 8, dtype=torch.float64, generator=generator)
    low = x - lens(x).part(lens.rest)
    rest = x - low
    return low / low.norm(dim=0) + share * rest / rest.norm(dim=0)


def main():
    bands = IndexBands(64)
    exact = Lens.of(partial_eigh(laplacian(digits(), normalization="sym"), bands=bands), bands)
    print("| share of the norm | dtype | from the remainder | by Pythagoras | analyze |")
    print("|---|---|---|---|---|")
    for dtype in (torch.float64, torch.float32):
        lens = exact.to(dtype)
        for share in (1e-1, 1e-2, 1e-4, 1e-6):
            x = signal(exact, share).to(dtype)
            inside = (lens.vectors.mT @ x).square().sum(0)
            inferred = (x.square().sum(0) - inside).clamp(min=0).sqrt()
            computed = lens(x).part(lens.rest).norm(dim=0)
            chosen = lens(x).norms()[-1]
            norms = (computed, inferred, chosen)
            errors = [((n - share).abs().max() / share).item() for n in norms]
            name = str(dtype).removeprefix("torch.")
            print(f"| {share:.0e} | {name} | " + " | ".join(f"{e:.1e}" for e in errors) + " |")


if __name__ == "__main__":
    main()
