"""The block solver against dense linear algebra: every copy, no stranger, both filters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from nlsf.spectral.eigen import davidson
from nlsf.spectral.eigen.basis import NotConverged, Operator, TooManyPairs
from nlsf.spectral.eigen.filters import count_below, estimate_fill
from nlsf.spectral.eigen.lowest import BlockSolution, lowest_eigenpairs

Array = NDArray[Any]
Filter = Literal["solve", "chebyshev"]
GAP, TOL = 1e-7, 1e-10  # relative to the width of the bounds


def adjacency(graph: nx.Graph) -> sp.csr_array:
    """Adjacency of the largest component, weights included."""
    nodes = max(nx.connected_components(graph), key=len)
    return sp.csr_array(nx.to_scipy_sparse_array(graph.subgraph(nodes), dtype=np.float64))


@dataclass(frozen=True)
class Case:
    """A matrix with its known vectors, bounds, and (computed once) all other eigenpairs."""

    matrix: sp.csr_array
    known: Array
    bounds: tuple[float, float]

    @property
    def width(self) -> float:
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        # The known pairs are moved out of the way, to the upper end.
        shifted = self.matrix.toarray() + 2 * self.width * self.known @ self.known.conj().T
        values, vectors = np.linalg.eigh(shifted)
        rest = values.size - self.known.shape[1]
        return values[:rest], vectors[:, :rest]


def laplacian(A: sp.csr_array) -> Case:
    degree = A.sum(axis=1)
    n = A.shape[0]
    matrix = sp.csr_array(sp.diags_array(degree) - A)
    return Case(matrix, np.full((n, 1), n**-0.5), (0.0, 2 * float(degree.max())))


def normalised(A: sp.csr_array) -> Case:
    root = np.sqrt(A.sum(axis=1))
    scale = sp.diags_array(1 / root)
    N = sp.csr_array(sp.eye_array(A.shape[0]) - scale @ A @ scale)
    return Case(N, (root / np.linalg.norm(root))[:, None], (0.0, 2.0))


def pendants(path: int, hubs: int, each: int) -> nx.Graph:
    """A path with `each` leaves on some nodes: N has eigenvalue 1 hubs * (each - 1) times."""
    graph = nx.path_graph(path)
    for hub in range(hubs):
        graph.add_edges_from((hub, (hub, leaf)) for leaf in range(each))
    return graph


def weighted(graph: nx.Graph, seed: int) -> nx.Graph:
    rng = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.1, 3.0))
    return graph


def torus(rows: int, columns: int) -> nx.Graph:
    return nx.grid_2d_graph(rows, columns, periodic=True)


GRAPHS = {
    "torus 8": lambda: torus(8, 8),
    "torus 20": lambda: torus(20, 20),
    "hypercube 8": lambda: nx.hypercube_graph(8),
    "hypercube 9": lambda: nx.hypercube_graph(9),
    "tree": lambda: nx.random_labeled_tree(500, seed=1),
    "path": lambda: nx.path_graph(300),
    "geometric": lambda: nx.random_geometric_graph(450, 0.08, seed=2),
    "blocks": lambda: nx.planted_partition_graph(6, 80, 0.15, 0.01, seed=3),
    "attachment": lambda: nx.barabasi_albert_graph(450, 3, seed=4),
    "bipartite": lambda: nx.bipartite.random_graph(200, 300, 0.03, seed=5),
    "weighted": lambda: weighted(nx.watts_strogatz_graph(500, 6, 0.1, seed=6), 7),
    "pendants": lambda: pendants(300, 5, 21),
    "ring of cliques": lambda: nx.ring_of_cliques(40, 10),
    "star of paths": lambda: nx.from_edgelist(
        [((a, s - 1) if s else "c", (a, s)) for a in range(60) for s in range(6)]
    ),
}


@cache
def case(name: str, operator: str) -> Case:
    return {"L": laplacian, "N": normalised}[operator](adjacency(GRAPHS[name]()))


def expected_size(values: Array, count: int | None, below: float | None, gap_tol: float) -> int:
    """Size of the complete answer by the definition, from all eigenvalues."""
    size = count if count is not None else int((values <= (below or 0.0) + TOL).sum())
    while 0 < size < values.size and values[size] - values[size - 1] <= gap_tol:
        size += 1
    return size


def check(
    case: Case,
    *,
    count: int | None = None,
    below: float | None = None,
    which: Filter | None = None,
    max_pairs: int = 400,
    most_products: float = np.inf,
) -> BlockSolution:
    """Solve and compare values, residuals, orthogonality and projections with the dense solver."""
    gap_tol, tol = GAP * case.width, TOL * case.width
    solution = lowest_eigenpairs(
        case.matrix,
        count=count,
        below=below,
        known=case.known,
        bounds=case.bounds,
        gap_tol=gap_tol,
        tol=tol,
        max_pairs=max_pairs,
        most_products=most_products,
        _filter=which,
    )
    values, vectors = case.pairs
    m = expected_size(values, count, below, gap_tol)
    assert solution.values.shape == (m,)
    np.testing.assert_allclose(solution.values, values[:m], atol=1e-9 * case.width, rtol=0)
    assert np.all(np.diff(solution.values) >= 0)
    V = solution.vectors
    assert np.abs(V.conj().T @ V - np.eye(m)).max(initial=0) < 1e-10
    assert np.abs(case.known.conj().T @ V).max(initial=0) < 1e-10
    residuals = np.linalg.norm(case.matrix @ V - V * solution.values, axis=0)
    assert residuals.max(initial=0) <= tol
    np.testing.assert_allclose(solution.residuals, residuals, atol=1e-13 * case.width)
    padded = np.concatenate([[-np.inf], values, [np.inf]])
    edges = np.flatnonzero(np.diff(values[:m]) > gap_tol) + 1
    for space in np.split(np.arange(m), edges) if m else []:
        ours, theirs = V[:, space], vectors[:, space]
        wrong = np.abs(ours - theirs @ (theirs.conj().T @ ours)).max()
        # An eigenvector is only determined up to residual / distance to the other eigenvalues.
        first, last = space[0] + 1, space[-1] + 1
        near = min(padded[first] - padded[first - 1], padded[last + 1] - padded[last])
        assert wrong < max(1e-7, 2 * tol / near)
    return solution


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
@pytest.mark.parametrize("name", GRAPHS)
def test_all_copies_of_the_lowest_values(name: str, which: Filter) -> None:
    """Operators and counts take turns: each meets both filters and every graph."""
    turn = which == "solve"
    for count, operator in ((1, "LN"[turn]), (6, "NL"[turn]), (23, "LN"[turn]), (60, "NL"[turn])):
        given = case(name, operator)
        answer = expected_size(given.pairs[0], count, None, GAP * given.width)
        try:
            check(given, count=count, which=which)
        except TooManyPairs:
            assert 8 * answer > given.matrix.shape[0], "a small share of the pairs must be found"


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
@pytest.mark.parametrize("name", ["torus 20", "hypercube 9", "geometric", "pendants"])
def test_all_values_below_a_bound(name: str, which: Filter) -> None:
    given = case(name, "N")
    values = given.pairs[0]
    for below in (values[0] / 2, values[0], (values[9] + values[10]) / 2, values[40]):
        check(given, below=float(below), which=which)


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
def test_multiplicity_far_above_the_block(which: Filter) -> None:
    given = normalised(adjacency(pendants(60, 5, 21)))
    values = given.pairs[0]
    below_one = int((values < 1 - 1e-6).sum())
    assert int((np.abs(values - 1) < 1e-6).sum()) >= 100
    with pytest.raises(TooManyPairs):
        check(given, count=below_one + 1, which=which, max_pairs=below_one + 50)


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
def test_multiplicity_of_a_hundred(which: Filter) -> None:
    """A star of 100 leaves on an expander: 99 copies of the value 1 lie among the lowest."""
    graph = nx.disjoint_union(nx.star_graph(100), nx.random_regular_graph(6, 900, seed=1))
    graph.add_edge(0, 101)
    given = laplacian(adjacency(graph))
    values = given.pairs[0]
    assert int((np.abs(values - 1) < 1e-9).sum()) == 99
    assert check(given, count=3, which=which).values.size >= 99


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
def test_random_verification_alone_finds_every_copy(
    which: Filter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the inertia count the fresh random block has to find what the iteration missed."""
    monkeypatch.setattr(davidson, "count_below", lambda *_: None)
    for name in ("hypercube 9", "torus 20", "tree", "geometric"):
        for count in (1, 12, 30):
            assert not check(case(name, "L"), count=count, which=which).certified


