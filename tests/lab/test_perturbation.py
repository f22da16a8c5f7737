"""Shifts of bands stay near a translation on noisy graphs; a wrong fit is noticed."""

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.perturbation import (
    PerturbationSettings,
    nearest_shift,
    noisy_torus,
    run,
    translation,
)
from nlsf.spectral import FunctionalShift, UniformBands, laplacian, partial_eigh

QUICK = {"side": 11, "noise": (0.0, 0.001, 0.1), "draws": 1, "images": 4}


@pytest.mark.parametrize("seed", range(2))
def test_the_claim_holds(seed):
    assert run(PerturbationSettings(**QUICK, seed=seed)).holds


@pytest.mark.parametrize(("down", "right"), [(1, 0), (4, 4)])
def test_it_holds_for_other_translations(down, right):
    assert run(PerturbationSettings(**QUICK, down=down, right=right)).holds


def test_a_shift_that_was_not_fitted_is_noticed():
    def identity(target, vectors, band):
        return FunctionalShift(vectors[:, :0], (), vectors[:, :0])

    assert not run(PerturbationSettings(**QUICK), identity).holds


def test_a_fit_to_the_opposite_translation_is_noticed():
    finding = run(PerturbationSettings(**QUICK), lambda T, V, b: nearest_shift(T.mT, V, b))
    assert not finding.holds


def test_the_error_agrees_with_nuclear_norms():
    settings = PerturbationSettings(**QUICK)
    shift = laplacian(noisy_torus(11, 0.1, 0))
    spectrum, bands, T = partial_eigh(shift), UniformBands(8), translation(settings)
    band = bands.assign(spectrum)
    U = nearest_shift(T, spectrum.vectors, band).matrix()
    nuclear = 0.0
    for j in range(8):
        P = spectrum.vectors[:, band == j]
        nuclear += np.linalg.norm((P.mT @ T @ P).numpy(), "nuc")
        assert torch.allclose(U @ P @ P.mT, P @ P.mT @ U, atol=1e-9), "it commutes with the bands"
    assert float((U - T).square().sum()) == pytest.approx(2 * 121 - 2 * nuclear)
    found = run(settings).data["errors"]["uniform, 8 bands"][2, 0]
    assert found**2 == pytest.approx(2 - 2 * nuclear / 121)


def test_with_simple_eigenvalues_only_signs_are_left():
    settings = PerturbationSettings(**QUICK)
    V = np.linalg.eigh(laplacian(noisy_torus(11, 0.1, 0)).to_dense().numpy())[1]
    overlap = np.abs(np.diag(V.T @ translation(settings).numpy() @ V)).sum()
    found = run(settings).data["errors"]["eigenspaces (Def. 1)"][2, 0]
    assert found**2 == pytest.approx(2 - 2 * overlap / 121)


def test_the_translation_moves_as_numpy_rolls():
    T = translation(PerturbationSettings(side=9, down=2, right=3))
    x = np.random.default_rng(0).random((9, 9))
    assert np.allclose((T.numpy() @ x.ravel()).reshape(9, 9), np.roll(x, (2, 3), (0, 1)))


def test_both_directions_of_an_edge_have_one_weight():
    graph = noisy_torus(9, 0.3, 1)
    L = laplacian(graph).to_dense()
    assert torch.equal(L, L.mT)
    assert len(graph.edge_weight.unique()) == 2 * 81


@pytest.mark.parametrize(
    "change", [{"side": 10}, {"noise": (0.1, 0.2)}, {"level": 0.3}, {"digit": 10}, {"draws": 0}]
)
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        PerturbationSettings(**change)
