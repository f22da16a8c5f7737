import numpy as np
import pytest

from nlsf.data.generators import block_model, preferential_attachment, torus
from nlsf.report.layout import induced, layout, sample


def edges_of(data):
    return data.edge_index.numpy()


def ring(count):
    start = np.arange(count)
    pairs = np.stack([start, (start + 1) % count])
    return np.concatenate([pairs, pairs[::-1]], axis=1)


def connected(edges, count):
    reached = {0}
    while True:
        more = {int(b) for a, b in edges.T if int(a) in reached}
        more |= {int(a) for a, b in edges.T if int(b) in reached}
        if more <= reached:
            return len(reached) == count
        reached |= more


def test_a_sample_is_connected_and_holds_its_start():
    edges = edges_of(block_model(20_000, seed=0))
    nodes = sample(edges, 20_000, 123, 300)
    assert len(nodes) == 300
    assert 123 in nodes
    assert np.array_equal(nodes, np.unique(nodes))
    assert connected(induced(edges, nodes, 20_000), 300)


def test_a_hub_does_not_fill_the_sample():
    edges = edges_of(preferential_attachment(5_000, 3, seed=0))
    hub = int(np.bincount(edges[0]).argmax())
    nodes = sample(edges, 5_000, hub, 200)
    around = set(edges[1][edges[0] == hub].tolist())
    assert len(around) > 100
    assert len(around & set(nodes.tolist())) < 100


def test_a_star_is_taken_whole_where_nothing_else_is_left():
    ends = np.arange(1, 50)
    star = np.stack([np.zeros_like(ends), ends])
    star = np.concatenate([star, star[::-1]], axis=1)
    assert len(sample(star, 50, 0, 40)) == 40


def test_isolated_nodes_fill_a_sample():
    nodes = sample(ring(4), 10, 2, 7)
    assert nodes.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_induced_edges_are_the_edges_between_the_nodes():
    inside = induced(ring(6), np.array([1, 2, 3, 5]), 6)
    assert sorted(map(tuple, inside.T.tolist())) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 40])
def test_places_fill_the_unit_square(count):
    places = layout(ring(count)[:, ring(count)[0] != ring(count)[1]], count)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert places.min() >= -1e-9
    assert places.max() <= 1 + 1e-9


def test_neighbours_are_nearer_than_others():
    edges = edges_of(torus(12, 12))
    places = layout(edges, 144)
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert distance[edges[0], edges[1]].mean() < 0.6 * distance.mean()


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (5, 9)])
def test_the_pixels_of_an_image_stand_upright(rows, columns):
    pixel = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([pixel[:, :-1].ravel(), pixel[:, 1:].ravel()])
    down = np.stack([pixel[:-1].ravel(), pixel[1:].ravel()])
    places = layout(np.concatenate([right, down], axis=1), pixel.size)
    x, y = (places[:, i].reshape(rows, columns) for i in (0, 1))
    assert (np.diff(x, axis=1) > 0).all()
    assert (np.diff(y, axis=0) < 0).all()


def test_no_two_nodes_lie_on_each_other():
    ends = np.arange(1, 30)
    star = np.stack([np.zeros_like(ends), ends])  # the leaves have the same neighbours
    places = layout(star, 30)
    distance = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(30)
    assert distance.min() > 0.01


def test_components_lie_side_by_side():
    edges = np.concatenate([ring(10), ring(6) + 10], axis=1)
    places = layout(edges, 17)  # and a node without edges
    boxes = [(p.min(0), p.max(0)) for p in (places[:10], places[10:16], places[16:])]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (low > other_high).any() or (other_low > high).any()


def test_the_same_graph_has_the_same_places():
    edges = edges_of(block_model(200, seed=1))
    assert np.array_equal(layout(edges, 200), layout(edges, 200))


def test_600_nodes_all_have_a_place():
    places = layout(edges_of(block_model(600, seed=2)), 600)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == 600


def test_an_empty_graph_has_no_places():
    assert layout(np.zeros((2, 0), dtype=np.int64), 0).shape == (0, 2)
