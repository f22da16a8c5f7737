import numpy as np
import pytest
import torch
from scipy import sparse

from cases import GRAPHS
from nlsf.errors import GraphError
from nlsf.spectral import laplacian
from nlsf.spectral.operators import csr
from nlsf.spectral.operators.csr import counted_edges, is_mirrored
from nlsf.testing.graphs import hostile_graphs, tiny_graphs


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_tensor_is_the_matrix(graph):
    matrix = laplacian(GRAPHS[graph]).matrix
    torch.testing.assert_close(
        csr.csr_tensor(matrix).to_dense(), torch.from_numpy(matrix.toarray()), rtol=0, atol=0
    )


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loops", [False, True])
def test_the_places_of_the_diagonal(graph, loops):
    matrix = laplacian(GRAPHS[graph], normalization="sym", self_loops=loops).matrix
    places = csr.diagonal_places(matrix)
    diagonal = matrix.diagonal()
    np.testing.assert_array_equal(matrix.data[places], diagonal[diagonal != 0])


def test_entries_that_indices_cannot_count_are_refused(monkeypatch):
    monkeypatch.setattr(csr, "LARGEST", 3)
    csr.csr_tensor(sparse.eye_array(3, format="csr"))
    with pytest.raises(GraphError, match="4 entries"):
        csr.csr_tensor(sparse.eye_array(4, format="csr"))


MORE = {**tiny_graphs(), **hostile_graphs()}


@pytest.fixture(params=MORE)
def graph(request):
    return MORE[request.param]


def scattered(edges, n):
    """The same matrix by SciPy, which puts every edge into its row."""
    counted = sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(n, n)).tocsr()
    counted.sum_duplicates()
    return counted


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.uint8])
def test_edges_in_any_order_are_counted(graph, kind):
    rng = np.random.default_rng(0)
    n, edges = graph.num_nodes, graph.edge_index.numpy()
    if n > np.iinfo(kind).max:
        pytest.skip("the numbers of the nodes do not fit")
    again = edges[:, rng.integers(edges.shape[1], size=7)] if edges.size else edges
    for listed in (edges, edges[:, ::-1], rng.permutation(np.hstack([edges, again]), axis=1)):
        counted, other = counted_edges(listed.astype(kind), n), scattered(listed, n)
        assert counted.dtype == np.float64
        assert counted.indices.dtype == counted.indptr.dtype
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(counted, name), getattr(other, name))


def test_the_largest_nodes_do_not_run_over():
    n = 1 << 20
    edges = np.array([[n - 1, 0, n - 1], [0, n - 1, n - 1]])
    counted = counted_edges(edges, n)
    assert counted[n - 1, 0] == counted[0, n - 1] == counted[n - 1, n - 1] == 1
    assert counted.nnz == 3
    assert is_mirrored(counted)


def test_a_graph_is_mirrored_until_an_edge_goes_one_way(graph):
    n = graph.num_nodes
    counted = counted_edges(graph.edge_index.numpy(), n)
    one_way = (counted != counted.T).nnz > 0
    assert is_mirrored(counted) != one_way
    coo = counted.tocoo()
    for e in np.flatnonzero(coo.row != coo.col)[:5]:
        less = np.delete(np.stack([coo.row, coo.col]), e, axis=1)
        assert not is_mirrored(counted_edges(less, n)) or one_way


def test_equal_degrees_do_not_make_a_mirror():
    ring = np.stack([np.arange(9), (np.arange(9) + 1) % 9])  # in- and out-degree 1 everywhere
    assert not is_mirrored(counted_edges(ring, 9))