@pytest.mark.parametrize(
    "graph",
    [nx.complete_graph(30), nx.complete_graph(400), nx.star_graph(50), nx.star_graph(700)],
    ids=["K30", "K400", "star 50", "star 700"],
)
def test_one_eigenspace_that_fills_the_space_is_for_a_dense_solver(graph: nx.Graph) -> None:
    with pytest.raises(TooManyPairs):
        check(normalised(adjacency(graph)), count=1, max_pairs=1000)


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
def test_magnetic_laplacian(which: Filter) -> None:
    rng = np.random.default_rng(0)
    A = adjacency(torus(16, 20)).tocoo()
    upper = A.row < A.col
    phase = np.exp(2j * np.pi * 0.1 * rng.integers(-1, 2, int(upper.sum())))
    half = sp.coo_array((phase, (A.row[upper], A.col[upper])), shape=A.shape)
    hermitian = sp.csr_array(half + half.conj().T)
    matrix = sp.csr_array(sp.eye_array(A.shape[0]) - hermitian / 4)
    given = Case(matrix, np.zeros((A.shape[0], 0), np.complex128), (0.0, 2.0))
    for count in (1, 10, 40):
        assert np.iscomplexobj(check(given, count=count, which=which).vectors)


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
@pytest.mark.parametrize("name", ["bipartite", "attachment", "torus 20", "pendants"])
def test_top_of_an_adjacency(name: str, which: Filter) -> None:
    A = adjacency(GRAPHS[name]())
    bound = float(A.sum(axis=1).max())
    given = Case(sp.csr_array(-A), np.zeros((A.shape[0], 0)), (-bound, bound))
    for count in (1, 12, 40):
        check(given, count=count, which=which)


