"""Coefficients of random graphs tend to those of the space; wrong operators are noticed."""

import numpy as np
import pytest

from nlsf.errors import ConfigError
from nlsf.lab.spaces import circle, find_space
from nlsf.lab.transfer import TransferSettings, coefficients, limit_of_values, run

QUICK = {"spaces": ("circle",), "nodes": (100, 300), "graphs": 8, "steps": 60, "draws": 3}


@pytest.mark.parametrize("seed", [0, 1])
def test_the_claim_holds(seed):
    assert run(TransferSettings(**QUICK, seed=seed)).holds


def test_values_of_the_combinatorial_laplacian_are_noticed():
    few = {**QUICK, "nodes": (60, 120), "graphs": 4, "steps": 20}
    finding = run(TransferSettings(**few), (None, None))
    assert not finding.holds
    assert finding.data["cases"][0]["errors"]["value, space"].min() > 0.5


def test_uneven_points_lead_to_another_limit():
    space, random = circle(), np.random.default_rng(0)
    amounts = random.standard_normal((7, 32))
    points = space.sample(1200, 0.6, random)
    found = coefficients(space, points, space.functions(points) @ amounts, (None, "sym"))["value"]
    limit, truth = limit_of_values(space, 0.6, amounts), space.norms(amounts)
    size = np.linalg.norm(truth)
    assert np.linalg.norm(found - limit) / size < 0.1
    assert np.linalg.norm(found - truth) / size > 0.2


def test_for_even_points_the_limit_is_the_space():
    amounts = np.random.default_rng(0).standard_normal((7, 4))
    assert np.allclose(limit_of_values(circle(), 0.0, amounts), circle().norms(amounts))


@pytest.mark.parametrize("radius", [0.15, 0.3])
def test_smaller_balls_do_not_help(radius):
    space, amounts = circle(radius), np.random.default_rng(0).standard_normal((7, 32))
    gap = limit_of_values(space, 0.6, amounts) - space.norms(amounts)
    assert np.linalg.norm(gap) / np.linalg.norm(amounts) > 0.2


@pytest.mark.parametrize("name", ["torus", "sphere"])
def test_large_even_graphs_agree_with_the_space(name):
    space, random = find_space(name), np.random.default_rng(1)
    amounts = random.standard_normal((sum(space.dimensions), 16))
    points = space.sample(1200, 0.0, random)
    found = coefficients(space, points, space.functions(points) @ amounts, (None, "sym"))
    for kind in ("index", "value"):
        gap = found[kind] - space.norms(amounts)
        assert np.linalg.norm(gap) / np.linalg.norm(amounts) < 0.12


@pytest.mark.parametrize(
    "change", [{"nodes": (200, 100)}, {"uneven": 1.2}, {"draws": 0}, {"spaces": ("spher",)}]
)
def test_wrong_settings_are_named(change):
    key = next(iter(change))
    with pytest.raises(ConfigError, match="sphere" if key == "spaces" else key):
        TransferSettings(**change)
