"""Rows of a fixed sparse signal: what they give is what the plain decomposition gives."""

import pytest
import torch

from nlsf.errors import SignalError
from nlsf.nn import NodeNLSF
from nlsf.spectral import DyadicBands, IndexBands, Lens, UniformBands, laplacian
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.testing.graphs import disjoint, hostile_graphs, path, tiny_graphs, torus
from pairs import every_pair

F64 = torch.float64
GRAPHS = {**tiny_graphs(), **hostile_graphs(), "many components": disjoint(path(3), 7)}
BANDS = [IndexBands(3), DyadicBands(S=4), UniformBands(S=5)]


def words(nodes, channels=9, share=0.1):
    generator = torch.Generator().manual_seed(nodes)
    x = torch.rand(nodes, channels, generator=generator, dtype=F64)
    return torch.where(x < share, x, 0.0)


def prepared(graph, bands, x, rows):
    lens = Lens.of(laplacian(graph, normalization="sym"), bands, dtype=F64)
    return lens, lens.fix_rows(x, rows, sparse=SparseSignal.of(x))


@every_pair(graph=GRAPHS, bands=BANDS, width=[2, 9, 11])
def test_a_filter_and_a_map_are_those_of_all_nodes(graph, bands, width):
    x, rows = words(graph.num_nodes), torch.arange(graph.num_nodes)[::2]
    lens, some = prepared(graph, bands, x, rows)
    parts = some.map()
    assert parts._repeats == (lens.rest is not None)
    torch.testing.assert_close(parts.norms(), lens(x).norms())
    gain = torch.randn(lens.n_bands, 9, dtype=F64, requires_grad=True)
    weight = torch.randn(9, width, dtype=F64, requires_grad=True)
    whole = lens(x).weighted(gain)[rows] @ weight
    found = parts.mapped(gain, weight)
    torch.testing.assert_close(found, whole)
    back = torch.randn_like(whole)
    for a, b in zip(
        torch.autograd.grad(found, (gain, weight), back),
        torch.autograd.grad(whole, (gain, weight), back),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_gradients(share):
    """Of signals without entries, with few, and with all of them."""
    graph = disjoint(path(3), 4)
    _, some = prepared(graph, IndexBands(3), words(12, share=share), torch.tensor([5, 1, 1]))
    gain = torch.randn(4, 9, dtype=F64, requires_grad=True)
    weight = torch.randn(9, 2, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(some.map().mapped, (gain, weight))


def test_null_vectors_are_sparse():
    graph = disjoint(path(3), 7)
    _, some = prepared(graph, UniformBands(S=5), words(21, share=0.05), torch.arange(4))
    factors = some.map()._factors
    assert factors.sparse_vectors.shape[1] >= 6
    assert factors.sparse_vectors.shape[1] + len(factors.dense) == len(some.coefficients)


def test_it_is_computed_once_for_rows_that_come_again():
    _, some = prepared(path(12), IndexBands(3), words(12), torch.arange(6))
    assert some.map() is some.map()
    assert some.map().norms() is some.map().norms()
    assert not some[torch.tensor([2, 0])].map()._repeats


def test_many_maps_at_once_are_each_of_them_alone():
    _, some = prepared(path(12), IndexBands(3), words(12), torch.arange(6))
    gains, weights = torch.randn(5, 4, 9, dtype=F64), torch.randn(5, 9, 2, dtype=F64)
    together = torch.func.vmap(some.map().mapped)(gains, weights)
    alone = torch.stack([some.map().mapped(*one) for one in zip(gains, weights, strict=True)])
    torch.testing.assert_close(together, alone)


def test_a_second_derivative_is_refused_and_not_wrong():
    _, some = prepared(path(12), IndexBands(3), words(12), torch.arange(6))
    weight = torch.randn(9, 2, dtype=F64, requires_grad=True)
    found = some.map().mapped(torch.ones(4, 9, dtype=F64), weight).square().sum()
    (slope,) = torch.autograd.grad(found, weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize("bands", BANDS, ids=str)
@pytest.mark.parametrize("width", [2, 9])
def test_a_map_inside_of_the_synthesis_is_one_after_it(bands, width):
    x, r = words(12), torch.randn(bands.n_bands + 1, 9, dtype=F64)
    lens = Lens.of(laplacian(path(12)), bands, dtype=F64)
    weight = torch.randn(9, width, dtype=F64)
    for signal in (x, torch.stack([x, 2 * x])):
        inside = lens(signal).synthesize(r, weight=weight)
        torch.testing.assert_close(inside, lens(signal).synthesize(r) @ weight)
    with pytest.raises(SignalError, match="for the diagonal form"):
        lens(x).synthesize(r.diag_embed(), form="matrices", weight=weight)


def test_a_layer_with_a_narrow_map_is_the_filter_and_the_map():
    graph, x = torus(4, 5), torch.randn(20, 9, dtype=F64)
    layer = NodeNLSF(9, 2, IndexBands(3), start="random").double()
    parts = layer.view(x, graph.edge_index)
    torch.testing.assert_close(layer(x, graph.edge_index), layer.lin(layer.filter(parts)))
