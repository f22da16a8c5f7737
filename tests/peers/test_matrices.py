import numpy as np
import pytest
import torch

from nlsf.data.generators import random_geometric
from nlsf.errors import ModelError, SignalError
from nlsf.peers import Neighbourhood, matrices
from nlsf.peers.matrices import BlockSignal, diagonal_blocks, sparse_matrix
from nlsf.store.memory import Memory
from nlsf.testing.graphs import disjoint, star

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


# Three stars of four nodes; the second one, padding, the first one.
NODE = torch.tensor([4, 5, 6, 7, 0, 0, 0, 1, 2, 3])
INSIDE = torch.tensor([True] * 4 + [False] * 2 + [True] * 4)


def matrix(kind):
    graph = disjoint(star(3), 3)
    return Neighbourhood(graph.edge_index, 12, dtype=F64).matrix(kind)


@pytest.mark.parametrize("kind", ["gcn", "sym", "row", "row-loops", "adjacency"])
def test_blocks_are_rows_and_columns_of_the_matrix(kind):
    whole = matrix(kind)
    assert whole.symmetric is (kind in ("gcn", "sym", "adjacency"))
    both = INSIDE[:, None] & INSIDE
    same = torch.tensor([0] * 6 + [1] * 4)
    expected = (whole.dense()[NODE][:, NODE] * both * (same[:, None] == same)).to(F64)
    found = diagonal_blocks(whole, NODE, INSIDE)
    assert torch.equal(found.dense(), expected)
    assert torch.equal(found.values[found.pattern.order], found.moved)
    h = torch.randn(10, 3, dtype=F64, requires_grad=True)
    g = torch.randn(10, 3, dtype=F64)
    torch.testing.assert_close(found @ h, expected @ h)
    (grad,) = torch.autograd.grad((found @ h * g).sum(), h)
    torch.testing.assert_close(grad, expected.T @ g)


def test_each_model_multiplies_by_its_own_block():
    blocks = BlockSignal(diagonal_blocks(matrix("row"), NODE, INSIDE), 2)
    h = torch.randn(2, 5, 3, dtype=F64)
    found = torch.func.vmap(lambda one: blocks @ one)(h)
    torch.testing.assert_close(found.flatten(0, 1), blocks.dense() @ h.flatten(0, 1))
    with pytest.raises(SignalError, match=r"inside of a torch\.func\.vmap"):
        blocks @ h[0]
    with pytest.raises(SignalError, match="2 models"):
        torch.func.vmap(lambda one: blocks @ one)(h[:1])


def test_what_is_remembered_in_inference_can_be_trained_with(monkeypatch):
    monkeypatch.setattr(matrices, "_graphs", Memory())
    edges = star(5).edge_index
    with torch.inference_mode():
        found = Neighbourhood.of(edges, 6)
    assert Neighbourhood.of(edges, 6) is found
    assert not found.degree.is_inference()
