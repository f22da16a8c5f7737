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
