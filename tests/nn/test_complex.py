"""Complex spectra, those of a magnetic Laplacian: what filters them, and what cannot."""

import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import GraphNLSF, NLSFStack, NodeClassifier, NodeNLSF, PoolingNLSF
from nlsf.nn.layers.node import MixingNLSF
from nlsf.spectral import Lens, UniformBands, magnetic_laplacian, partial_eigh
from nlsf.testing import assert_shift_equivariant
from nlsf.testing.graphs import weighted
from nn.layers import randomised, signal, spectrum_of

BANDS = UniformBands(4)
ONE_WAY = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 5], [1, 2, 3, 4, 0, 3, 5, 6]])
MAGNETIC = partial_eigh(magnetic_laplacian(ONE_WAY, q=0.2))
N = MAGNETIC.num_nodes

LAYERS = {
    "as wide": lambda: NodeNLSF(2, 2, BANDS),
    "mapped": lambda: NodeNLSF(2, 3, BANDS, start="ppr"),
    "bandwise": lambda: NodeNLSF(2, 3, BANDS, response="bandwise"),
    "full": lambda: NodeNLSF(2, 3, BANDS, response="full"),
    "mixing": lambda: MixingNLSF(2, 3, BANDS),
    "mixing, few channels": lambda: MixingNLSF(1, 8, BANDS),
    "stack": lambda: NLSFStack([NodeNLSF(2, 3, BANDS), NodeNLSF(3, 2, BANDS)]),
}


def layer_of(name):
    layer = randomised(LAYERS[name]())
    return layer, 1 if "few" in name else 2


@pytest.mark.parametrize("name", LAYERS)
def test_filters_commute_with_the_shifts_of_a_magnetic_laplacian(name):
    layer, channels = layer_of(name)
    assert MAGNETIC.vectors.imag.abs().max() > 0.1
    assert_shift_equivariant(
        lambda x: layer(x, spectrum=MAGNETIC), Lens.of(MAGNETIC, BANDS), signal(N, channels)
    )


@pytest.mark.parametrize("name", LAYERS)
def test_without_a_charge_they_are_the_filters_of_the_laplacian(name):
    layer, channels = layer_of(name)
    graph = weighted(8)
    x = signal(8, channels)
    complex_ = partial_eigh(magnetic_laplacian(graph, normalization="sym", q=0.0))
    y = layer(x, spectrum=complex_)
    assert y.is_complex()
    torch.testing.assert_close(y.real, layer(x, spectrum=spectrum_of(graph)))
    assert y.imag.abs().max() < 1e-9


@pytest.mark.parametrize("name", LAYERS)
def test_every_parameter_has_a_gradient(name):
    layer, channels = layer_of(name)
    y = layer(signal(N, channels), spectrum=MAGNETIC)
    y.abs().square().sum().backward()
    assert all(bool((p.grad != 0).any()) for p in layer.parameters())


@pytest.mark.parametrize(
    "layer",
    [
        PoolingNLSF(2, 3, bands=BANDS),
        PoolingNLSF(2, 3, bands=BANDS, activation=None),
        NodeClassifier(
            in_channels=2, out_channels=3, place="hidden", branches="value", value_bands=BANDS
        ),
    ],
    ids=["pooling", "pooling without activation", "classifier"],
)
def test_what_a_real_network_would_read_is_refused(layer):
    with pytest.raises(ModelError, match="The filtered signal is complex"):
        layer.double()(signal(N, 2), spectrum=MAGNETIC)


def test_norms_are_real():
    y = GraphNLSF(2, 3, BANDS).double()(signal(N, 2), spectrum=MAGNETIC)
    assert y.shape == (1, 3)
    assert not y.is_complex()
