from itertools import combinations

import numpy as np
import pytest
import torch

from nlsf.train.solvers.graphlet_kernel import graphlets_of_3, graphlets_of_4
from train.solvers.shapes import PATH, STAR, TRIANGLE, graph, permuted, random_graph

FOUR = {
    "empty": [],
    "edge": [(0, 1)],
    "two apart": [(0, 1), (2, 3)],
    "two joined": [(0, 1), (1, 2)],
    "triangle": [(0, 1), (1, 2), (2, 0)],
    "star": [(0, 1), (0, 2), (0, 3)],
    "path": [(0, 1), (1, 2), (2, 3)],
    "ring": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "tail": [(0, 1), (1, 2), (2, 0), (2, 3)],
    "chord": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)],
    "all": list(combinations(range(4), 2)),
}


def test_by_hand():
    small = [PATH, TRIANGLE, STAR, graph(2, [(0, 1)]), graph(1, []), graph(4, [(0, 1)])]
    assert graphlets_of_3(small).tolist() == [
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 0, 3, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [2, 2, 0, 0],
    ]


def test_counted_one_by_one():
    graphs = [random_graph(9 + seed, seed, 0.4) for seed in range(4)]
    for data, found in zip(graphs, graphlets_of_3(graphs), strict=True):
        edges = {tuple(pair) for pair in data.edge_index.T.tolist()}
        expected = np.zeros(4)
        for nodes in combinations(range(data.num_nodes), 3):
            expected[sum(pair in edges for pair in combinations(nodes, 2))] += 1
        assert np.array_equal(found, expected)
        assert np.array_equal(graphlets_of_3([permuted(data, 1)])[0], found)


@pytest.mark.parametrize("number", range(11))
def test_every_graph_of_four_nodes_has_its_type(number):
    data = graph(4, list(FOUR.values())[number])
    for one in (data, permuted(data, 3)):
        found = graphlets_of_4(one, 5, np.random.default_rng(0))
        assert found.tolist() == [5.0 if i == number else 0.0 for i in range(11)]


def test_samples_come_near_the_shares():
    data = random_graph(9, 0, 0.4)
    edges = {tuple(pair) for pair in data.edge_index.T.tolist()}
    exact = np.zeros(7)
    for nodes in combinations(range(9), 4):
        exact[sum(pair in edges for pair in combinations(nodes, 2))] += 1
    found = graphlets_of_4(data, 4000, np.random.default_rng(0))
    sizes = [len(pairs) for pairs in FOUR.values()]
    shares = np.bincount(sizes, weights=found, minlength=7) / 4000
    assert shares == pytest.approx(exact / exact.sum(), abs=0.03)


def test_samples_are_those_of_the_seed():
    data = random_graph(12, 0)
    first, same, other = (graphlets_of_4(data, 50, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_graphs_below_four_nodes_have_none():
    assert not graphlets_of_4(TRIANGLE, 10, np.random.default_rng(0)).any()
    assert torch.tensor(graphlets_of_3([TRIANGLE])).sum() == 1
