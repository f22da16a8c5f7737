import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import PoolingNLSF, Readout
from nlsf.spectral import IndexBands
from nlsf.testing.graphs import torus
from nn.layers import MIXED, batch_of, randomised, signal

G = torus(4, 5)


def test_shapes():
    layer = PoolingNLSF(3, 2, 5).double()
    batch = batch_of(MIXED, 3)
    assert layer(batch.x, batch.edge_index, None, batch.batch).shape == (len(MIXED), 2)
    assert layer(signal(20, 3), G.edge_index).shape == (1, 2)
    assert layer(signal(5, 4, 20, 3), G.edge_index).shape == (5, 4, 2)


@pytest.mark.parametrize("readout", ["mean", "sum", "max", "lp", "rms"])
def test_it_is_its_parts_in_a_row(readout):
    layer = randomised(PoolingNLSF(3, 2, 5, readout, p=3.0))
    x = signal(20, 3)
    y = Readout(readout, 3.0)(layer.node(x, G.edge_index).relu())
    torch.testing.assert_close(layer(x, G.edge_index), layer.network(y))


def test_without_a_network_the_readout_is_the_output():
    layer = randomised(PoolingNLSF(3, 2, 99, "sum", depth=0, activation=None))
    assert layer.network is None
    assert layer.node.out_channels == 2
    x = signal(20, 3)
    torch.testing.assert_close(layer(x, G.edge_index), layer.node(x, G.edge_index).sum(0)[None])


def test_standardised_nodes_and_readout():
    layer = randomised(PoolingNLSF(3, 5, 5, depth=0, standardize=True))
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
    layer = PoolingNLSF(3, 2, 5, bands=IndexBands(4), normalization=None, response="full", a=0.5)
    assert layer.node.bands == IndexBands(4)
    assert layer.node.normalization is None
    assert layer.node.response.name == "full"
    assert layer.node.a == 0.5
    with pytest.raises(ModelError, match="response must be"):
        PoolingNLSF(3, 2, response="dense")
    with pytest.raises(ModelError, match="readout must be"):
        PoolingNLSF(3, 2, readout="median")


def test_reset_draws_new_parameters_and_returns_the_filter_to_its_start():
    layer = PoolingNLSF(3, 2, 3)
    first = layer.network.weights[0].clone()
    randomised(layer)
    layer.reset_parameters()
    assert not torch.equal(first.double(), layer.network.weights[0])
    assert not layer.node.response.network.weights[-1].any()
    PoolingNLSF(3, 2, depth=0).reset_parameters()


def test_the_norms_are_those_of_its_filter():
    layer = PoolingNLSF(3, 2).double()
    parts = layer.decompose(signal(20, 3), G.edge_index)
    assert torch.equal(layer.analyze(parts), layer.node.analyze(parts))


def test_repr_says_what_it_is():
    text = repr(PoolingNLSF(3, 2, 5, "rms"))
    assert text.startswith("PoolingNLSF(3, 2, node=NodeNLSF(3, 5, ")
    assert text.endswith("readout=Readout('rms', p=2.0, normalize=True))")


def test_options_reach_the_response_of_the_filter():
    layer = PoolingNLSF(3, 2, hidden=7, depth=3, psi={"hidden": 5, "depth": 4, "dropout": 0.25})
    assert layer.node.response.network.sizes[1:-1] == [5, 5, 5]
    assert layer.node.response.network.dropout == 0.25
    assert layer.network.sizes[1:-1] == [7, 7]
