import pytest
import torch

from nlsf.data import digits, load
from nlsf.data.readers.images import pixel_grid
from nlsf.errors import ConfigError
from nlsf.spectral import laplacian
from nlsf.spectral.operators import adjacency_matrix


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


def test_digits_are_nodes():
    dataset = load("digits")
    assert (dataset.level, dataset.num_examples, dataset.num_features) == ("node", 1797, 64)
    assert dataset.classes == tuple("0123456789")
    assert load("digits", neighbors=4).graphs[0].num_edges < dataset.graphs[0].num_edges


def test_digits_are_signals():
    dataset = load("digits-grid")
    assert dataset.level == "signal"
    assert dataset.signals.shape == (1797, 64, 1)
    assert dataset.graphs[0].num_edges == 2 * 2 * 7 * 8
    degree = torch.bincount(dataset.graphs[0].edge_index[0]).reshape(8, 8)
    assert (degree[1:-1, 1:-1] == 4).all()
    assert degree[0, 0] == degree[7, 7] == 2
    assert dataset.signals.squeeze(-1).equal(load("digits").graphs[0].x)


def test_digits_are_graphs():
    dataset = load("digits-graphs")
    assert (dataset.level, len(dataset.graphs), dataset.num_features) == ("graph", 1797, 3)
    assert min(graph.num_nodes for graph in dataset.graphs) >= 1
    images = load("digits-grid").signals.reshape(-1, 8, 8)
    for image, graph in zip(images[:50], dataset.graphs, strict=False):
        grey, place = graph.x[:, 0], (graph.x[:, 1:] * 7).round().long()
        assert (image > 0.25).sum() == graph.num_nodes
        assert image[place[:, 0], place[:, 1]].equal(grey)
        apart = (place[:, None] - place[None, :]).abs().amax(-1)
        assert adjacency_matrix(graph).toarray().tolist() == (apart == 1).double().tolist()
