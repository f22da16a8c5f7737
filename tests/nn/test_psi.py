"""Responses by name: one of your own has everything that those of the package have."""

import math

import pytest
import torch
from torch import nn

from nlsf.errors import ConfigError, ModelError
from nlsf.nn import (
    GraphClassifier,
    NodeNLSF,
    Psi,
    Response,
    Start,
    parameter_groups,
    register_response,
)
from nlsf.nn.layers.node import MixingNLSF
from nlsf.nn.models import GraphClassifierConfig, NodeClassifierConfig
from nlsf.nn.models.signal_classifier import SignalClassifierConfig
from nlsf.nn.responses.psi import RESPONSES, make_response
from nlsf.spectral import Lens, UniformBands
from nlsf.testing.graphs import ring
from nlsf.train.settings.toml import from_table
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
        name, form = "own maps", "matrices"

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
    x, lens = signal(6, 2), Lens.of(spectrum_of(ring(6)), layer.bands, complement=False)
    assert isinstance(layer.lin, nn.Identity)
    parts = torch.stack(list(lens(x).parts()))
    norms = parts.norm(dim=1)
    expected = (parts @ layer.response(norms, None)).sum(0)
    torch.testing.assert_close(layer(x, spectrum=lens), expected)


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
    with pytest.raises(ModelError, match="diagonal, matrices, full, not 'bandwise'"):
        register_response(type("Old", (Psi,), {"name": "old", "form": "bandwise"}))
    with pytest.raises(ModelError, match=r"response must be one of .*, not 'dense'"):
        make_response("dense", 3, 2)


def test_the_forms_of_a_network_are_registered():
    for name in ("diagonal", "bandwise", "full", "constant"):
        made = make_response(name, 3, 2, out_channels=4)
        assert isinstance(made, Response)
        assert made.name == name
        assert made.out_channels == (4 if name == "full" else 2)


LAM = torch.tensor([0.0, 0.1, 0.5, 0.9, 2.0, 7.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("all-pass", lambda lam: 1.0),
        ("heat", lambda lam: math.exp(-3 * lam)),
        ("ppr", lambda lam: 1 / (1 + 3 * lam)),
        ("high-pass", lambda lam: 3 * lam / (1 + 3 * lam)),
        ("walk", lambda lam: min(abs(1 - lam), 1) ** 3),
        ("random", lambda lam: 0.0),
    ],
)
def test_the_formulas(name, formula):
    expected = torch.tensor([formula(lam) for lam in LAM.tolist()], dtype=torch.float64)
    torch.testing.assert_close(Start(name, t=3.0, floor=0.0).gains(LAM), expected)
    assert Start(name).gains(LAM.reshape(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("name", ["heat", "ppr", "high-pass", "walk", "all-pass"])
def test_no_gain_is_below_the_floor_and_others_stay(name):
    free, held = (Start(name, 3.0, floor).gains(LAM) for floor in (0.0, 0.2))
    assert held.min() >= 0.2
    assert torch.equal(held, torch.where(free < 0.2, 0.2, free))
    assert (free < 0.2).any() or name in ("all-pass",)


def test_a_random_start_has_no_floor():
    assert not Start("random", floor=0.5).gains(LAM).any()


def test_gains_are_remembered_for_as_long_as_the_frequencies_stay():
    start, lam = Start("ppr", 3.0, 0.0), LAM.clone()
    with torch.inference_mode():
        start.gains(lam)
    first = start.gains(lam)
    assert not first.is_inference()
    assert start.gains(lam) is first
    assert not torch.equal(Start("heat", 3.0, 0.0).gains(lam), first)
    assert start.gains(lam.float()).dtype == torch.float32
    lam.mul_(2)
    torch.testing.assert_close(start.gains(lam), 1 / (1 + 6 * LAM))


def test_gains_under_the_transforms_of_torch_func():
    start, many = Start("ppr", 3.0, 0.0), torch.stack([LAM, 2 * LAM])
    torch.testing.assert_close(torch.func.vmap(start.gains)(many), start.gains(many))
    slope = torch.func.grad(lambda t: (t * start.gains(LAM)).sum())(LAM)
    torch.testing.assert_close(slope, start.gains(LAM))
    live = LAM.clone().requires_grad_()
    (slope,) = torch.autograd.grad(start.gains(live).sum(), live)
    torch.testing.assert_close(slope, -3 / (1 + 3 * LAM) ** 2)


def test_a_name_or_a_start_will_do():
    assert Start.of("ppr") == Start("ppr")
    assert Start.of(Start("heat", 2.0)) == Start("heat", 2.0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "low-pass"}, "all-pass, heat, ppr, high-pass, walk, random, not 'low-pass'"),
        ({"t": 0.0}, "positive, not 0.0"),
        ({"t": math.nan}, "positive, not nan"),
        ({"floor": -0.1}, "between 0 and 1, not -0.1"),
        ({"floor": 1.5}, "between 0 and 1, not 1.5"),
    ],
)
def test_other_starts_are_refused(options, says):
    with pytest.raises(ModelError, match=says):
        Start(**options)
