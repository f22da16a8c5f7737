"""Activations break the functional symmetry; the study notices when a filter does too."""

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.activations import ActivationSettings, nonlinear_filter, run


@pytest.mark.parametrize("seed", range(2))
def test_the_claim_holds(seed):
    finding = run(ActivationSettings(seed=seed, samples=5))
    assert finding.holds
    assert finding.data["sampled"]["filter"].max() < 1e-9
    assert finding.data["sampled"]["ReLU"].min() > 0.05


@pytest.mark.parametrize(("n", "first", "second", "distance"), [(60, 6, 8, 2), (81, 4, 40, 11)])
def test_it_holds_for_other_circles_and_waves(n, first, second, distance):
    assert run(ActivationSettings(n, first, second, distance, samples=3)).holds


def test_a_filter_with_an_activation_after_it_is_noticed():
    def broken(spectrum, seed):
        f = nonlinear_filter(spectrum, seed)
        return lambda x: torch.relu(f(x).real)

    finding = run(ActivationSettings(samples=3), broken)
    assert not finding.holds
    assert finding.data["sampled"]["filter"].max() > 0.01


def test_a_filter_with_an_activation_before_it_is_noticed():
    def broken(spectrum, seed):
        f = nonlinear_filter(spectrum, seed)
        return lambda x: f(torch.tanh(x))

    assert not run(ActivationSettings(samples=3), broken).holds


def test_the_errors_agree_with_parseval():
    settings = ActivationSettings(samples=1)
    n = np.arange(100)
    wave = np.exp(1j * np.pi * 10 * n / 100) + np.exp(1j * np.pi * 20 * n / 100)
    relu = np.fft.fft(np.maximum(wave.real, 0))
    translation = np.exp(-2j * np.pi * n * 5 / 100)
    assert translation[5] == pytest.approx(-1j), "as the paper says"
    assert translation[10] == pytest.approx(-1), "as the paper says"

    def error(modes):
        # S and D agree on the modes that S moves; all other coefficients differ by 1 - turn.
        gap = np.abs(1 - translation) * ~np.isin(n, modes)
        return np.linalg.norm(gap * np.abs(relu)) / np.linalg.norm(relu)

    errors = run(settings).data["errors"]
    assert errors["printed, ReLU"] == pytest.approx(error([5, 10]))
    assert errors["real, ReLU"] == pytest.approx(error([5, 10, 90, 95]))
    # Half of the wave turns by -1j or -1, its mirror image should and does not.
    assert errors["printed, real part alone"] == pytest.approx(np.sqrt((2 + 4) / 4))


def test_the_central_difference_has_fewer_eigenspaces_than_frequencies():
    # sin(2 pi k / 100) is the same for k and 50 - k: 49 pairs, and two alone.
    assert run(ActivationSettings(samples=1)).data["eigenspaces"] == 51


@pytest.mark.parametrize("change", [{"first": 5}, {"second": 100}, {"samples": 0}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        ActivationSettings(**change)
