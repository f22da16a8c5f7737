import dataclasses
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.dataset import Lesson
from nlsf.errors import ConfigError
from nlsf.peers.kernels import (
    KernelConfig,
    check_classes,
    first_labels,
    graphlets_of_3,
    graphlets_of_4,
    normalised,
    refined,
    svm_outputs,
    tuned_svm,
    union,
    wl_kernels,
)
from peers.shapes import PATH, STAR, TRIANGLE, graph, permuted, random_graph
from train.small import graph_data, regression_data

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


def test_graphlet_kernel_by_hand():
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


def line(*points):
    """A linear kernel of numbers."""
    x = np.array(points, dtype=np.float64)
    return np.outer(x, x)


def test_cosines():
    found = normalised(np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 0.0]]))
    assert found == pytest.approx(np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 0]]))


def test_two_classes_are_parted_in_the_middle():
    # The widest margin between -1 and 1 is f(x) = x.
    kernel = line(-1, 1, 3, -0.5)
    out = svm_outputs(kernel, torch.tensor([0, 1]), torch.tensor([0, 1]), 100.0, 2)
    assert out[:, 1].numpy() == pytest.approx(np.array([-1, 1, 3, -0.5]), abs=1e-6)
    assert torch.equal(out[:, 0], -out[:, 1])


def test_a_class_that_was_not_seen_is_never_predicted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    y = torch.arange(30) % 3
    names = torch.tensor([0, 2, 4])[y]
    x[np.arange(30), y.numpy()] += 4
    out = svm_outputs(x @ x.T, torch.arange(24), names[:24], 1.0, 5)
    assert out.shape == (30, 5)
    assert torch.equal(out.argmax(-1)[24:], names[24:])
    assert (out[:, [1, 3]] < out[:, [0, 2, 4]].min(1, keepdim=True).values).all()


def test_one_class_alone():
    out = svm_outputs(line(1, 2, 3), torch.tensor([0, 1]), torch.tensor([1, 1]), 1.0, 2)
    assert out.argmax(-1).tolist() == [1, 1, 1]


def test_validation_examples_choose_kernel_and_cost():
    # The first kernel ignores the examples; only the second one tells them apart.
    x = np.array([-1, 1, -2, 2, -3, 3, -1.5, 1.5])
    useless, useful = np.ones((8, 8)), np.outer(x, x)
    y = torch.tensor([0, 1, 0, 1])
    train, val = torch.arange(4), torch.arange(4, 8)
    costs = (10.0, 1e-3)

    def choose(val_y):
        return tuned_svm(
            iter([useless, useful]), Lesson(train, y, val, val_y), costs, 2, "accuracy"
        )

    right = choose(torch.tensor([0, 1, 0, 1]))
    assert right.argmax(-1).tolist() == [0, 1] * 4
    # Of equally good machines the first kernel and the smallest C is kept.
    assert torch.equal(right, svm_outputs(useful, train, y, 1e-3, 2))
    wrong = choose(torch.tensor([1, 0, 1, 0]))
    assert torch.equal(wrong, svm_outputs(useless, train, y, 1e-3, 2))


@pytest.mark.parametrize("costs", [(), (0.0,), (1.0, -1.0), (float("inf"),)])
def test_costs_are_positive(costs):
    with pytest.raises(ConfigError, match=r"model\.costs must be numbers above 0"):
        KernelConfig(1, 2, costs)


def test_what_cannot_be_separated_is_refused():
    with pytest.raises(ConfigError, match="'wl' separates classes, but numbers is a regression"):
        check_classes(regression_data(), "wl")
    many = dataclasses.replace(graph_data(), y=torch.zeros(20_001, dtype=torch.int64))
    with pytest.raises(ConfigError, match=r"shapes has 20,001, more than 20,000"):
        check_classes(many, "gk")
