import numpy as np
import pytest
import torch
from torch_geometric.utils import get_laplacian, to_dense_adj

from cases import GRAPHS, OPERATORS
from nlsf.errors import GraphError, NotSymmetricError, SelfLoopWarning
from nlsf.spectral import ShiftOperator, adjacency, laplacian, magnetic_laplacian

ONE_WAY = torch.tensor([[0, 1, 2], [1, 2, 0]])


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_operators_are_hermitian_and_inside_their_bounds(operator, graph):
    shift = OPERATORS[operator](GRAPHS[graph])
    dense = shift.to_dense()
    torch.testing.assert_close(dense, dense.mH, atol=0, rtol=0)
    if shift.num_nodes:
        values = torch.linalg.eigvalsh(dense)
        low, high = shift.bounds
        assert low - 1e-12 <= values[0]
        assert values[-1] <= high + 1e-12


@pytest.mark.parametrize("operator", ["L", "N", "N+loops"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_kernel_of_a_laplacian_is_known(operator, graph):
    shift = OPERATORS[operator](GRAPHS[graph])
    assert (shift.null_vector > 0).all()
    np.testing.assert_allclose(shift.matrix @ shift.null_vector, 0, atol=1e-12)


@pytest.mark.parametrize("normalization", [None, "sym"])
def test_equals_pyg_where_no_node_is_isolated(normalization):
    graph = GRAPHS["weighted"]
    index, weight = get_laplacian(graph.edge_index, graph.edge_weight, normalization)
    expected = to_dense_adj(index, edge_attr=weight)[0]
    found = laplacian(graph, normalization=normalization).to_dense()
    torch.testing.assert_close(found, expected.to(found))


def test_an_isolated_node_has_a_zero_row():
    for shift in (
        laplacian(torch.tensor([[0, 1], [1, 0]]), num_nodes=3),
        laplacian(torch.tensor([[0, 1], [1, 0]]), num_nodes=3, normalization="sym"),
        laplacian(torch.tensor([[0, 1], [1, 0]]), None, 3, "sym", self_loops=True),
    ):
        assert not shift.to_dense()[2].any()


def test_self_loops_are_dropped_with_a_warning_from_laplacians_only():
    edges = torch.tensor([[0, 1, 1], [1, 0, 1]])
    with pytest.warns(SelfLoopWarning, match="1 self loops"):
        shift = laplacian(edges)
    torch.testing.assert_close(shift.to_dense(), laplacian(edges[:, :2]).to_dense())
    assert adjacency(edges).to_dense()[1, 1] == 1


def test_one_way_edges_are_refused_or_symmetrised():
    with pytest.raises(NotSymmetricError, match=r"entry \(0, 1\).*symmetrize.*magnetic_laplacian"):
        laplacian(ONE_WAY)
    both = torch.cat([ONE_WAY, ONE_WAY.flip(0)], dim=1)
    for how, factor in (("sum", 1.0), ("max", 1.0), ("mean", 0.5)):
        found = laplacian(ONE_WAY, symmetrize=how).to_dense()
        torch.testing.assert_close(found, factor * laplacian(both).to_dense())


@pytest.mark.parametrize("normalization", [None, "sym"])
def test_magnetic_laplacian(normalization):
    both = torch.cat([ONE_WAY, ONE_WAY.flip(0)], dim=1)
    ordinary = laplacian(both, normalization=normalization).to_dense()
    undirected = magnetic_laplacian(both, normalization=normalization, q=0.3)
    torch.testing.assert_close(undirected.to_dense().real, ordinary)
    neutral = magnetic_laplacian(ONE_WAY, normalization=normalization, q=0.0)
    half = laplacian(both, torch.full((6,), 0.5), normalization=normalization).to_dense()
    torch.testing.assert_close(neutral.to_dense().real, half)
    charged = magnetic_laplacian(ONE_WAY, normalization=normalization, q=0.25).to_dense()
    # A quarter turn on each of the three edges of the cycle: entry (0, 1) is -i/2 up to scaling.
    assert charged[0, 1].real.abs() < 1e-12
    assert charged[0, 1].imag < 0 < charged[1, 0].imag
    assert torch.linalg.eigvalsh(charged)[0] > 0.1


def test_any_hermitian_matrix():
    matrix = torch.tensor([[1.0, 2j], [-2j, 3.0]])
    shift = ShiftOperator.from_matrix(matrix, name="mine")
    assert shift.is_complex
    assert shift.name == "mine"
    assert shift.bounds == (-1.0, 5.0)


@pytest.mark.parametrize(
    ("matrix", "error", "says"),
    [
        (np.ones((2, 3)), GraphError, "square"),
        (np.array([[0.0, 1], [2, 0]]), NotSymmetricError, r"entry \(0, 1\) is 1 .* is 2"),
        (np.array([[1j, 0], [0, 1]]), NotSymmetricError, "conjugate transpose"),
        (np.array([[0.0, np.nan], [np.nan, 0]]), GraphError, r"Entry \(0, 1\)"),
    ],
)
def test_other_matrices_are_refused(matrix, error, says):
    with pytest.raises(error, match=says):
        ShiftOperator.from_matrix(matrix)


@pytest.mark.parametrize(
    "call",
    [
        lambda: laplacian(ONE_WAY, normalization="rw", symmetrize="sum"),
        lambda: magnetic_laplacian(ONE_WAY, normalization="rw"),
        lambda: laplacian(ONE_WAY, symmetrize="yes"),
        lambda: magnetic_laplacian(ONE_WAY, q=float("nan")),
    ],
)
def test_unknown_options_are_refused(call):
    with pytest.raises(GraphError):
        call()


def test_permuting_the_nodes():
    shift = laplacian(GRAPHS["weighted"], normalization="sym")
    permutation = torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])
    expected = shift.to_dense()[permutation][:, permutation]
    torch.testing.assert_close(shift.permute(permutation).to_dense(), expected)