def test_same_seed_same_answer() -> None:
    first, second = (check(case("geometric", "N"), count=10) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.vectors, second.vectors)


def test_choice_of_filter() -> None:
    road = normalised(adjacency(nx.path_graph(700)))
    assert check(road, count=5).filter == "solve"
    expander = normalised(adjacency(nx.random_regular_graph(6, 700, seed=0)))
    assert check(expander, count=5).filter == "chebyshev"


def test_arguments_are_checked() -> None:
    given = normalised(adjacency(nx.path_graph(20)))
    with pytest.raises(ValueError, match="exactly one"):
        check(given)
    with pytest.raises(ValueError, match="between 1 and 19"):
        check(given, count=20)


def test_budget_ends_in_not_converged() -> None:
    given = case("attachment", "N")
    with pytest.raises(NotConverged, match="converged within") as caught:
        lowest_eigenpairs(
            given.matrix,
            count=5,
            known=given.known,
            bounds=given.bounds,
            gap_tol=GAP,
            tol=1e-18,
            max_pairs=100,
        )
    assert caught.value.values.size == caught.value.vectors.shape[1]


@pytest.mark.parametrize("which", ["solve", "chebyshev"])
def test_a_limit_of_what_the_filters_may_cost(which: Filter) -> None:
    one = case("torus 20", "L")
    check(one, count=20, which=which, most_products=1e6)
    with pytest.raises(TooManyPairs):
        check(one, count=20, which=which, most_products=20)


def test_inertia_counts_eigenvalues() -> None:
    matrix = case("geometric", "N").matrix
    values = np.linalg.eigvalsh(matrix.toarray())
    operator = Operator(matrix)
    for index in (1, 7, 100):
        shift = (values[index - 1] + values[index]) / 2
        assert count_below(operator, shift, (values[index] - values[index - 1]) / 2) == index
    assert count_below(operator, float(values[7]), 1e-14) in (None, 7, 8)


def test_fill_estimate_orders_graphs() -> None:
    tree, mesh, expander = (
        estimate_fill(adjacency(graph)) / 1000
        for graph in (
            nx.random_labeled_tree(1000, seed=0),
            torus(25, 40),
            nx.random_regular_graph(6, 1000, seed=0),
        )
    )
    assert tree < 3 < mesh < 50 < expander
