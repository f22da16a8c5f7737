import networkx as nx
import pytest
import torch

from cases import GRAPHS
from nlsf.spectral import laplacian, partial_eigh
from nlsf.spectral.operators import adjacency_matrix
from nlsf.testing import hostile_graphs, tiny_graphs


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_undirected_without_loops(name):
    A = adjacency_matrix(GRAPHS[name])
    assert abs(A - A.T).nnz == 0
    assert not A.diagonal().any()
    assert A.shape == (GRAPHS[name].num_nodes,) * 2


def test_known_multiplicities():
    graphs = {**tiny_graphs(), **hostile_graphs()}
    expected = {
        "ring": [1, 2, 2, 2, 2],
        "complete": [1, 7],
        "star": [1, 8, 1],
        "torus": [1, 4, 6, 4, 1],
        "fifty triangles": [50, 100],
        "duplicate nodes": [1, 6, 1, 1],
        "isolated nodes": [4],
        "empty": [],
    }
    for name, multiplicities in expected.items():
        assert partial_eigh(laplacian(graphs[name])).multiplicities.tolist() == multiplicities


def test_shapes_agree_with_networkx():
    pairs = {
        "path": nx.path_graph(7),
        "bipartite": nx.complete_bipartite_graph(3, 4),
        "torus": nx.grid_2d_graph(4, 4, periodic=True),
        "tree": nx.balanced_tree(2, 3),
    }
    for name, graph in pairs.items():
        ours = partial_eigh(laplacian(GRAPHS[name])).values
        theirs = partial_eigh(laplacian(graph)).values
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
