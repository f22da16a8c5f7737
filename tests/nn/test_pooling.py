import math

import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import PoolingNLSF, Readout
from nlsf.spectral import IndexBands
from nlsf.testing.graphs import torus
from nn.layers import F64, MIXED, batch_of, randomised, signal

G = torus(4, 5)


def test_shapes():
    layer = PoolingNLSF(3, 2, hidden_channels=5).double()
    batch = batch_of(MIXED, 3)
    assert layer(batch.x, batch.edge_index, None, batch.batch).shape == (len(MIXED), 2)
    assert layer(signal(20, 3), G.edge_index).shape == (1, 2)
    assert layer(signal(5, 4, 20, 3), G.edge_index).shape == (5, 4, 2)


@pytest.mark.parametrize("readout", ["mean", "sum", "max", "lp", "rms"])
def test_it_is_its_parts_in_a_row(readout):
    layer = randomised(PoolingNLSF(3, 2, hidden_channels=5, readout=readout, p=3.0))
    x = signal(20, 3)
    y = Readout(readout, 3.0)(layer.node(x, G.edge_index).relu())
    torch.testing.assert_close(layer(x, G.edge_index), layer.network(y))


def test_without_a_network_the_readout_is_the_output():
    layer = randomised(
        PoolingNLSF(3, 2, hidden_channels=99, readout="sum", depth=0, activation=None)
    )
    assert layer.network is None
    assert layer.node.out_channels == 2
    x = signal(20, 3)
    torch.testing.assert_close(layer(x, G.edge_index), layer.node(x, G.edge_index).sum(0)[None])


def test_standardised_nodes_and_readout():
    layer = randomised(PoolingNLSF(3, 5, hidden_channels=5, depth=0, batch_norm=True))
    batch = batch_of(MIXED, 3)
    y = layer.node(batch.x, batch.edge_index, None, batch.batch)
    z = ((y - y.mean(0)) / (y.var(0, correction=0) + 1e-5).sqrt()).double()
    z = (z * layer.node_norm.weight + layer.node_norm.bias).relu()
    pooled = Readout("mean")(z, batch.batch, len(MIXED))
    wanted = (pooled - pooled.mean(0)) / (pooled.var(0, correction=0) + 1e-5).sqrt()
    found = layer(batch.x, batch.edge_index, None, batch.batch)
    torch.testing.assert_close(found, wanted)
    # In evaluation a graph has the same numbers in whichever batch.
    layer.eval()
    every = layer(batch.x, batch.edge_index, None, batch.batch)
    torch.testing.assert_close(layer(batch[0].x, batch[0].edge_index), every[:1])
    signals = signal(4, 2, 20, 3)
    many = layer(signals, G.edge_index)
    assert many.shape == (4, 2, 5)
    torch.testing.assert_close(many[1, 1], layer(signals[1, 1], G.edge_index)[0])
    layer.reset_parameters()
    assert not layer.node_norm.running_mean.any()
    assert not layer.readout_norm.running_mean.any()


def test_options_reach_the_filter():
    layer = PoolingNLSF(3, 2, IndexBands(4), None, hidden_channels=5, response="full", a=0.5)
    assert layer.node.bands == IndexBands(4)
    assert layer.node.normalization is None
    assert layer.node.response.name == "full"
    assert layer.node.a == 0.5
    with pytest.raises(ModelError, match="response must be"):
        PoolingNLSF(3, 2, response="dense")
    with pytest.raises(ModelError, match="readout must be"):
        PoolingNLSF(3, 2, readout="median")


def test_reset_draws_new_parameters_and_returns_the_filter_to_its_start():
    layer = PoolingNLSF(3, 2, hidden_channels=3)
    first = layer.network.weights[0].clone()
    randomised(layer)
    layer.reset_parameters()
    assert not torch.equal(first.double(), layer.network.weights[0])
    assert not layer.node.response.network.weights[-1].any()
    PoolingNLSF(3, 2, depth=0).reset_parameters()


def test_the_norms_are_those_of_its_filter():
    layer = PoolingNLSF(3, 2).double()
    parts = layer.view(signal(20, 3), G.edge_index)
    assert torch.equal(layer.norms(parts), layer.node.norms(parts))


def test_repr_says_what_it_is():
    text = repr(PoolingNLSF(3, 2, hidden_channels=5, readout="rms"))
    assert text.startswith("PoolingNLSF(3, 2, node=NodeNLSF(3, 5, ")
    assert text.endswith("readout=Readout('rms', p=2.0, normalize=True))")


def test_options_reach_the_response_of_the_filter():
    layer = PoolingNLSF(3, 2, hidden=7, depth=3, psi={"hidden": 5, "depth": 4, "dropout": 0.25})
    assert layer.node.response.network.sizes[1:-1] == [5, 5, 5]
    assert layer.node.response.network.dropout == 0.25
    assert layer.network.sizes[1:-1] == [7, 7]


