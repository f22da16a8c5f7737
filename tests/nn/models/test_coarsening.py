"""Graphs are halved into runs of consecutive nodes, whatever their size."""

import numpy as np
import pytest
import torch

from nlsf.data.grid import pixel_grid
from nlsf.nn.models.coarsening import Pyramid, halved
from nlsf.spectral import UniformBands, laplacian
from nlsf.testing.graphs import path, star, weighted

BANDS = UniformBands(3)


def pyramid(graph, levels=2, halvings=1):
    return Pyramid.of(
        graph.edge_index,
        graph.edge_weight,
        graph.num_nodes,
        bands=BANDS,
        levels=levels,
        halvings=halvings,
        cache=False,
        dtype=torch.float64,
    )


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_grid_is_cut_into_squares(noise):
    P = pyramid(pixel_grid(8, 12, noise), levels=3, halvings=2)
    row, column = P.order // 12, P.order % 12
    for size, side in ((4, 2), (16, 4)):
        for place in (row, column):
            blocks = place.unflatten(0, (-1, size)) // side
            assert bool((blocks == blocks[:, :1]).all())
    # Every square has its nodes in the same order, so that a map of them sees directions.
    assert row.unflatten(0, (-1, 4)).remainder(2).unique(dim=0).tolist() == [[0, 0, 1, 1]]
    assert column.unflatten(0, (-1, 4)).remainder(2).unique(dim=0).tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize("graph", [path(7), path(8), star(6), weighted(8), path(1)], ids=str)
@pytest.mark.parametrize("halvings", [1, 2])
def test_any_graph_has_as_many_nodes_as_halving_leaves(graph, halvings):
    P = pyramid(graph, levels=3, halvings=halvings)
    assert sorted(P.order.tolist()) == list(range(graph.num_nodes))
    sizes = [projector.num_nodes for projector in P.projectors]
    assert sizes == [halved(graph.num_nodes, level * halvings) for level in range(3)]


@pytest.mark.parametrize("graph", [path(7), weighted(8), star(6)], ids=str)
def test_an_edge_of_a_coarse_graph_weighs_what_is_between_its_clusters(graph):
    """Seen by the quadratic form of a signal that is constant on clusters, with the degrees."""
    P = pyramid(graph)
    L = laplacian(graph.edge_index, graph.edge_weight, graph.num_nodes).to_dense()
    L = torch.as_tensor(L)[P.order][:, P.order]
    n = graph.num_nodes
    S = torch.zeros(n, halved(n, 1), dtype=torch.float64)
    S[torch.arange(n), torch.arange(n) // 2] = 1
    coarse = S.T @ L @ S
    degree = coarse.diagonal().clamp(min=1e-300)
    scale = torch.where(coarse.diagonal() > 0, degree.rsqrt(), 0.0)
    expected = np.sort(np.linalg.eigvalsh((scale[:, None] * coarse * scale).numpy()))
    found = np.sort(P.projectors[1].spectrum.values.numpy())
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_clusters_stand_side_by_side_and_what_is_missing_is_zero():
    P = pyramid(path(5))
    x = torch.arange(10.0).reshape(5, 2) + 1
    expected = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]]
    assert P.gather(x).tolist() == expected
    assert P.gather(x.expand(3, 5, 2)).tolist() == [expected] * 3
