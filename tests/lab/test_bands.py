"""Edges of the families of bands, and the energy of features in them."""

import numpy as np
import pytest

from nlsf.data import load
from nlsf.errors import ConfigError
from nlsf.lab.bands import BandSettings, run
from nlsf.spectral import AffineGeometricBands, DyadicBands

QUICK = {"data": ("digits-grid", "digits-graphs"), "graphs": 3}


@pytest.mark.parametrize(("S", "rate"), [(4, 0.5), (3, 0.4), (7, 0.7), (2, 0.5)])
def test_the_claim_holds(S, rate):
    finding = run(BandSettings(S=S, rate=rate, **QUICK))
    assert finding.holds
    for measured in finding.data["sets"].values():
        for shares in (*measured["energy"].values(), *measured["eigenvalues"].values()):
            assert shares.sum() == pytest.approx(1.0)


def test_the_edges_are_those_of_the_papers_figure():
    edges = run(BandSettings(**QUICK)).data["edges"]
    assert edges["dyadic"].tolist() == [0, 1 / 8, 1 / 4, 1 / 2, 1]
    assert edges["uniform"].tolist() == [0, 1 / 4, 1 / 2, 3 / 4, 1]


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7])
def test_the_first_dyadic_band_is_wide_when_the_rate_is_large(rate):
    first, second = np.diff(run(BandSettings(rate=rate, **QUICK)).data["edges"]["dyadic"])[:2]
    assert first / second == pytest.approx(rate / (1 - rate))


@pytest.mark.parametrize(
    "broken",
    [
        lambda r, S: DyadicBands(1 / r, S),
        lambda r, S: AffineGeometricBands(r=r**2, S=S),
        lambda r, S: AffineGeometricBands(r=r + 0.01, S=S),
    ],
    ids=["dyadic", "wrong rate", "no limit"],
)
def test_edges_that_do_not_become_uniform_are_noticed(broken):
    assert not run(BandSettings(**QUICK), broken).holds


def test_energy_of_the_grid_agrees_with_the_known_kernel():
    # The Laplacian N of a grid differs from L, but its kernel is known: the roots of the degrees.
    dataset = load("digits-grid")
    shares = run(BandSettings(data=("digits-grid",), S=2, rate=1e-6)).data["sets"]["digits-grid"]
    degree = np.bincount(dataset.graphs[0].edge_index[0].numpy(), minlength=64)
    kernel = np.sqrt(degree / degree.sum())
    x = dataset.signals[:256, :, 0].double().numpy()
    expected = ((x @ kernel) ** 2).sum() / (x**2).sum()
    assert shares["energy"]["dyadic"][0] == pytest.approx(expected)


@pytest.mark.data
def test_real_data_from_a_root(root):
    finding = run(BandSettings(data=("MUTAG",), root=str(root), graphs=20))
    assert finding.holds


@pytest.mark.parametrize("change", [{"S": 1}, {"data": ()}, {"graphs": 0}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        BandSettings(**change)
