import pytest
import torch
from torch import nn

from nlsf.errors import ModelError, SignalError
from nlsf.nn import NodeNLSF, Start
from nlsf.spectral import DyadicBands, IndexBands, Lens, UniformBands
from nlsf.testing.graphs import path, torus, weighted
from nn.layers import randomised, signal, spectrum_of

G = torus(4, 5)


@pytest.mark.parametrize("response", ["diagonal", "bandwise"])
def test_an_untrained_filter_without_normalisation_passes_everything(response):
    layer = NodeNLSF(3, 3, response=response, a=0.0, eps=1e-14).double()
    x = signal(20, 3)
    torch.testing.assert_close(layer(x, G.edge_index), x)


def test_an_untrained_filter_with_normalisation_gives_every_band_the_length_of_its_gain():
    """The paper's a = 1: only directions are kept, so |P_j y| = h_j where P_j x is not 0."""
    bands = UniformBands(4)
    layer = NodeNLSF(3, 3, bands, a=1.0, start=Start("heat", 1.0), eps=1e-12).double()
    P = Lens.of(spectrum_of(G), bands, complement=False)
    parts = P(layer(signal(20, 3), spectrum=P))
    used = P.dimension > 0
    norms = layer.norms(parts)[used]
    torch.testing.assert_close(
        norms, layer.start.gains(P.frequencies)[used][:, None].expand_as(norms)
    )


@pytest.mark.parametrize(
    ("response", "inputs", "outputs", "mapped"),
    [("diagonal", 3, 3, False), ("bandwise", 3, 5, True), ("full", 3, 3, True)],
)
def test_a_linear_map_follows_only_where_channels_change(response, inputs, outputs, mapped):
    layer = NodeNLSF(inputs, outputs, IndexBands(4), response=response)
    assert isinstance(layer.lin, nn.Linear) == mapped
    assert layer(signal(20, 3, dtype=torch.float32), G.edge_index).shape == (20, outputs)
    if mapped:
        assert layer.lin.bias is None
        assert layer.lin.in_features == (5 * outputs if response == "full" else inputs)


def test_dropping_the_complement_drops_what_the_bands_leave_out():
    lead = NodeNLSF(2, 2, IndexBands(3), complement=False, a=0.0, eps=1e-14).double()
    P = Lens.of(spectrum_of(G, "sym"), IndexBands(3))
    x = signal(20, 2)
    torch.testing.assert_close(lead(x, G.edge_index), x - P(x).part(3))


def test_filtering_and_mapping_are_the_two_halves():
    layer = randomised(NodeNLSF(3, 4))
    parts = layer.view(signal(20, 3), G.edge_index)
    assert torch.equal(layer.lin(layer.filter(parts)), layer.respond(parts))
    assert torch.equal(layer.respond(parts), layer(signal(20, 3), G.edge_index))


def test_the_gains_are_those_of_the_mean_frequencies():
    layer = NodeNLSF(2, 2, UniformBands(3), start=Start("ppr", 2.0, 0.0))
    spectra = [spectrum_of(g) for g in (G, path(7))]
    single = [Lens.of(s, UniformBands(3)) for s in spectra]
    together = layer.start.gains(Lens.of(spectra, UniformBands(3)).frequencies)
    for P, found in zip(single, together, strict=True):
        torch.testing.assert_close(found, 1 / (1 + 2 * P.frequencies))
        torch.testing.assert_close(layer.start.gains(P.frequencies), found)


def test_weights_of_edges_and_self_loops_matter():
    g = weighted(8)
    x = signal(8, 2)
    plain, loops = (
        randomised(NodeNLSF(2, 2, UniformBands(4), self_loops=loops)) for loops in (False, True)
    )
    outputs = [
        plain(x, g.edge_index, g.edge_weight),
        plain(x, g.edge_index),
        loops(x, g.edge_index, g.edge_weight),
    ]
    for i in range(3):
        assert not torch.allclose(outputs[i], outputs[i - 1])


def test_scaling_the_signal_scales_a_relative_filter_without_normalisation():
    layer = randomised(NodeNLSF(2, 2, a=0.0))
    x = signal(20, 2)
    torch.testing.assert_close(layer(5 * x, G.edge_index), 5 * layer(x, G.edge_index))


def test_reset_returns_to_the_start_and_draws_random_ones_anew():
    x = signal(20, 3)
    for start in ("heat", "random"):
        layer = NodeNLSF(3, 3, start=start).double()
        new = layer(x, G.edge_index)
        randomised(layer)
        assert not torch.allclose(layer(x, G.edge_index), new)
        layer.reset_parameters()
        assert torch.equal(layer(x, G.edge_index), new) == (start == "heat")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"response": "dense"}, ModelError, "response must be one of"),
        ({"start": "low"}, ModelError, "start must be one of"),
        ({"sharing": "all"}, ModelError, "sharing must be one of"),
        ({"mode": "x"}, ModelError, "mode must be one of"),
        ({"a": 1.5}, SignalError, "between 0 and 1"),
        ({"eps": 0.0}, SignalError, "positive"),
        ({"norm_p": 0.5}, SignalError, "at least 1"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, says):
    with pytest.raises(error, match=says):
        NodeNLSF(2, 2, **options).double()(signal(20, 2), G.edge_index)


def test_repr_says_what_it_is():
    assert repr(NodeNLSF(3, 4, IndexBands(5), None, "full", complement=False)) == (
        "NodeNLSF(3, 4, bands=IndexBands(J=5), normalization=None, response='full', "
        "complement=False)"
    )
    assert repr(DyadicBands()) in repr(NodeNLSF(3, 4))
