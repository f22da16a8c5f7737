"""How far polynomial bands are from exact ones: leakage, and error on white noise, by order.

    NLSF_DATA=... python benchmarks/polynomial_bands.py [DATA ...] [--orders 8,16,...]

Operator N with self loops, dyadic bands r = 0.5, S = 6. The exact projections need all eigenvectors
of half the spectrum: minutes for Pubmed's 19,717 nodes.
"""

import argparse

import torch

from nlsf.data import load
from nlsf.spectral import (
    DyadicBands,
    PolynomialBands,
    PolynomialProjector,
    Projector,
    laplacian,
    partial_eigh,
)

BANDS = DyadicBands(r=0.5, S=6)


def rows(name, orders):
    """Order, leakage (sum over bands) and relative error of all projections of white noise."""
    graph = load(name).graphs[0]
    shift = laplacian(graph.edge_index, normalization="sym", self_loops=True)
    exact = Projector(partial_eigh(shift, bands=BANDS), BANDS)
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(exact.num_nodes, 8, dtype=exact.dtype, generator=noise)
    wanted = torch.stack(list(exact.projections(x)))
    for order in orders:
        soft = PolynomialProjector(shift, PolynomialBands(BANDS, order=order))
        error = (torch.stack(list(soft.projections(x))) - wanted).norm() / x.norm()
        yield order, float(soft.leakage.sum()), float(error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=["Cora"])
    parser.add_argument("--orders", default="8,10,16,32,64,128,200,256")
    options = parser.parse_args()
    orders = [int(order) for order in options.orders.split(",")]
    print("| data | order | leakage | error |")
    print("|---|---|---|---|")
    for name in options.data:
        for order, leakage, error in rows(name, orders):
            print(f"| {name} | {order} | {leakage:.3f} | {error:.2f} |", flush=True)


if __name__ == "__main__":
    main()
