import pytest
import torch

from nlsf.errors import BandError
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    Lens,
    PolynomialBands,
    UniformBands,
    laplacian,
    sharp_bands,
)
from nlsf.testing.graphs import hostile_graphs, ring, tiny_graphs, torus

GRAPHS = {**tiny_graphs(), **hostile_graphs()}


def shift_of(graph, normalization="sym"):
    return laplacian(graph.edge_index, graph.edge_weight, graph.num_nodes, normalization)


@pytest.mark.parametrize("normalization", ["sym", None])
@pytest.mark.parametrize("name", ["path", "ring", "weighted", "tree", "two equal components"])
def test_leakage_is_what_the_bands_share(name, normalization):
    shift = shift_of(GRAPHS[name], normalization)
    for base in (DyadicBands(r=0.5, S=3), UniformBands(S=4)):
        lens = Lens.of(shift, PolynomialBands(base, order=7))
        every = torch.stack(list(lens(torch.eye(shift.num_nodes).double()).parts()))
        rest = torch.eye(shift.num_nodes) - every
        shared = (every @ rest).diagonal(dim1=-2, dim2=-1).sum(-1) / shift.num_nodes
        torch.testing.assert_close(lens.leakage, shared)


@pytest.mark.parametrize("leakage", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("base", [DyadicBands(r=0.5, S=4), UniformBands(S=3)])
def test_the_order_is_the_lowest_that_is_enough(base, leakage):
    shift = shift_of(torus(9, 11))
    found = sharp_bands(shift, base, leakage)
    assert found.base == base

    def total(order):
        return float(Lens.of(shift, PolynomialBands(base, order)).leakage.sum())

    assert total(found.order) <= leakage
    assert found.order == 1 or total(found.order - 1) > leakage


@pytest.mark.parametrize("name", hostile_graphs())
def test_hostile_graphs(name):
    shift = shift_of(GRAPHS[name])
    found = sharp_bands(shift, UniformBands(S=3), 0.3)
    assert 1 <= found.order <= 256


def test_what_cannot_be_had_is_refused():
    shift = shift_of(ring(60))
    with pytest.raises(BandError, match=r"Order 8 has a leakage of .*a higher order"):
        sharp_bands(shift, UniformBands(S=20), 0.001, highest=8)
    star = shift_of(GRAPHS["star"])  # all but two eigenvalues of N are 1, in the middle
    with pytest.raises(BandError, match="no edge on a frequency that many"):
        sharp_bands(star, UniformBands(S=2), 0.3)
    with pytest.raises(BandError, match="must be positive"):
        sharp_bands(shift, UniformBands(S=2), 0.0)
    with pytest.raises(BandError, match="fixed edges"):
        sharp_bands(shift, IndexBands(3), 0.1)
