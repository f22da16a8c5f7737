import numpy as np
import pytest
import torch

from nlsf.data import block_model, preferential_attachment, random_geometric, torus
from nlsf.data.generators import contextual_block_model
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
