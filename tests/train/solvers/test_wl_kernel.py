from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nlsf.train.solvers.union import union
from nlsf.train.solvers.wl_kernel import first_labels, refined, wl_kernels
from train.solvers.shapes import PATH, STAR, TRIANGLE, graph, permuted, random_graph

GRAPHS = [PATH, TRIANGLE, STAR]


def test_by_hand():
    # Degrees. Path: 1 2 1. Triangle: 2 2 2. Star: 3 1 1 1.
    zero = np.array([[5, 3, 6], [3, 9, 0], [6, 0, 10]])
    # Once refined. Path: (1; 2) twice, (2; 1 1). Triangle: (2; 2 2). Star: (3; 1 1 1), (1; 3).
    one = zero + np.diag([5, 9, 10])
    # From then on no two graphs share a label, and the parts of each graph stay as they are.
    two = one + np.diag([5, 9, 10])
    for found, expected in zip(wl_kernels(GRAPHS, 2), (zero, one, two), strict=True):
        assert np.array_equal(found, expected)


def dictionary_kernels(graphs, iterations):
    """The same in plain Python: labels are nested tuples."""
    labels = [[tuple(row) for row in g.x.tolist()] for g in graphs]
    kernel = np.zeros((len(graphs), len(graphs)))
    for i in range(iterations + 1):
        if i:
            labels = [
                [
                    (own[v], tuple(sorted(own[w] for u, w in g.edge_index.T.tolist() if u == v)))
                    for v in range(g.num_nodes)
                ]
                for g, own in zip(graphs, labels, strict=True)
            ]
        counts = [Counter(own) for own in labels]
        kernel = kernel + [[sum(a[k] * b[k] for k in a) for b in counts] for a in counts]
        yield kernel


def test_against_nested_tuples():
    graphs = [random_graph(6 + seed, seed) for seed in range(5)]
    pairs = zip(wl_kernels(graphs, 3), dictionary_kernels(graphs, 3), strict=True)
    assert all(np.array_equal(found, expected) for found, expected in pairs)


def test_numbers_of_nodes_do_not_matter():
    graphs = [random_graph(8, seed) for seed in range(4)]
    others = [permuted(g, seed) for seed, g in enumerate(graphs)]
    assert any(not torch.equal(a.x, b.x) for a, b in zip(graphs, others, strict=True))
    for found, expected in zip(wl_kernels(others, 3), wl_kernels(graphs, 3), strict=True):
        assert np.array_equal(found, expected)


def test_what_it_cannot_tell_apart():
    six = graph(6, [(i, (i + 1) % 6) for i in range(6)])
    twice = graph(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    *_, kernel = wl_kernels([six, twice], 4)
    assert len(set(kernel.ravel())) == 1


def labels_of(x):
    data = Data(x=x, edge_index=PATH.edge_index, num_nodes=3)
    return first_labels([data], union([data])).tolist()


def test_first_labels():
    one_hot = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    a, b, c = labels_of(one_hot)
    assert a == b != c
    measured = torch.tensor([[0.5], [0.25], [2.0]])
    assert labels_of(torch.cat([one_hot, measured], 1)) == [a, b, c]
    assert labels_of(measured) == [1, 2, 1], "degrees"
    assert labels_of(torch.ones(3, 1)) == [1, 2, 1], "a constant says nothing"
    assert labels_of(None) == [1, 2, 1]


@pytest.mark.parametrize("x", [None, torch.eye(3)[:, :2]])
def test_isolated_nodes_keep_a_label_of_their_own(x):
    alone = graph(3, [(0, 1)], x)
    nodes = union([alone])
    found = refined(first_labels([alone], nodes), nodes)
    assert found[2] not in found[:2]
