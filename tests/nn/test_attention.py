import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import GraphNLSF, LaplacianAttention, NodeNLSF, PoolingNLSF
from nlsf.spectral import IndexBands, Lens
from nlsf.testing.graphs import torus
from nn.layers import MIXED, batch_of, layer_of, randomised, signal, spectrum_of

G = torus(4, 5)


def attention(score="scalar", **options):
    first = NodeNLSF(2, 3, IndexBands(4), None)
    return LaplacianAttention(first, NodeNLSF(2, 4), score, **options)


@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_both_branches_weigh_the_same_before_training(score):
    layer = attention(score).double()
    x = signal(20, 2)
    y = layer(x, G.edge_index)
    assert layer.out_channels == 7
    torch.testing.assert_close(y[:, :3], 0.5 * layer.first(x, G.edge_index))
    torch.testing.assert_close(y[:, 3:], 0.5 * layer.second(x, G.edge_index))
    assert layer.alpha.item() == 0.5


def test_learned_scores_choose_a_branch():
    layer = attention().double()
    with torch.no_grad():
        layer.scores.copy_(torch.tensor([60.0, -60.0]))
    x = signal(20, 2)
    y = layer(x, G.edge_index)
    torch.testing.assert_close(y[:, :3], layer.first(x, G.edge_index))
    assert y[:, 3:].abs().max() < 1e-40


def test_spectral_scores_weigh_every_graph_by_itself():
    layer = layer_of("attention, spectral")
    batch = batch_of(MIXED)
    layer(batch.x, batch.edge_index, None, batch.batch)
    together = layer.alpha
    assert together.shape == (len(MIXED),)
    assert together.unique().numel() == len(MIXED)
    assert not together.requires_grad
    for data, alpha in zip(batch.to_data_list(), together, strict=True):
        layer(data.x, data.edge_index)
        assert layer.alpha.shape == ()
        torch.testing.assert_close(layer.alpha, alpha)
    layer(signal(6, 20, 2), G.edge_index)
    assert layer.alpha.shape == (6,)


def test_spectral_scores_do_not_see_the_scale_of_the_signal():
    layer = layer_of("attention, spectral")
    x = signal(20, 2)
    layer(x, G.edge_index)
    before = layer.alpha
    layer(9 * x, G.edge_index)
    torch.testing.assert_close(layer.alpha, before)


def test_a_pair_of_spectra_is_the_graph():
    layer = layer_of("attention")
    x = signal(20, 2)
    pair = spectrum_of(G, None), spectrum_of(G, "sym")
    torch.testing.assert_close(layer(x, spectrum=pair), layer(x, G.edge_index))


@pytest.mark.parametrize("name", ["attention", "stack of attention"])
@pytest.mark.parametrize("kind", ["spectrum", "lens", "too few", "too many"])
def test_anything_but_a_pair_of_spectra_is_refused(name, kind):
    one = spectrum_of(G)
    wrong = {
        "spectrum": one,
        "lens": Lens.of(one, IndexBands(3)),
        "too few": [one],
        "too many": (one, one, one),
    }
    with pytest.raises(ModelError, match=r"takes a pair, spectrum=\(of the first branch, of the"):
        layer_of(name)(signal(20, 2), spectrum=wrong[kind])


def test_graph_levels_may_be_mixed_and_levels_may_not():
    graph, pooling, node = GraphNLSF(2, 3), PoolingNLSF(2, 3), NodeNLSF(2, 3)
    LaplacianAttention(graph, pooling, "spectral")
    for other in (graph, pooling):
        with pytest.raises(ModelError, match="one level"):
            LaplacianAttention(node, other)
        with pytest.raises(ModelError, match="one level"):
            LaplacianAttention(other, node)


def test_unknown_scores_are_refused():
    with pytest.raises(ModelError, match="'scalar' or 'spectral', not 'dot'"):
        attention("dot")


@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_reset_returns_to_the_start(score):
    layer = randomised(attention(score))
    x = signal(20, 2)
    layer(x, G.edge_index)
    assert layer.alpha.item() != 0.5
    layer.reset_parameters()
    layer(x, G.edge_index)
    assert layer.alpha.item() == 0.5
    assert not layer.first.response.network.weights[-1].any()


def test_repr_says_what_it_is():
    text = repr(attention())
    assert text.count("NodeNLSF(") == 2
    assert text.endswith("score='scalar')")
