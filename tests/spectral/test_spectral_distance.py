"""The pseudo-metric on graph-signals has the properties of one."""

import pytest
import torch

from nlsf.errors import SignalError
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    Lens,
    laplacian,
    partial_eigh,
    sample_shift,
    spectral_distance,
)
from nlsf.testing import tiny_graphs

BANDS = DyadicBands(S=3)


def lens(name, bands=BANDS):
    return Lens.of(partial_eigh(laplacian(tiny_graphs()[name])), bands)


def signals(n, seed=0, d=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_pseudo_metric_on_graph_signals(seed):
    names = list(tiny_graphs())
    points = []
    for k in range(3):
        P = lens(names[(seed + k) % len(names)])
        points.append(P(signals(P.num_nodes, seed + k)))

    def distance(i, j):
        return float(spectral_distance(points[i], points[j]))

    for i in range(3):
        assert distance(i, i) == 0
        for j in range(3):
            assert distance(i, j) == pytest.approx(distance(j, i))
            assert distance(i, j) >= 0
    assert distance(0, 2) <= distance(0, 1) + distance(1, 2) + 1e-12


@pytest.mark.parametrize("name", list(tiny_graphs()))
def test_it_ignores_functional_shifts_and_is_at_most_the_euclidean_distance(name):
    P = lens(name)
    x, y = signals(P.num_nodes), signals(P.num_nodes, 1)
    assert float(spectral_distance(P(x), P(sample_shift(P)(x)))) < 1e-9
    assert float(spectral_distance(P(x), P(y))) <= float(torch.linalg.vector_norm(x - y))
    assert float(spectral_distance(P(x), P(2 * x))) == pytest.approx(
        float(torch.linalg.vector_norm(x))
    ), "on a ray both are equal"


def test_many_signals_at_once_and_sizes_that_differ():
    P, Q = lens("torus"), lens("path")
    x = torch.stack([signals(20, k) for k in range(4)])
    found = spectral_distance(P(x), Q(signals(7)), normalize=True)
    assert found.shape == (4,)
    assert float(found[2]) == pytest.approx(
        float(spectral_distance(P(x[2]), Q(signals(7)), normalize=True))
    )
    assert torch.equal(spectral_distance(P(x), P(x)), torch.zeros(4, dtype=torch.float64))


def test_different_bands_or_channels_are_named():
    P, Q = lens("torus"), lens("torus", IndexBands(2))
    with pytest.raises(SignalError, match="4 x 2 coefficients and the other 3 x 2"):
        spectral_distance(P(signals(20)), Q(signals(20)))
    with pytest.raises(SignalError, match="4 x 2 coefficients and the other 4 x 3"):
        spectral_distance(P(signals(20)), P(signals(20, d=3)))