Y = torch.tensor([[3.0, -1.0], [-4.0, 0.0], [0.0, 2.0]], dtype=F64)
BY_HAND = {
    "mean": (Readout("mean"), [-1 / 3, 1 / 3]),
    "sum": (Readout("sum"), [-1.0, 1.0]),
    "max": (Readout("max"), [3.0, 2.0]),
    "L_1": (Readout("lp", 1.0), [7.0, 3.0]),
    "L_2": (Readout("lp"), [5.0, math.sqrt(5)]),
    "L_3": (Readout("lp", 3.0), [91 ** (1 / 3), 9 ** (1 / 3)]),
    "mean L_1": (Readout("lp", 1.0, normalize=True), [7 / 3, 1.0]),
    "L_inf": (Readout("lp", math.inf), [4.0, 2.0]),
    "rms": (Readout("rms"), [math.sqrt(25 / 3), math.sqrt(5 / 3)]),
}
every_readout = pytest.mark.parametrize("name", BY_HAND)


@every_readout
def test_by_hand(name):
    readout, expected = BY_HAND[name]
    expected = torch.tensor([expected], dtype=F64)
    torch.testing.assert_close(readout(Y), expected)
    torch.testing.assert_close(readout(Y, torch.zeros(3, dtype=torch.int64), 1), expected)
    torch.testing.assert_close(
        readout(torch.stack([Y, 2 * Y])), torch.cat([expected, 2 * expected])
    )


@every_readout
def test_a_batch_is_graph_by_graph_and_an_empty_graph_gives_zero(name):
    readout, _ = BY_HAND[name]
    y = signal(7, 2)
    found = readout(y, torch.tensor([0, 0, 2, 2, 2, 2, 3]), 5)
    for g, rows in enumerate((slice(0, 2), slice(0, 0), slice(2, 6), slice(6, 7), slice(0, 0))):
        torch.testing.assert_close(found[g : g + 1], readout(y[rows]))
    assert not found[[1, 4]].any()
    assert not readout(y[:0]).any()
    assert readout(y[:0]).shape == (1, 2)
    assert readout(signal(3, 0, 2)).shape == (3, 2)


@every_readout
def test_gradients(name):
    readout, _ = BY_HAND[name]
    y = signal(6, 2).requires_grad_()
    assert torch.autograd.gradcheck(readout, (y,))
    assert torch.autograd.gradcheck(lambda y: readout(y, torch.tensor([0, 0, 0, 1, 1, 1]), 2), (y,))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("batched", [True, False])
def test_the_gradient_of_a_zero_norm_is_zero(p, batched):
    y = torch.zeros(4, 2, dtype=F64, requires_grad=True)
    batch = (torch.zeros(4, dtype=torch.int64), 1) if batched else ()
    for readout in (Readout("lp", p), Readout("rms")):
        (gradient,) = torch.autograd.grad(readout(y, *batch).sum(), y)
        assert torch.equal(gradient, torch.zeros_like(y))


@pytest.mark.parametrize("scale", [1e-30, 1e-4, 1.0, 100.0, 1e30])
@pytest.mark.parametrize("p", [3.0, 20.0, 200.0])
@pytest.mark.parametrize("batched", [True, False])
def test_no_power_overflows_or_is_lost(scale, p, batched):
    """In single precision the 20th power of 100 is infinite, and that of 0.001 is nothing."""
    readout = Readout("lp", p, normalize=True)
    wide = torch.tensor([[1.0, 0.0], [-0.5, 1e-5], [0.25, 0.0]], dtype=F64)
    graphs = ()
    if batched:  # the largest of one graph is nothing beside that of the other
        wide, graphs = torch.cat([1e-3 * wide, wide]), (torch.tensor([0, 0, 0, 1, 1, 1]), 2)
    narrow = (scale * wide).float().requires_grad_()
    wide.requires_grad_()
    expected, found = readout(wide, *graphs), readout(narrow, *graphs)
    by_hand = (wide.abs() ** p).unflatten(0, (-1, 3)).mean(1) ** (1 / p)
    if p == 3:  # else double precision too loses the smallest
        torch.testing.assert_close(expected, by_hand)
    torch.testing.assert_close(found.double(), scale * expected, atol=0.0, rtol=1e-5)
    slopes = [torch.autograd.grad(z.sum(), x)[0] for z, x in ((expected, wide), (found, narrow))]
    torch.testing.assert_close(slopes[1].double(), slopes[0], atol=1e-6, rtol=1e-4)


@every_readout
def test_a_value_that_is_not_a_number_is_not_hidden(name):
    readout, _ = BY_HAND[name]
    y = Y.clone()
    y[1, 0] = torch.nan
    found = readout(y)
    assert found[0, 0].isnan()
    assert found[0, 1].isfinite()


def test_names_and_norms_that_do_not_exist_are_refused():
    with pytest.raises(ModelError, match="mean, sum, max, lp or rms, not 'median'"):
        Readout("median")
    for p in (0.5, math.nan):
        with pytest.raises(ModelError, match="at least 1"):
            Readout("lp", p)


def test_repr():
    assert repr(Readout("mean")) == "Readout('mean')"
    assert repr(Readout("lp", 3.0)) == "Readout('lp', p=3.0, normalize=False)"
    assert repr(Readout("rms", 7.0)) == "Readout('rms', p=2.0, normalize=True)"
