"""Responses by name: one of your own has everything that those of the package have."""

import pytest
import torch
from torch import nn

from nlsf.errors import ConfigError, ModelError
from nlsf.nn import GraphClassifier, NodeNLSF, Psi, Response, parameter_groups, register_response
from nlsf.nn.mixing_nlsf import MixingNLSF
from nlsf.nn.models import GraphClassifierConfig, NodeClassifierConfig
from nlsf.nn.models.signal_classifier import SignalClassifierConfig
from nlsf.nn.psi import RESPONSES, make_response
from nlsf.spectral import Projector, UniformBands
from nlsf.testing.graphs import ring
from nlsf.train.tables import from_table
from nn.layers import signal, spectrum_of

OWN = ("one number", "none", "own maps", "own matrix")
SIZES = {"in_channels": 2, "out_channels": 3}


@pytest.fixture(autouse=True)
def _own(monkeypatch):
    """Responses that are registered for one test: with a parameter, without, and with matrices."""
    before = dict(RESPONSES)
    for name in OWN:  # noted as absent, and taken back in the end
        monkeypatch.setitem(RESPONSES, name, None)
        del RESPONSES[name]

    @register_response
    class OneNumber(Psi):
        name = "one number"

        def __init__(self, n_bands, channels, **options):
            super().__init__(n_bands, channels)
            self.options = options
            self.number = nn.Parameter(torch.ones(()))

        def reset_parameters(self):
            nn.init.ones_(self.number)

        def forward(self, norms, gains):
            return self.number * gains.to(norms).unsqueeze(-1) * norms

    @register_response
    class Nothing(Psi):
        name = "none"

        def __init__(self, n_bands, channels, **options):
            super().__init__(n_bands, channels)

        def reset_parameters(self):
            pass

        def forward(self, norms, gains):
            return gains.to(norms).unsqueeze(-1) * norms

    @register_response
    class OwnMaps(Nothing):
        name, form = "own maps", "bandwise"

        def __init__(self, n_bands, channels, *, out_channels, **options):
            super().__init__(n_bands, channels)
            self.out_channels = out_channels

        def forward(self, norms, gains):
            columns = torch.arange(1, self.out_channels + 1).to(norms)
            return norms.unsqueeze(-1) * columns

    @register_response
    class OwnMatrix(Nothing):
        name, form = "own matrix", "full"

        def __init__(self, n_bands, channels, *, out_channels, **options):
            super().__init__(n_bands, channels)
            self.out_channels = out_channels

        def forward(self, norms, gains):
            rows = norms.flatten(-2).unsqueeze(-1)
            return rows.expand(*rows.shape[:-1], self.n_bands * self.out_channels)

    assert RESPONSES.keys() == before.keys() | set(OWN)


@pytest.mark.parametrize("name", OWN)
def test_a_layer_finds_it_by_name(name):
    layer = NodeNLSF(2, 3, UniformBands(4), response=name).double()
    x, spectrum = signal(6, 2), spectrum_of(ring(6))
    y = layer(x, spectrum=spectrum)
    assert y.shape == (6, 3)
    assert isinstance(layer.response, Psi)
    assert name in repr(layer)
    assert name in layer._repr_html_()
    layer.reset_parameters()


def test_options_of_a_layer_reach_it():
    layer = NodeNLSF(2, 3, response="one number", start="ppr", hidden=7)
    options = layer.response.options
    assert (options["out_channels"], options["start"], options["hidden"]) == (3, layer.start, 7)


def test_its_parameters_belong_to_psi():
    layer = NodeNLSF(2, 2, response="one number")
    assert parameter_groups(layer) == {"response.number": "psi"}
    with torch.no_grad():
        layer.response.number.fill_(3.0)
    layer.reset_parameters()
    assert layer.response.number == 1


@pytest.mark.parametrize("name", OWN)
def test_only_forms_without_a_matrix_prepare_graphs(name):
    model = GraphClassifier(**SIZES, level="pooling", response=name)
    assert model.can_prepare == (name not in ("own maps", "own matrix"))


@pytest.mark.parametrize("outputs", [2, 3])
def test_a_matrix_for_every_band_is_the_formula(outputs):
    """The maps end in ``out_channels``: no other map follows, not even from 2 to 3 channels."""
    layer = NodeNLSF(2, outputs, UniformBands(4), response="own maps", a=0.0, eps=1e-12)
    x, projector = signal(6, 2), Projector(spectrum_of(ring(6)), layer.bands)
    assert isinstance(layer.lin, nn.Identity)
    parts = torch.stack(list(projector.projections(x)))
    norms = parts.norm(dim=1)
    expected = (parts @ layer.response(norms, None)).sum(0)
    torch.testing.assert_close(layer(x, spectrum=projector), expected)


@pytest.mark.parametrize("name", ["full", "own maps", "own matrix"])
def test_a_layer_with_maps_of_its_own_refuses_a_matrix(name):
    with pytest.raises(ModelError, match="mix channels"):
        MixingNLSF(2, 3, UniformBands(4), name)


@pytest.mark.parametrize(
    "config", [NodeClassifierConfig, GraphClassifierConfig, SignalClassifierConfig]
)
def test_settings_call_every_response_by_name(config):
    sizes = {**SIZES, "num_nodes": 5} if config is SignalClassifierConfig else SIZES
    for name in RESPONSES:
        assert from_table(config, {**sizes, "response": name}).response == name
    for wrong in ("dense", 3, ["diagonal"], {"name": "diagonal"}):
        with pytest.raises(ConfigError, match=r"^response must be one of diagonal, .*own matrix"):
            from_table(config, {**sizes, "response": wrong})


def test_a_class_that_is_defined_again_takes_its_place():
    def define():
        class Again(Psi):
            name = "none"

        return Again

    del RESPONSES["none"]
    first, second = register_response(define()), register_response(define())
    assert first is not second
    assert RESPONSES["none"] is second


def test_a_name_belongs_to_one_response():
    for name in ("diagonal", "constant"):
        with pytest.raises(ModelError, match=f"response '{name}' already"):
            register_response(type("Other", (Psi,), {"name": name}))
    with pytest.raises(ModelError, match="response 'none' already"):
        register_response(type("Other", (Psi,), {"name": "none"}))
    with pytest.raises(ModelError, match=r"response must be one of .*, not 'dense'"):
        make_response("dense", 3, 2)


def test_the_forms_of_a_network_are_registered():
    for name in ("diagonal", "bandwise", "full", "constant"):
        made = make_response(name, 3, 2, out_channels=4)
        assert isinstance(made, Response)
        assert made.name == name
        assert made.out_channels == (4 if name == "full" else 2)
