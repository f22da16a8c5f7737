import pytest
import torch
from torch import nn

from nlsf.errors import ModelError
from nlsf.nn import InvariantNorm, LaplacianAttention, NLSFStack, NodeNLSF
from nlsf.spectral import DyadicBands, IndexBands, Lens
from nlsf.testing.graphs import path, torus
from nn.layers import F64, MIXED, batch_of, layer_of, randomised, signal, spectrum_of

G = torus(4, 5)


def test_invariant_norm_by_hand():
    norm = InvariantNorm(2, eps=0.5).double()
    x = torch.tensor([[3.0, 0.0], [4.0, 0.0]], dtype=F64)
    size = (25 / 2) ** 0.5
    torch.testing.assert_close(norm(x)[:, 0], x[:, 0] / (size + 0.5))
    assert not norm(x)[:, 1].any()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, 1.0]))
    torch.testing.assert_close(norm(x)[:, 0], 2 * x[:, 0] / (size + 0.5))
    norm.reset_parameters()
    assert torch.equal(norm.weight, torch.ones(2, dtype=F64))


def test_invariant_norm_of_a_batch_and_of_many_signals():
    norm = randomised(InvariantNorm(2))
    batch = batch_of(MIXED)
    expected = torch.cat([norm(d.x) for d in batch.to_data_list()])
    torch.testing.assert_close(norm(batch.x, batch.batch), expected)
    x = signal(3, 20, 2)
    torch.testing.assert_close(norm(x), torch.stack([norm(one) for one in x]))
    assert norm(x[:, :0]).shape == (3, 0, 2)
    assert norm(x[0, :0], batch.batch[:0]).shape == (0, 2)


def test_gradients_of_invariant_norm():
    norm = randomised(InvariantNorm(2))
    batch = torch.tensor([0, 0, 0, 2, 2])
    x = signal(5, 2).requires_grad_()
    assert torch.autograd.gradcheck(norm, (x,))
    assert torch.autograd.gradcheck(lambda x: norm(x, batch), (x,))
    zero = torch.zeros(5, 2, dtype=F64, requires_grad=True)
    norm(zero, batch).sum().backward()
    torch.testing.assert_close(zero.grad, (norm.weight / norm.eps).detach().expand(5, 2))


def test_a_value_that_is_not_a_number_is_not_hidden():
    x = signal(5, 2)
    x[0, 0] = torch.nan
    y = InvariantNorm(2).double()(x)
    assert y[:, 0].isnan().all()
    assert y[:, 1].isfinite().all()


def test_residuals_are_added_where_channels_agree():
    layers = [NodeNLSF(2, 3), NodeNLSF(3, 3)]
    plain, residual = (NLSFStack(layers, r, invariant_norm=False) for r in (False, True))
    randomised(plain)
    x = signal(20, 2)
    middle = layers[0](x, G.edge_index)
    last = layers[1](middle, G.edge_index)
    torch.testing.assert_close(plain(x, G.edge_index), last)
    torch.testing.assert_close(residual(x, G.edge_index), last + middle)


def test_the_branches_of_an_attention_share_the_residual():
    layer = LaplacianAttention(NodeNLSF(2, 2, IndexBands(3)), NodeNLSF(2, 2))
    plain, residual = (randomised(NLSFStack([layer], r)) for r in (False, True))
    x = signal(20, 2)
    added = residual(x, G.edge_index) - plain(x, G.edge_index)
    torch.testing.assert_close(added, torch.cat([x / 2, x / 2], dim=-1))


@pytest.mark.parametrize(
    "layer",
    [
        NodeNLSF(2, 4),
        LaplacianAttention(NodeNLSF(2, 1), NodeNLSF(2, 3)),
        LaplacianAttention(NodeNLSF(2, 1), NodeNLSF(2, 1)),
    ],
    ids=["twice the channels", "branches of 1 and 3", "branches of 1 and 1"],
)
def test_channels_that_agree_by_chance_get_no_residual(layer):
    plain, residual = (randomised(NLSFStack([layer], r)) for r in (False, True))
    x = signal(20, 2)
    assert torch.equal(residual(x, G.edge_index), plain(x, G.edge_index))


def test_every_layer_but_the_last_is_normalised():
    stack = NLSFStack([NodeNLSF(2, 2), NodeNLSF(2, 4), NodeNLSF(4, 4)])
    assert [norm.weight.shape[0] for norm in stack.norms] == [2, 4]
    assert stack.out_channels == 4
    assert all(
        isinstance(n, nn.Identity) for n in NLSFStack(stack.layers, invariant_norm=False).norms
    )
    assert not NLSFStack([NodeNLSF(2, 2)]).norms


@pytest.mark.parametrize("name", ["stack", "stack of attention"])
def test_the_batch_may_be_named(name):
    stack, batch = layer_of(name), batch_of(MIXED)
    expected = stack(batch.x, batch.edge_index, None, batch.batch)
    named = stack(batch.x, edge_index=batch.edge_index, batch=batch.batch)
    assert torch.equal(named, expected)


def test_every_form_of_a_spectrum_is_normalised_graph_by_graph():
    stack = randomised(NLSFStack([NodeNLSF(2, 2) for _ in range(3)]))
    spectra = [spectrum_of(g) for g in (G, path(7))]
    x = signal(27, 2)
    x[20:] *= 100
    expected = torch.cat([stack(x[:20], spectrum=spectra[0]), stack(x[20:], spectrum=spectra[1])])
    for given in (spectra, tuple(spectra), Lens.of(spectra, DyadicBands(), complement=False)):
        torch.testing.assert_close(stack(x, spectrum=given), expected)
    alone = stack(x[:20], spectrum=Lens.of(spectra[0], DyadicBands(), complement=False))
    torch.testing.assert_close(alone, expected[:20])


@pytest.mark.parametrize("count", [0, 11])
def test_a_stack_has_1_to_10_layers(count):
    with pytest.raises(ModelError, match=f"1 to 10 layers, not {count}"):
        NLSFStack([NodeNLSF(2, 2, IndexBands(2)) for _ in range(count)])


def test_ten_layers_neither_explode_nor_vanish():
    torch.manual_seed(0)
    stack = NLSFStack([NodeNLSF(2, 2, start="random") for _ in range(10)])
    y = stack(signal(20, 2, dtype=torch.float32), G.edge_index)
    assert 1e-2 < y.square().mean().sqrt() < 1e2


def test_reset_returns_to_the_start():
    stack = NLSFStack([NodeNLSF(2, 2, start="heat") for _ in range(2)]).double()
    x = signal(20, 2)
    before = stack(x, G.edge_index)
    randomised(stack)
    assert not torch.allclose(stack(x, G.edge_index), before)
    stack.reset_parameters()
    assert torch.equal(stack(x, G.edge_index), before)
    assert "NodeNLSF" in repr(stack)
