import numpy as np
import pytest
import torch

from nlsf.data import block_model, digits, load, preferential_attachment, random_geometric, torus
from nlsf.data.generators import contextual_block_model, pixel_grid
from nlsf.errors import ConfigError
from nlsf.spectral import adjacency_matrix, laplacian, partial_eigh

GRAPHS = {
    "torus": lambda: torus(5, 7),
    "geometric": lambda: random_geometric(300, seed=1),
    "block": lambda: block_model(301, 4, seed=1),
    "contextual": lambda: contextual_block_model(301, 4, seed=1),
    "preferential": lambda: preferential_attachment(300, 2, seed=1),
}


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


def test_the_graph_of_digits():
    graph = digits()
    assert graph.x.shape == (1797, 64)
    assert 0 <= graph.x.min() < graph.x.max() <= 1
    assert graph.y.bincount().min() > 170
    shift = laplacian(graph)  # raises unless symmetric and without loops
    assert shift.matrix.diagonal().min() >= 10
    start, end = graph.edge_index
    assert (graph.y[start] == graph.y[end]).double().mean() > 0.9


def test_ties_go_to_the_first_image():
    """Many images are equally far: the graph must not depend on how distances are rounded."""
    graph = digits()
    assert graph.num_edges == 2 * 12_339
    pixels = (16 * graph.x).to(torch.int64)
    for image in range(0, 1797, 100):
        distance = ((pixels - pixels[image]) ** 2).sum(1)
        distance[image] = distance.max() + 1
        nearest = distance.argsort(stable=True)[:10]
        joined = graph.edge_index[1][graph.edge_index[0] == image]
        assert set(nearest.tolist()) <= set(joined.tolist())
