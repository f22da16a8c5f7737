"""Translation at two speeds is a functional shift; the study notices maps that are not."""

import numpy as np
import pytest
import torch

from nlsf.data.generators import torus
from nlsf.errors import ConfigError
from nlsf.lab.translation import TranslationSettings, _gaussian, classical, functional, run
from nlsf.spectral import IntervalBands, Lens, laplacian, partial_eigh

SMALL = {"side": 15, "times": (0, 5)}


@pytest.mark.parametrize(
    "change",
    [{}, {"seed": 1, "deviation": 1.5}, {"cutoff": 2.0, "high_speed": -0.7}, {"side": 17}],
)
def test_the_claim_holds(change):
    finding = run(TranslationSettings(**{**SMALL, **change}))
    assert finding.holds
    assert finding.data["largest_entry"] < 0.999, "no renumbering of nodes"


def test_equal_speeds_are_a_translation_and_noticed():
    finding = run(TranslationSettings(**SMALL, high_speed=1.0))
    assert not finding.holds
    assert finding.data["to_nearest_translation"] < 1e-9


def halves(images, t, settings):
    """Unitary, but it moves nodes on the left and not on the right."""
    moved = images.copy()
    moved[..., :7] = np.roll(images[..., :7], int(t), axis=-2)
    return moved


def damped(images, t, settings):
    """Commutes with the Laplacian, but is not unitary."""
    return functional(images, t, settings) * 0.9


@pytest.mark.parametrize(
    ("broken", "key"), [(halves, "commutator"), (damped, "unitary_error"), (classical, "")]
)
def test_other_maps_are_noticed(broken, key):
    finding = run(TranslationSettings(**SMALL), broken)
    assert not finding.holds
    if key:
        assert finding.data[key] > 1e-3


def test_the_fourier_formula_agrees_with_projections():
    settings = TranslationSettings(**SMALL, low_speed=3.0, high_speed=1.0)
    picture = _gaussian(settings)
    spectrum = partial_eigh(laplacian(torus(15, 15)))
    lens = Lens.of(spectrum, IntervalBands([(0.0, settings.cutoff)]))

    def part(image, j):
        flat = torch.from_numpy(image.reshape(-1, 1).copy())
        return lens(flat).part(j).numpy().reshape(15, 15)

    expected = part(np.roll(picture, (6, 6), (0, 1)), 0) + part(np.roll(picture, (2, 2), (0, 1)), 1)
    assert np.allclose(functional(picture, 2.0, settings), expected, atol=1e-10)


@pytest.mark.parametrize("change", [{"side": 30}, {"times": (0,)}, {"deviation": 0.0}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        TranslationSettings(**change)
