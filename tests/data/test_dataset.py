import numpy as np
import pytest
import torch

from nlsf.data.dataset import undirected, undirected_weighted
from nlsf.errors import GraphError


def pairs(edge_index):
    return list(map(tuple, edge_index.T.tolist()))


def test_both_directions_once_without_self_loops():
    edges = undirected(np.array([2, 0, 0, 1, 1]), np.array([1, 1, 1, 0, 1]), 4)
    assert edges.dtype == torch.int64
    assert pairs(edges) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_it_is_the_set_of_ordered_pairs():
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, 30, (2, 400))
    expected = {(a, b) for a, b in zip(start, end, strict=True) if a != b}
    expected |= {(b, a) for a, b in expected}
    assert pairs(undirected(start, end, 30)) == sorted(expected)


def test_an_edge_may_be_there_any_number_of_times():
    edges = undirected(np.zeros(512, dtype=int), np.ones(512, dtype=int), 2)
    assert pairs(edges) == [(0, 1), (1, 0)]


def test_no_edges():
    none = np.empty(0, dtype=np.int64)
    assert undirected(none, none, 3).shape == (2, 0)
    assert [t.shape[-1] for t in undirected_weighted(none, none, none, 3)] == [0, 0]


def test_weights_follow_their_edges():
    start, end = np.array([3, 0, 1, 2]), np.array([0, 1, 0, 2])
    edges, weights = undirected_weighted(start, end, np.array([5.0, 2.0, 2.0, 9.0]), 4)
    assert dict(zip(pairs(edges), weights.tolist(), strict=True)) == {
        (0, 1): 2.0,
        (1, 0): 2.0,
        (0, 3): 5.0,
        (3, 0): 5.0,
    }


def test_weights_that_disagree_are_named():
    with pytest.raises(GraphError, match="between nodes 0 and 1 has the weights 2 and 3"):
        undirected_weighted(np.array([0, 1]), np.array([1, 0]), np.array([2.0, 3.0]), 2)
