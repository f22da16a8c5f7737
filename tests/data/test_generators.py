import numpy as np
import pytest
import torch

from nlsf.data import block_model, load, preferential_attachment, random_geometric, torus
from nlsf.data.generators import contextual_block_model
from nlsf.data.protocols import draw
from nlsf.errors import ConfigError
from nlsf.spectral import laplacian, partial_eigh
from nlsf.spectral.operators import adjacency_matrix

GRAPHS = {
    "torus": lambda: torus(5, 7),
    "geometric": lambda: random_geometric(300, seed=1),
    "block": lambda: block_model(301, 4, seed=1),
    "contextual": lambda: contextual_block_model(301, 4, seed=1),
    "preferential": lambda: preferential_attachment(300, 2, seed=1),
}
SETS = {
    "digits": {"neighbors": 3},
    "digits-grid": {},
    "digits-graphs": {},
    "csbm": {"num_nodes": 200},
    "geometric": {"num_nodes": 200},
    "torus": {"rows": 8, "columns": 9},
}
REGRESSIONS = ("geometric", "torus")


@pytest.mark.parametrize("name", GRAPHS)
def test_undirected_simple_and_repeatable(name):
    graph = GRAPHS[name]()
    A = adjacency_matrix(graph)
    assert abs(A - A.T).nnz == 0
    assert not A.diagonal().any()
    assert (A.data == 1).all(), "every edge once"
    assert graph.edge_index.equal(GRAPHS[name]().edge_index)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_very_small_graphs(n):
    for graph in (random_geometric(n), block_model(n), preferential_attachment(n), torus(n, n)):
        partial_eigh(laplacian(graph))
    assert contextual_block_model(n).x.shape == (n, 16)


def test_torus_eigenvalues():
    values = partial_eigh(laplacian(torus(5, 7))).values
    a, b = (2 - 2 * np.cos(2 * np.pi * np.arange(n) / n) for n in (5, 7))
    expected = torch.from_numpy(np.sort((a[:, None] + b[None, :]).ravel()))
    torch.testing.assert_close(values, expected, atol=1e-12, rtol=0)


def test_geometric_degree_and_neighbours():
    graph = random_geometric(4000, 10.0)
    assert 8.5 < graph.num_edges / 4000 < 10
    start, end = graph.edge_index
    assert (graph.pos[start] - graph.pos[end]).norm(dim=1).max() < np.sqrt(10 / (np.pi * 4000))


def test_block_model_homophily():
    for homophily in (0.2, 0.9):
        graph = block_model(4000, 5, 12.0, homophily)
        start, end = graph.edge_index
        assert (graph.y[start] == graph.y[end]).double().mean() == pytest.approx(
            homophily, abs=0.02
        )
        assert graph.num_edges / 4000 == pytest.approx(12, abs=0.3)


def test_preferential_attachment_has_hubs():
    degree = laplacian(preferential_attachment(5000, 3)).matrix.diagonal()
    assert degree.mean() == pytest.approx(6, abs=0.1)
    assert degree.max() > 100
    assert np.median(degree) <= 4


@pytest.mark.parametrize("homophily", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_contextual_block_model_homophily(homophily, classes):
    graph = contextual_block_model(4000, classes, homophily=homophily, degree=12.0)
    start, end = graph.edge_index
    assert (graph.y[start] == graph.y[end]).double().mean() == pytest.approx(homophily, abs=0.02)
    assert graph.num_edges / 4000 == pytest.approx(12, abs=0.3)


def class_means(graph):
    return torch.stack([graph.x[graph.y == c].mean(0) for c in range(int(graph.y.max()) + 1)])


@pytest.mark.parametrize(("classes", "features"), [(3, 16), (4, 4), (5, 2), (2, 1)])
def test_contextual_means_are_shared_by_a_family(classes, features):
    shape = {"num_classes": classes, "num_features": features, "separation": 50.0}
    small, large = (
        class_means(contextual_block_model(n, seed=s, **shape)) / 50
        for n, s in ((400, 0), (4000, 1))
    )
    torch.testing.assert_close(small, large, atol=0.02, rtol=0)
    torch.testing.assert_close(large.norm(dim=1), torch.ones(classes), atol=0.01, rtol=0)
    if features > 1:
        other = class_means(contextual_block_model(400, means_seed=1, **shape)) / 50
        assert (other - small).norm() > 0.1


def test_contextual_means_are_spread_out():
    for classes, features, nearest in ((3, 16, 2**0.5), (4, 4, 2**0.5), (5, 2, 1.17), (12, 3, 1.0)):
        graph = contextual_block_model(6000, classes, features, separation=50.0)
        means = class_means(graph) / 50
        assert torch.pdist(means).min() == pytest.approx(nearest, abs=0.06)


def test_contextual_noise_has_variance_one():
    graph = contextual_block_model(6000, 3, separation=2.0)
    noise = graph.x - class_means(graph)[graph.y]
    torch.testing.assert_close(noise.T.cov(), torch.eye(16), atol=0.08, rtol=0)
    assert class_means(graph).norm(dim=1) == pytest.approx([2, 2, 2], abs=0.1)


@pytest.mark.parametrize("name", SETS)
def test_what_every_set_promises(name):
    dataset, again = load(name, **SETS[name]), load(name, **SETS[name])
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
