import torch

from nlsf.data import digits
from nlsf.spectral import laplacian


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
