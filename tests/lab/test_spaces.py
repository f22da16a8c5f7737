"""Spaces: orthonormal eigenfunctions, right eigenvalues, points of the right density."""

import numpy as np
import pytest

from nlsf.errors import ConfigError
from nlsf.lab.spaces import SPACES, find_space


@pytest.mark.parametrize("name", SPACES)
def test_functions_are_orthonormal(name):
    space = find_space(name)
    F = space.functions(space.sample(40_000, 0.0, np.random.default_rng(0)))
    assert F.shape[1] == sum(space.dimensions)
    assert np.abs(F.T @ F / len(F) - np.eye(F.shape[1])).max() < 0.04


@pytest.mark.parametrize("name", SPACES)
def test_eigenvalues_agree_with_the_integral(name):
    # At each of a few nodes: the mean over its neighbours of f(x) - f(y) is lambda f(x).
    space = find_space(name)
    points = space.sample(4000, 0.0, np.random.default_rng(1))
    F = space.functions(points)
    start, end = space.graph(points).edge_index.numpy()
    degree = np.bincount(start, minlength=len(points))
    assert degree.mean() / len(points) == pytest.approx(space.volume, rel=0.02)
    mean = np.stack([np.bincount(start, f[end], len(points)) for f in F.T], axis=1)
    applied = F - mean / degree[:, None]
    found = (applied * F).mean(0) / (F**2).mean(0)
    expected = np.repeat(space.eigenvalues[:-1], space.dimensions)
    assert np.abs(found - expected).max() < 0.02
    assert list(space.eigenvalues) == sorted(space.eigenvalues)


@pytest.mark.parametrize("name", SPACES)
def test_points_have_the_density(name):
    space = find_space(name)
    points = space.sample(40_000, 0.6, np.random.default_rng(2))
    height = points[:, 2] if name == "sphere" else np.cos(points[:, 0])
    # The mean of t under 1 + s t is s times the mean of t^2: 1/2 for a cosine, 1/3 on a sphere.
    assert height.mean() == pytest.approx(0.6 * (1 / 3 if name == "sphere" else 1 / 2), abs=0.01)


def test_norms_are_those_of_eigenspaces():
    norms = find_space("circle").norms(np.array([[2.0], [3.0], [4.0], [0], [1], [0], [0]]))
    assert norms[:, 0].tolist() == [2, 5, 1, 0]


def test_an_unknown_space_is_named():
    with pytest.raises(ConfigError, match="circle"):
        find_space("circel")
