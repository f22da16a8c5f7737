"""The filter with a map for every band: its formula, its symmetry, its two ways to compute."""

import pytest
import torch

from nlsf.errors import ModelError, SignalError
from nlsf.nn import NodeNLSF, PoolingNLSF, Start
from nlsf.nn.layers.node import MixingNLSF
from nlsf.spectral import IndexBands, Lens, UniformBands
from nlsf.testing import assert_shift_equivariant
from nlsf.testing.graphs import torus, weighted
from nn.layers import randomised, signal, spectrum_of

G = torus(4, 5)
SHAPES = {"many maps": (2, 3), "few channels": (1, 8)}


def layer_of(name, **options):
    inputs, outputs = SHAPES[name]
    return randomised(MixingNLSF(inputs, outputs, UniformBands(5), **options))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("a", [0.0, 1.0])
def test_it_is_the_formula(name, a):
    layer = layer_of(name, a=a, eps=1e-3)
    x = signal(20, layer.in_channels)
    P = Lens.of(spectrum_of(G), layer.bands, complement=False)
    projections = torch.stack(list(P(x).parts()))
    norms = projections.norm(dim=1)
    gains = layer.response(norms, torch.ones(layer.n_bands))
    maps = layer.maps(P.frequencies)
    expected = sum(
        (part / (norm**a + 1e-3) * gain) @ one
        for part, norm, gain, one in zip(projections, norms, gains, maps, strict=True)
    )
    torch.testing.assert_close(layer(x, spectrum=P), expected)


def test_the_maps_are_a_polynomial_of_the_frequency():
    layer = layer_of("many maps", degree=3)
    at = torch.linspace(0, 2, 9, dtype=torch.float64)
    t = at - 1
    basis = [torch.ones_like(t), t, 2 * t**2 - 1, 4 * t**3 - 3 * t]
    expected = sum(b[:, None, None] * c for b, c in zip(basis, layer.weight, strict=True))
    torch.testing.assert_close(layer.maps(at), expected)


@pytest.mark.parametrize("name", SHAPES)
def test_it_commutes_with_functional_shifts(name):
    layer = layer_of(name)
    spectrum = spectrum_of(weighted(8))
    assert_shift_equivariant(
        lambda x: layer(x, spectrum=spectrum),
        Lens.of(spectrum, layer.bands),
        signal(8, layer.in_channels),
    )


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_is_its_signals_one_by_one(name):
    layer = layer_of(name)
    x = signal(3, 2, 20, layer.in_channels)
    each = [[layer(one, G.edge_index) for one in some] for some in x]
    expected = torch.stack([torch.stack(some) for some in each])
    torch.testing.assert_close(layer(x, G.edge_index), expected)


def test_a_constant_response_is_linear_and_the_others_are_not():
    x, y = signal(20, 2), signal(20, 2, seed=1)
    for response, linear in (("constant", True), ("diagonal", False)):
        layer = layer_of("many maps", response=response, eps=1e-12)
        both = layer(x + y, G.edge_index)
        apart = layer(x, G.edge_index) + layer(y, G.edge_index)
        assert torch.allclose(both, apart, atol=1e-9) == linear


@pytest.mark.parametrize("name", SHAPES)
def test_every_parameter_has_a_gradient(name):
    layer = layer_of(name)
    layer(signal(20, layer.in_channels), G.edge_index).square().sum().backward()
    for parameter in layer.parameters():
        assert bool((parameter.grad != 0).any())


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("start", ["all-pass", "heat", "ppr", "high-pass", Start("walk", 2.0)])
def test_a_new_layer_has_the_gains_of_its_start(name, start):
    inputs, outputs = SHAPES[name]
    layer = MixingNLSF(inputs, outputs, UniformBands(5), start=start, eps=1e-12).double()
    x, P = signal(20, inputs), Lens.of(spectrum_of(G), layer.bands, complement=False)
    gains, maps = Start.of(start).gains(P.frequencies), layer.maps(P.frequencies)
    parts = zip(P(x).parts(), gains, maps, strict=True)
    expected = sum(gain * part @ one for part, gain, one in parts)
    torch.testing.assert_close(layer(x, spectrum=P), expected)


@pytest.mark.parametrize("form", ["spectra", "lens"])
def test_several_graphs_are_refused(form):
    layer, spectra = layer_of("many maps"), [spectrum_of(G), spectrum_of(weighted(8))]
    given = spectra if form == "spectra" else Lens.of(spectra, layer.bands, complement=False)
    with pytest.raises(ModelError, match="is for one graph"):
        layer(signal(28, 2), spectrum=given)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"a": -0.5}, "between 0 and 1"), ({"a": 1.5}, "between 0 and 1"), ({"eps": 0.0}, "positive")],
    ids=str,
)
def test_all_layers_refuse_the_same_exponents(options, says):
    """On every path: those of graphs that are prepared have no synthesis of their own."""
    x, edges = signal(20, 2).float(), G.edge_index
    for layer in (MixingNLSF(2, 3, **options), NodeNLSF(2, 3, **options)):
        with pytest.raises(SignalError, match=says):
            layer(x, edges)
    pooling = PoolingNLSF(2, 3, **options)
    prepared = pooling.prepare(x, edges, None, torch.zeros(20, dtype=torch.int64))
    with pytest.raises(SignalError, match=says):
        pooling.respond(prepared[torch.tensor([0])])


def test_one_channel_becomes_different_ones():
    layer = MixingNLSF(1, 4, UniformBands(8)).double()
    y = layer(signal(20, 1), G.edge_index)
    assert torch.linalg.matrix_rank(y) == 4


def test_reset_draws_new_maps_and_gains_of_one():
    torch.manual_seed(0)
    layer = MixingNLSF(2, 3, IndexBands(4))
    before = layer.weight.detach().clone()
    layer.reset_parameters()
    assert not torch.equal(layer.weight, before)
    gains = layer.response(torch.rand(5, 2), torch.ones(5))
    assert torch.equal(gains, torch.ones(5, 2))


def test_repr_says_what_it_is():
    assert repr(MixingNLSF(1, 4, UniformBands(8), degree=3)) == (
        f"MixingNLSF(1, 4, bands={UniformBands(8)}, response='diagonal', degree=3)"
    )
