"""Counted operations agree with formulas; costlier filters are noticed."""

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.complexity import (
    ComplexitySettings,
    _path_spectrum,
    count_diagonal,
    count_full,
    run,
)
from nlsf.spectral import laplacian
from nlsf.testing.graphs import path

QUICK = {"nodes": (100, 200, 400), "eigenspaces": (4, 8, 16), "channels": (2, 4, 8)}


@pytest.mark.parametrize("change", [{}, {"nodes": (50, 70)}, {"channels": (1, 3, 9)}])
def test_the_claim_holds(change):
    assert run(ComplexitySettings(**{**QUICK, **change})).holds


@pytest.mark.parametrize(("n", "j", "d"), [(100, 4, 2), (77, 9, 5)])
def test_the_counts_are_those_of_the_shapes(n, j, d):
    transform, network = count_diagonal(n, j, d)
    assert transform == 2 * (2 * n * j * d), "V^T X and V (...), two operations an entry"
    assert network == 2 * 2 * ((j + 1) * d) ** 2, "two layers"
    _, network = count_full(n, j, d)
    size = (j + 1) * d
    assert network == 2 * 8 * (size + size**2)


def with_projections(n, j, d):
    """Multiplies by J + 1 dense projections, as the formulas are written."""
    transform, network = count_diagonal(n, j, d)
    return transform + 2 * (j + 1) * n * n * d, network


def with_nodes_in_the_network(n, j, d):
    transform, network = count_diagonal(n, j, d)
    return transform, network * n


@pytest.mark.parametrize("costly", [with_projections, with_nodes_in_the_network, count_full])
def test_a_costlier_filter_is_noticed(costly):
    assert not run(ComplexitySettings(**QUICK), costly).holds


def test_the_spectrum_of_a_path_is_right():
    spectrum = _path_spectrum(30, 5)
    L = laplacian(path(30)).to_dense().float()
    assert torch.allclose(
        L @ spectrum.vectors, spectrum.vectors * spectrum.values.float(), atol=1e-5
    )
    assert spectrum.far == pytest.approx(np.linalg.eigvalsh(L)[-1], rel=1e-5)


@pytest.mark.parametrize("change", [{"nodes": (5, 5)}, {"channels": (0, 2)}, {"nodes": (10, 20)}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        ComplexitySettings(**change)
