import pytest
import torch
from torch import nn

from nlsf.errors import ModelError
from nlsf.nn import GraphNLSF
from nlsf.spectral import IndexBands, UniformBands
from nlsf.testing.graphs import path, ring, torus
from nn.layers import MIXED, batch_of, randomised, signal, spectrum_of

G = torus(4, 5)


def test_shapes():
    layer = GraphNLSF(3, 2).double()
    batch = batch_of(MIXED, 3)
    assert layer(batch.x, batch.edge_index, None, batch.batch).shape == (len(MIXED), 2)
    assert layer(signal(20, 3), G.edge_index).shape == (1, 2)
    assert layer(signal(4, 20, 3), G.edge_index).shape == (4, 2)
    assert layer(signal(5, 4, 20, 3), G.edge_index).shape == (5, 4, 2)


def test_it_reads_nothing_but_the_norms():
    """Signals with the same norms in every band give the same output; others do not."""
    layer = randomised(GraphNLSF(1, 2, UniformBands(4)))
    spectrum = spectrum_of(G)
    x = signal(20, 1)
    signs = torch.where(torch.arange(20) % 3 == 0, -1.0, 1.0).double()[:, None]
    other = spectrum.vectors @ (signs * (spectrum.vectors.T @ x))
    assert not torch.allclose(other, x)
    torch.testing.assert_close(layer(other, spectrum=spectrum), layer(x, spectrum=spectrum))
    assert not torch.allclose(layer(x.roll(3), spectrum=spectrum_of(path(20))), layer(x, G[0]))


def test_normalised_norms_hide_the_size_of_the_graph():
    layer = randomised(GraphNLSF(1, 2, IndexBands(3), norm_per_node=True))
    counting = randomised(GraphNLSF(1, 2, IndexBands(3)))
    small, large = ((torch.ones(n, 1).double(), ring(n).edge_index) for n in (5, 50))
    torch.testing.assert_close(layer(*small), layer(*large))
    assert not torch.allclose(counting(*small), counting(*large))


def test_batch_normalisation_of_the_norms():
    layer = GraphNLSF(2, 3, IndexBands(3), batch_norm=True).double()
    batch = batch_of(MIXED)
    layer(batch.x, batch.edge_index, None, batch.batch)
    parts = layer.view(batch.x, batch.edge_index, None, batch.batch)
    features = layer.norms(parts).flatten(1)
    torch.testing.assert_close(layer.standard.running_mean, 0.1 * features.mean(0))
    assert layer(signal(4, 20, 2), G.edge_index).shape == (4, 3)
    layer.reset_parameters()
    assert not layer.standard.running_mean.any()
    layer.eval()
    assert layer(signal(20, 2), G.edge_index).shape == (1, 3)


@pytest.mark.parametrize(
    ("options", "open_"),
    [({}, True), ({"norm_p": 1.0}, False), ({"norm_per_node": True}, False)],
    ids=["L_2", "L_1", "normalised"],
)
def test_the_fast_path_gives_the_same_or_says_that_it_cannot(options, open_):
    layer = randomised(GraphNLSF(3, 2, IndexBands(3), channels=4, **options))
    batch = batch_of(MIXED, 3)
    graphs = (batch.x, batch.edge_index, None, batch.batch)
    if open_:
        found = layer.respond(layer.of_prepared(layer.prepare(*graphs)))
        torch.testing.assert_close(found, layer(*graphs))
    else:
        with pytest.raises(ModelError, match="needs norm_p=2 and norm_per_node=False, not"):
            layer.prepare(*graphs)


@pytest.mark.parametrize("channels", [None, 4])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_what_is_prepared_can_be_trained_on_after_an_evaluation(channels, mode):
    layer, batch = GraphNLSF(2, 3, channels=channels).double(), batch_of(MIXED, 2)
    found = []
    for evaluated in (False, True):
        view = layer.of_prepared(layer.prepare(batch.x, batch.edge_index, None, batch.batch))
        if evaluated:
            with mode():
                layer.respond(view)
        layer.zero_grad()
        layer.respond(view).square().sum().backward()
        found.append([p.grad.clone() for p in layer.parameters()])
    torch.testing.assert_close(*found)


def test_the_map_before_it_has_no_bias():
    layer = GraphNLSF(2, 3, channels=5)
    assert isinstance(layer.lin, nn.Linear)
    assert layer.lin.bias is None
    assert layer.network.sizes[0] == 6 * 5
    assert isinstance(GraphNLSF(2, 3).lin, nn.Identity)


@pytest.mark.parametrize("channels", [None, 4])
def test_reset_draws_new_parameters(channels):
    layer = GraphNLSF(2, 3, channels=channels)
    before = [p.clone() for p in layer.parameters()]
    layer.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))


def test_repr_says_what_it_is():
    assert repr(GraphNLSF(3, 2, IndexBands(5))) == (
        "GraphNLSF(3, 2, bands=IndexBands(J=5), normalization='sym', complement=True)"
    )
