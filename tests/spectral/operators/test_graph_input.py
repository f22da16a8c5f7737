import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from nlsf.errors import GraphError
from nlsf.spectral.operators import adjacency_matrix
from nlsf.spectral.operators.graph_input import TensorMemo, edge_list, split_batch
from nn.layers import MIXED, batch_of, weighted_graphs

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
WEIGHT = torch.tensor([1.0, 1.0, 2.0, 2.0, 0.5, 0.5])
DENSE = np.zeros((4, 4))
DENSE[EDGES[0], EDGES[1]] = WEIGHT


class SparseTensor:
    """What is read of one of torch_sparse, which is not installed everywhere."""

    def __init__(self, value=None):
        self.value = value

    def coo(self):
        return *EDGES, self.value

    def sparse_sizes(self):
        return 4, 4


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
        "torch_sparse": adjacency_matrix(SparseTensor(WEIGHT)),
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
        ((EDGES.T,), r"shape \(2, E\), not \(6, 2\): pass its .T"),
        ((EDGES.float(),), "must hold integers, not float32: pass edge_index.long"),
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


MATRICES = {
    "dense": torch.from_numpy,
    "coo": lambda a: torch.from_numpy(a).to_sparse_coo(),
    "csr": lambda a: torch.from_numpy(a).to_sparse_csr(),
    "csc": lambda a: torch.from_numpy(a).to_sparse_csc(),
    "bsr": lambda a: torch.from_numpy(a).to_sparse_bsr((2, 2)),
    "scipy": sparse.csr_array,
}


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("form", MATRICES)
def test_a_matrix_as_edges(form):
    edges, weight = edge_list(MATRICES[form](DENSE), None, 4)
    np.testing.assert_array_equal(adjacency_matrix(edges, weight, 4).toarray(), DENSE)
    assert edge_list(MATRICES[form]((DENSE > 0) * 1.0), None, 4)[1] is None


def test_an_edge_index_stays_itself():
    assert edge_list(EDGES, WEIGHT, 4) == (EDGES, WEIGHT)
    edges, weight = edge_list(EDGES.tolist(), WEIGHT.tolist(), 4)
    np.testing.assert_array_equal(adjacency_matrix(edges, weight).toarray(), DENSE)
    assert edge_list(SparseTensor(), None, 4)[1] is None


def test_the_edges_of_a_tensor_are_found_once():
    matrix = torch.from_numpy(DENSE).to_sparse_coo().coalesce()
    edges, weight = edge_list(matrix, None, 4)
    assert edge_list(matrix, None, 4)[0] is edges
    with pytest.raises(GraphError, match="4 rows, but num_nodes is 5"):
        edge_list(matrix, None, 5)
    matrix.values().mul_(2)
    torch.testing.assert_close(edge_list(matrix, None, 4)[1], 2 * weight)


def test_a_memo_knows_the_tensor_and_its_content():
    memo, computed = TensorMemo(), []
    x = torch.zeros(3)

    def get(key=None):
        return memo.get(x, lambda: computed.append(1) or len(computed), key)

    assert [get(), get(), get("other"), get()] == [1, 1, 2, 3]
    x[0] = 1
    assert get() == 4
    x.data = torch.ones(3)
    assert get() == 5
    with torch.inference_mode():
        x = torch.zeros(3)
    assert [get(), get()] == [6, 7]
    x = torch.zeros(3)
    assert get() == 8
    assert len(memo) == 1, "the first is gone, and what was known of it"


@pytest.mark.parametrize("graphs", [MIXED, weighted_graphs()], ids=["mixed", "weighted"])
@pytest.mark.parametrize("shuffled", [True, False])
def test_a_batch_is_split_as_pytorch_geometric_does(graphs, shuffled):
    batch = batch_of(graphs)
    edges, weight = batch.edge_index, batch.edge_weight
    if shuffled:
        # By node, so that the edges of the graphs do not stand together any more.
        order = torch.argsort(edges[1] * 7919 % 101, stable=True)
        edges, weight = edges[:, order], None if weight is None else weight[order]
    parts = split_batch(edges, weight, batch.batch)
    for (e, w, n), data in zip(parts, batch.to_data_list(), strict=True):
        assert n == data.num_nodes
        found, wanted = torch.zeros(2, n, n, dtype=torch.float64)
        found[*e] = 1.0 if w is None else w
        wanted[*data.edge_index] = 1.0 if w is None else data.edge_weight
        assert torch.equal(found, wanted)
        if not shuffled:
            assert torch.equal(e, data.edge_index)


@pytest.mark.parametrize(
    ("batch", "weight", "says"),
    [
        ([0, 1, 0, 1], None, "batch must be sorted"),
        ([-1, -1, 0, 0], None, "from 0, and begins with -1"),
        ([0, 0, 1, 1], None, "Edge 2 of edge_index joins node 1 of graph 0 and node 2 of graph 1"),
        ([0, 0, 0], None, "Edge 4 of edge_index joins nodes 2 and 3, but the graph has 3 nodes"),
        ([0, 0, 0, 0], torch.ones(5), r"shape \(6,\)"),
    ],
)
def test_a_batch_that_cannot_be_split(batch, weight, says):
    with pytest.raises(GraphError, match=says):
        split_batch(EDGES, weight, torch.tensor(batch))
