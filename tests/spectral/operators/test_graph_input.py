import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from nlsf.errors import GraphError
from nlsf.spectral import adjacency_matrix

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
WEIGHT = torch.tensor([1.0, 1.0, 2.0, 2.0, 0.5, 0.5])
DENSE = np.zeros((4, 4))
DENSE[EDGES[0], EDGES[1]] = WEIGHT


def test_every_form_of_a_graph_is_read_alike():
    graph = nx.from_numpy_array(DENSE)
    forms = {
        "edge_index": adjacency_matrix(EDGES, WEIGHT),
        "numpy edge_index": adjacency_matrix(EDGES.numpy(), WEIGHT.numpy()),
        "lists": adjacency_matrix(EDGES.tolist(), WEIGHT.tolist()),
        "Data": adjacency_matrix(Data(edge_index=EDGES, edge_weight=WEIGHT, num_nodes=4)),
        "dense tensor": adjacency_matrix(torch.from_numpy(DENSE)),
        "dense array": adjacency_matrix(DENSE),
        "csr": adjacency_matrix(sparse.csr_array(DENSE)),
        "coo matrix": adjacency_matrix(sparse.coo_matrix(DENSE)),
        "torch coo": adjacency_matrix(torch.from_numpy(DENSE).to_sparse_coo()),
        "networkx": adjacency_matrix(graph),
    }
    for name, matrix in forms.items():
        np.testing.assert_array_equal(matrix.toarray(), DENSE, err_msg=name)
        assert matrix.dtype == np.float64
        assert matrix.nnz == 6


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_torch_csr_is_read():
    np.testing.assert_array_equal(
        adjacency_matrix(torch.from_numpy(DENSE).to_sparse_csr()).toarray(), DENSE
    )


def test_duplicates_are_summed_or_the_largest_is_kept():
    edges = torch.tensor([[0, 0, 1], [1, 1, 0]])
    weight = torch.tensor([1.0, 5.0, 2.0])
    np.testing.assert_array_equal(adjacency_matrix(edges, weight).toarray(), [[0, 6], [2, 0]])
    largest = adjacency_matrix(edges, weight, reduce="max")
    np.testing.assert_array_equal(largest.toarray(), [[0, 5], [2, 0]])


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_multigraphs_are_lists_of_edges(kind, reduce):
    graph = kind()
    graph.add_nodes_from(["z", "a", "alone"])  # the order of the nodes is that of their coming
    graph.add_weighted_edges_from([("a", "z", 1.0), ("a", "z", 5.0), ("z", "a", 2.0)])
    graph.add_weighted_edges_from([("a", "a", 3.0), ("a", "a", 4.0)])
    graph.add_edge("b", "z")
    found = adjacency_matrix(graph, reduce=reduce).toarray()
    expected = np.zeros((4, 4))
    both = [1.0, 5.0, 2.0]
    from_a, from_z = (both, both) if kind is nx.MultiGraph else (both[:2], both[2:])
    of = {"sum": sum, "max": max}[reduce]
    expected[1, 0], expected[0, 1], expected[1, 1] = of(from_a), of(from_z), of([3.0, 4.0])
    expected[3, 0] = 1.0
    expected[0, 3] = float(kind is nx.MultiGraph)
    np.testing.assert_array_equal(found, expected)
    if reduce == "sum":
        np.testing.assert_array_equal(found, nx.to_numpy_array(graph))
    graph.add_edge("b", "a", weight=-1.0)
    with pytest.raises(GraphError, match=r"-1\.0"):
        adjacency_matrix(graph, reduce=reduce)


def test_zero_weights_are_no_edges():
    assert adjacency_matrix(EDGES, torch.zeros(6)).nnz == 0


def test_a_two_by_two_integer_tensor_is_an_edge_index():
    assert adjacency_matrix(torch.tensor([[0, 1], [1, 0]])).nnz == 2
    assert adjacency_matrix(torch.tensor([[0, 1.0], [1, 0]])).shape == (2, 2)


def test_empty_graphs():
    none = torch.zeros(2, 0, dtype=torch.long)
    assert adjacency_matrix(none).shape == (0, 0)
    assert adjacency_matrix(none, num_nodes=3).shape == (3, 3)
    assert adjacency_matrix(nx.empty_graph(0)).shape == (0, 0)
    assert adjacency_matrix(nx.empty_graph(3, nx.MultiGraph)).shape == (3, 3)
    assert adjacency_matrix(np.zeros((0, 0))).shape == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((torch.tensor([[0, 1], [1, 5]]), None, 4), "Edge 1 .* nodes 1 and 5, .* has 4 nodes"),
        ((torch.tensor([[0, -1], [1, 0]]), None, 4), "Edge 1 .* nodes -1 and 0"),
        ((EDGES, torch.tensor([1.0, 1, 1, -2, 1, 1])), "Edge 3, from node 2 to node 1, .* -2.0"),
        ((EDGES, torch.tensor([1.0, float("nan"), 1, 1, 1, 1])), "Edge 1, .* nan"),
        ((EDGES, torch.tensor([1.0, 1, 1, 1, 1, float("inf")])), "Edge 5, .* inf"),
        ((EDGES, torch.ones(5)), r"shape \(6,\).* not \(5,\)"),
        ((EDGES, torch.ones(6, 2)), r"shape \(6,\)"),
        ((torch.zeros(3, 4, dtype=torch.long),), "square"),
        ((torch.zeros(3, 4),), "square"),
        ((torch.zeros(2, 2, 2),), "square"),
        ((-DENSE,), "from node 0 to node 1, has the weight -1.0"),
        ((DENSE, WEIGHT), "edge_weight goes with an edge_index"),
        ((DENSE, None, 7), "4 rows, but num_nodes is 7"),
        ((DENSE * 1j,), "real"),
        (("cora",), "Cannot read a graph from str"),
        ((None,), "Cannot read a graph from NoneType"),
    ],
)
def test_bad_input_is_named(arguments, says):
    with pytest.raises(GraphError, match=says):
        adjacency_matrix(*arguments)


@pytest.mark.parametrize(
    "graph", [EDGES, DENSE, sparse.csr_array(DENSE), nx.path_graph(3), nx.MultiGraph()], ids=type
)
def test_unknown_reduce(graph):
    with pytest.raises(GraphError, match="'sum' or 'max'"):
        adjacency_matrix(graph, reduce="mean")
