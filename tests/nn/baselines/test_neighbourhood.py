import numpy as np
import pytest
import torch

from nlsf.data.generators import random_geometric
from nlsf.errors import ModelError
from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.neighbourhood import sparse_matrix

F64 = torch.float64


@pytest.fixture
def graph():
    data = random_geometric(30, 3.0, seed=1)  # some nodes are isolated
    return Neighbourhood(data.edge_index, 30, dtype=F64)


def dense(graph):
    A = np.zeros((graph.num_nodes,) * 2)
    A[graph.edge_index[0], graph.edge_index[1]] = 1
    return A


def inverse(d, power):
    return np.where(d > 0, np.where(d > 0, d, 1.0) ** power, 0.0)


def test_the_matrices_are_those_of_the_table(graph):
    A, eye = dense(graph), np.eye(30)
    assert (A.sum(1) == 0).any()
    d, loops = A.sum(1), A.sum(1) + 1
    half, full = inverse(d, -0.5), inverse(d, -1.0)
    expected = {
        "adjacency": A,
        "sym": half[:, None] * A * half,
        "row": full[:, None] * A,
        "gcn": loops[:, None] ** -0.5 * (A + eye) * loops**-0.5,
        "row-loops": (A + eye) / loops[:, None],
    }
    for kind, matrix in expected.items():
        torch.testing.assert_close(graph.matrix(kind).dense(), torch.from_numpy(matrix))
    with pytest.raises(ModelError, match="no matrix 'gnc'"):
        graph.matrix("gnc")


def test_a_graph_is_remembered(graph):
    edges = graph.edge_index
    first = Neighbourhood.of(edges, 30)
    assert Neighbourhood.of(edges.clone(), 30) is first
    assert Neighbourhood.of(edges, 31) is not first
    assert first.matrix("gcn") is first.matrix("gcn")


def test_entries_may_come_in_any_order():
    row, column = torch.tensor([1, 0, 1]), torch.tensor([2, 1, 0])
    matrix = sparse_matrix(row, column, torch.tensor([1.0, 2.0, 3.0]), (2, 3))
    assert matrix.dense().tolist() == [[0, 2, 0], [3, 0, 1]]
    assert (matrix @ torch.eye(3)).tolist() == [[0, 2, 0], [3, 0, 1]]
