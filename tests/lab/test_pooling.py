"""Pooling separates what coefficients cannot, except at p = 2; the study notices if not."""

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.pooling import PoolingSettings, pool_identity, run
from nlsf.spectral import IndexBands, Lens, laplacian, partial_eigh
from nlsf.testing.graphs import path

QUICK = {"pairs": 3, "norms": (1.0, 2.0, 3.0)}


@pytest.mark.parametrize("seed", range(2))
def test_the_claim_holds(seed):
    finding = run(PoolingSettings(seed=seed, **QUICK))
    assert finding.holds
    assert finding.data["graph_level_gaps"][1.0].max() < 1e-9


def test_the_example_is_the_papers():
    example = run(PoolingSettings(**QUICK)).data["example"]
    assert example["first"] == pytest.approx((2 + 0) / 2)
    assert example["second"] == pytest.approx((2.5 + 1 + 0.5) / 3)
    assert example["second_eigenvalue"] == pytest.approx(2.0), "the paper says 1"


def test_the_gap_at_two_is_pythagoras():
    finding = run(PoolingSettings(**QUICK))
    assert finding.data["p2_error"] < 1e-12
    assert finding.data["p2_printed_error"] > 0.1
    assert finding.data["negative_error"] == pytest.approx(1.4), "|-0.7| - (-0.7)"
    assert finding.data["p2_with_relu"] > 1e-3


def only_coefficients(x, spectrum, bands, p):
    """Reads no more than a graph-level filter."""
    return float(Lens.of(spectrum, bands)(x).norms(p=p, normalize=True).sum())


def after_relu(x, spectrum, bands, p):
    """An activation before the pooling."""
    return pool_identity(torch.relu(x), spectrum, bands, p)


def with_size(x, spectrum, bands, p):
    """A norm that is not divided by the number of nodes."""
    return float(torch.linalg.vector_norm(x, ord=p))


@pytest.mark.parametrize("broken", [only_coefficients, after_relu, with_size])
def test_other_pooling_is_noticed(broken):
    assert not run(PoolingSettings(**QUICK), broken).holds


def test_the_identity_pools_the_signal_itself():
    x = torch.tensor([[3.0], [-4.0], [0.0]], dtype=torch.float64)
    spectrum = partial_eigh(laplacian(path(3)))
    for p in (1.0, 2.0, 3.0):
        expected = np.mean(np.abs([3.0, 4.0, 0.0]) ** p) ** (1 / p)
        assert pool_identity(x, spectrum, IndexBands(2), p) == pytest.approx(expected)


@pytest.mark.parametrize("change", [{"norms": (1.0, 3.0)}, {"norms": (0.5, 2.0)}, {"pairs": 0}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        PoolingSettings(**change)
