"""The lists that the laws are parametrised over."""

import functools

import torch

from nlsf.spectral import (
    AffineGeometricBands,
    AtomBands,
    DyadicBands,
    IndexBands,
    IntervalBands,
    Lens,
    QuantileBands,
    UniformBands,
    adjacency,
    laplacian,
    magnetic_laplacian,
    partial_eigh,
)
from nlsf.testing import TinyGraph, hostile_graphs, tiny_graphs


def magnetic(graph, normalization=None):
    """The magnetic Laplacian of the graph with every edge kept in one direction only."""
    forward = graph.edge_index[0] < graph.edge_index[1]
    weight = None if graph.edge_weight is None else graph.edge_weight[forward]
    one_way = graph.edge_index[:, forward]
    return magnetic_laplacian(one_way, weight, graph.num_nodes, normalization, q=0.2)


OPERATORS = {
    "L": laplacian,
    "N": lambda g: laplacian(g, normalization="sym"),
    "N+loops": lambda g: laplacian(g, normalization="sym", self_loops=True),
    "A": adjacency,
    "magnetic L": magnetic,
    "magnetic N": lambda g: magnetic(g, "sym"),
}

BANDS = {
    "index": IndexBands(J=4),
    "index, J > N": IndexBands(J=30),
    "dyadic": DyadicBands(r=0.5, S=6, K=6),
    "dyadic, K < S": DyadicBands(r=0.6, S=6, K=3),
    "uniform": UniformBands(S=8, K=8),
    "uniform, K < S": UniformBands(S=8, K=5),
    "affine-geometric": AffineGeometricBands(r=1.5, S=6, K=6),
    "affine-geometric, a and b": AffineGeometricBands(r=1.4, S=3, a=0.5, b=0.4),
    "intervals": IntervalBands([(0.0, 0.3), (0.9, 1.1), (2.0, 3.5)]),
    "quantiles": QuantileBands(S=4),
    "atoms": AtomBands(UniformBands(S=4), atoms=2, share=0.1),
}

DTYPES = {"float32": torch.float32, "float64": torch.float64}

GRAPHS: dict[str, TinyGraph] = {**tiny_graphs(), **hostile_graphs()}


@functools.cache
def lens(operator, bands, dtype, graph, *, complete=False, complement=True):
    """The lens of a case; from a complete spectrum, or from just what the bands need."""
    found = spectrum(operator, graph, None if complete else bands)
    return Lens.of(found.to(DTYPES[dtype]), BANDS[bands], complement=complement)


@functools.cache
def spectrum(operator, graph, bands=None):
    """The spectrum of a case: complete, or what the bands of this name need."""
    shift = OPERATORS[operator](GRAPHS[graph])
    return partial_eigh(shift) if bands is None else partial_eigh(shift, bands=BANDS[bands])


def signal(lens, channels=3, leading=(), seed=0):
    """A random signal in the lens's dtype."""
    generator = torch.Generator().manual_seed(seed)
    shape = (*leading, lens.num_nodes, channels)
    return torch.randn(shape, dtype=lens.dtype, generator=generator)
