from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nlsf.data import embedded
from nlsf.data.protocols import draw
from nlsf.errors import ConfigError
from nlsf.spectral import adjacency_matrix

SMALL = {
    "digits": {"neighbors": 3},
    "digits_grid": {},
    "digits_graphs": {},
    "csbm": {"num_nodes": 200},
    "geometric": {"num_nodes": 200},
    "torus": {"rows": 8, "columns": 9},
}
REGRESSIONS = ("geometric", "torus")


def load(name, **options):
    metric = "rmse" if name in REGRESSIONS else "accuracy"
    return getattr(embedded, name)(SimpleNamespace(name=name, metric=metric), [], **options)


@pytest.mark.parametrize("name", SMALL)
def test_what_every_set_promises(name):
    dataset, again = load(name, **SMALL[name]), load(name, **SMALL[name])
    assert dataset.name == name
    assert dataset.is_regression == (dataset.metric == "rmse") == (name in REGRESSIONS)
    assert dataset.labelled.numel() == dataset.num_examples
    assert dataset.num_features > 0
    if not dataset.is_regression:
        assert set(dataset.y.unique().tolist()) == set(range(dataset.num_outputs))
    for graph, twin in zip(dataset.graphs[:200], again.graphs, strict=False):
        A = adjacency_matrix(graph)
        assert abs(A - A.T).nnz == 0
        assert not A.diagonal().any()
        assert (A.data == 1).all(), "every edge once"
        assert set(graph.keys()) <= {"x", "edge_index", "num_nodes"}, "no labels, no places"
        assert graph.edge_index.equal(twin.edge_index)
        if graph.x is not None:
            assert graph.x.dtype == torch.float32
            assert graph.x.shape == (graph.num_nodes, dataset.num_features)
            assert graph.x.equal(twin.x)
    assert again.y.equal(dataset.y)
    assert draw(dataset, "60-20-20", 0).train.numel() == dataset.num_examples * 60 // 100


def test_digits_are_nodes():
    dataset = load("digits")
    assert (dataset.level, dataset.num_examples, dataset.num_features) == ("node", 1797, 64)
    assert dataset.classes == tuple("0123456789")
    assert load("digits", neighbors=4).graphs[0].num_edges < dataset.graphs[0].num_edges


def test_digits_are_signals():
    dataset = load("digits_grid")
    assert dataset.level == "signal"
    assert dataset.signals.shape == (1797, 64, 1)
    assert dataset.graphs[0].num_edges == 2 * 2 * 7 * 8
    degree = torch.bincount(dataset.graphs[0].edge_index[0]).reshape(8, 8)
    assert (degree[1:-1, 1:-1] == 4).all()
    assert degree[0, 0] == degree[7, 7] == 2
    assert dataset.signals.squeeze(-1).equal(load("digits").graphs[0].x)


def test_digits_are_graphs():
    dataset = load("digits_graphs")
    assert (dataset.level, len(dataset.graphs), dataset.num_features) == ("graph", 1797, 3)
    assert min(graph.num_nodes for graph in dataset.graphs) >= 1
    images = load("digits_grid").signals.reshape(-1, 8, 8)
    for image, graph in zip(images[:50], dataset.graphs, strict=False):
        grey, place = graph.x[:, 0], (graph.x[:, 1:] * 7).round().long()
        assert (image > 0.25).sum() == graph.num_nodes
        assert image[place[:, 0], place[:, 1]].equal(grey)
        apart = (place[:, None] - place[None, :]).abs().amax(-1)
        assert adjacency_matrix(graph).toarray().tolist() == (apart == 1).double().tolist()


def test_csbm_options_reach_the_generator():
    dataset = load("csbm", num_nodes=600, num_classes=4, num_features=5, degree=6.0, homophily=0.1)
    assert (dataset.num_outputs, dataset.num_features) == (4, 5)
    start, end = dataset.graphs[0].edge_index
    assert (dataset.y[start] == dataset.y[end]).double().mean() == pytest.approx(0.1, abs=0.04)
    assert not load("csbm", seed=1).graphs[0].x.equal(load("csbm").graphs[0].x)


def test_geometric_targets_are_smooth_and_noisy():
    clean, noisy = (load("geometric", num_nodes=3000, noise=noise) for noise in (0.0, 0.5))
    start, end = clean.graphs[0].edge_index
    assert clean.y.std() == pytest.approx(1, abs=0.5)
    step = (clean.y[start] - clean.y[end]).square().mean()
    assert step < 0.1 * clean.y.var(), "neighbours have near values"
    assert (noisy.y - clean.y).std() == pytest.approx(0.5, abs=0.05)
    assert (noisy.graphs[0].x - clean.graphs[0].x).std() == pytest.approx(0.5, abs=0.05)


def test_torus_targets_are_the_slow_part():
    dataset = load("torus", rows=24, columns=30, noise=0.0)
    slow = np.abs(np.fft.fft2(dataset.y.reshape(24, 30).numpy())) > 1e-2
    mixed = np.abs(np.fft.fft2(dataset.graphs[0].x.reshape(24, 30).numpy())) > 1e-2
    turns = [np.abs(np.fft.fftfreq(n) * n) for n in (24, 30)]
    low = (turns[0][:, None] <= 2) & (turns[1][None, :] <= 2)
    high = (turns[0][:, None] >= 8) & (turns[1][None, :] >= 10)
    assert slow.any()
    assert not (slow & ~low).any()
    assert (mixed & high).any()
    assert not (mixed & ~(low | high)).any()
    assert dataset.y.std(correction=0) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("digits", {"neighbors": 0}, "neighbors must be from 1 to 1796, not 0"),
        ("digits", {"neighbors": 2.5}, "neighbors must be a whole number, not 2.5"),
        ("csbm", {"num_nodes": -1}, "num_nodes must be at least 1"),
        ("csbm", {"num_classes": 2000}, "num_classes must be from 1 to 1000"),
        ("csbm", {"num_nodes": 2**32}, "a graph of about 1.1e[+]11 numbers; at most 1e[+]09"),
        ("csbm", {"num_nodes": 10**400}, "num_nodes must be a number, not 1000"),
        ("csbm", {"degree": float("inf")}, "degree must be a number, not inf"),
        ("geometric", {"degree": 1e9}, "take fewer nodes, features or neighbours"),
        ("torus", {"rows": 2**20, "columns": 2**20}, "a graph of about 1.1e[+]12 numbers"),
        ("csbm", {"homophily": 1.5}, "homophily must be from 0.0 to 1.0, not 1.5"),
        ("csbm", {"degree": float("nan")}, "degree must be a number, not nan"),
        ("csbm", {"seed": -3}, "seed must be at least 0"),
        ("geometric", {"noise": "much"}, "noise must be a number, not 'much'"),
        ("torus", {"rows": 2}, "rows must be at least 8"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(ConfigError, match=message):
        load(name, **options)
