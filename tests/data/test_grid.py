"""The grid of an image's pixels."""

import pytest
import torch

from nlsf.data import load
from nlsf.data.grid import pixel_grid
from nlsf.errors import ConfigError


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 5), (3, 4), (8, 8)])
def test_a_grid_has_its_edges_in_both_directions(rows, columns):
    graph = pixel_grid(rows, columns)
    edges = set(map(tuple, graph.edge_index.T.tolist()))
    assert len(edges) == graph.num_edges == 2 * (rows * (columns - 1) + columns * (rows - 1))
    assert {(b, a) for a, b in edges} == edges
    for a, b in edges:
        (i, j), (k, m) = divmod(a, columns), divmod(b, columns)
        assert abs(i - k) + abs(j - m) == 1


def test_noise_gives_symmetric_weights_around_one():
    graph = pixel_grid(20, 20, noise=0.1, noise_seed=3)
    dense = torch.zeros(400, 400, dtype=torch.float64)
    dense[tuple(graph.edge_index)] = graph.edge_weight
    assert torch.equal(dense, dense.T)
    assert graph.edge_weight.mean() == pytest.approx(1, abs=0.02)
    assert graph.edge_weight.std() == pytest.approx(0.1, abs=0.01)
    assert torch.equal(graph.edge_index, pixel_grid(20, 20).edge_index)
    again = pixel_grid(20, 20, noise=0.1, noise_seed=3)
    assert torch.equal(graph.edge_weight, again.edge_weight)
    assert not torch.equal(graph.edge_weight, pixel_grid(20, 20, 0.1, 4).edge_weight)


def test_no_edge_weighs_less_than_nothing():
    assert pixel_grid(20, 20, noise=2.0).edge_weight.min() == 0


def test_the_digits_can_lie_on_a_noisy_grid():
    clean, noisy = load("digits-grid"), load("digits-grid", noise=0.1)
    assert clean.graphs[0].get("edge_weight") is None
    assert noisy.graphs[0].edge_weight.shape == (224,)
    assert torch.equal(clean.signals, noisy.signals)


@pytest.mark.parametrize("noise", [-1, float("nan"), float("inf"), "much"])
def test_noise_that_makes_no_sense_is_refused(noise):
    with pytest.raises(ConfigError, match="noise must be"):
        pixel_grid(2, 2, noise)


@pytest.mark.parametrize("noise", [0.0, 0.1], ids=["clean", "noisy"])
@pytest.mark.parametrize("seed", [-1, 1.5, "abc", None, True])
def test_a_seed_of_noise_that_makes_no_sense_is_refused(noise, seed):
    with pytest.raises(ConfigError, match="noise_seed must be"):
        load("digits-grid", noise=noise, noise_seed=seed)
