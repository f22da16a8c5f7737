import numpy as np
import pytest
import torch
from scipy.sparse import csgraph

from cases import GRAPHS, OPERATORS, spectrum
from nlsf.data import load, random_geometric
from nlsf.errors import BandError, MemoryBudgetError, SpectrumError
from nlsf.spectral import (
    AtomBands,
    DyadicBands,
    IndexBands,
    IntervalBands,
    Lens,
    ShiftOperator,
    UniformBands,
    adjacency,
    laplacian,
    magnetic_laplacian,
    partial_eigh,
)
from nlsf.spectral.eigen import basis, components, eigensolve
from nlsf.spectral.eigen.basis import NotConverged
from nlsf.spectral.eigen.request import EigenRequest
from nlsf.testing.graphs import complete, disjoint, star, torus
from zoo import zoo

ITERATIVE = {"dense_limit": 2}


def assert_same(found, expected):
    """Same eigenspaces: values, multiplicities and projections; vectors may differ inside."""
    assert found.multiplicities.tolist() == expected.multiplicities.tolist()
    tol = 1e-8 * max(expected.lam_max - expected.lam_min, 1e-300)
    torch.testing.assert_close(found.values, expected.values, atol=tol, rtol=0)
    overlap = found.vectors.mH @ expected.vectors
    same = found.eigenspaces[:, None] == expected.eigenspaces[None, :]
    assert (overlap[~same].abs() < 1e-6).all()
    gram = found.vectors.mH @ found.vectors
    torch.testing.assert_close(gram, torch.eye(len(gram), dtype=gram.dtype), atol=1e-10, rtol=0)


NAMED = {
    "torus": torus(8, 8),
    "complete": complete(30),
    "star": star(40),
    "triangles": disjoint(complete(3), 50),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("operator", ["L", "N", "A", "magnetic N"])
def test_iterative_equals_dense_for_every_j(name, operator):
    shift = OPERATORS[operator](NAMED[name])
    every = partial_eigh(shift).num_eigenspaces
    for J in (*range(1, every + 2), 2 * every):  # past the last one nothing more may come
        dense = partial_eigh(shift, bands=IndexBands(J))
        assert dense.solver == "components, dense"
        assert_same(partial_eigh(shift, bands=IndexBands(J), **ITERATIVE), dense)


@pytest.mark.parametrize("chunk", range(6))
def test_nothing_is_missed_or_invented_in_the_zoo(chunk, monkeypatch):
    real, solved = components.lowest_eigenpairs, []

    def count(*arguments, **options):
        solved.append(real(*arguments, **options))
        return solved[-1]

    monkeypatch.setattr(components, "lowest_eigenpairs", count)
    for index in range(20 * chunk, 20 * chunk + 20):
        kind, graph = zoo(index)
        operator = "N" if index % 2 else "L"
        shift = OPERATORS[operator](graph)
        expected = partial_eigh(shift, bands=IndexBands(20), dense_limit=10**6)
        found = partial_eigh(shift, bands=IndexBands(20), **ITERATIVE)
        try:
            assert_same(found, expected)
        except AssertionError as error:
            raise AssertionError(f"graph {index}, {kind}, {operator}: {error}") from error
        # and against LAPACK on the whole matrix, without any of our code
        lapack = np.linalg.eigvalsh(shift.matrix.toarray())[: found.num_pairs]
        np.testing.assert_allclose(found.values, lapack, atol=1e-8 * shift.scale)
    assert len(solved) >= 20, "the block method really ran"


@pytest.mark.data
@pytest.mark.parametrize(("name", "operator"), [("cora", "L"), ("citeseer", "N")])
def test_iterative_equals_dense_on_real_graphs_for_many_j(root, name, operator):
    shift = OPERATORS[operator](load(name, root).graphs[0])
    every = partial_eigh(shift)
    assert every.is_complete
    for J in (1, 3, 20, 60):
        found = partial_eigh(shift, bands=IndexBands(J), dense_limit=500)
        assert found.num_eigenspaces == J
        expected = every.multiplicities[:J].sum()
        assert found.num_pairs == expected
        torch.testing.assert_close(
            found.values, every.values[:expected], atol=1e-9 * shift.scale, rtol=0
        )
    assert found.solver == "components, block method"
    V = found.vectors
    overlap = (V.mT @ every.vectors[:, : V.shape[1]]).abs()
    other = found.eigenspaces[:, None] != every.eigenspaces[None, : V.shape[1]]
    assert (overlap[other] < 1e-6).all()


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_at_least_k_pairs_and_no_eigenspace_cut(operator, graph):
    shift, every = OPERATORS[operator](GRAPHS[graph]), spectrum(operator, graph)
    ends = every.multiplicities.cumsum(0).tolist()
    for k in (1, 2, 5, 1000):
        found = partial_eigh(shift, k=k, **ITERATIVE)
        assert found.num_pairs >= min(k, shift.num_nodes)
        assert found.num_pairs in [0, *ends]
        smaller = [end for end in ends if end < found.num_pairs]
        assert not smaller or smaller[-1] < k, "no more than needed"
        expected = every.multiplicities[: found.num_eigenspaces]
        assert found.multiplicities.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "bands",
    [
        DyadicBands(0.5, 6, 4),
        DyadicBands(0.5, 6),
        UniformBands(20, 3),
        IntervalBands([(0.1, 0.2)]),
        IndexBands(7),
    ],
    ids=repr,
)
@pytest.mark.parametrize("operator", ["L", "N", "A", "magnetic N"])
def test_bands_get_what_they_need_from_both_routes(bands, operator):
    shift = OPERATORS[operator](random_geometric(400, 7.0, seed=4))
    dense = partial_eigh(shift, bands=bands)
    iterative = partial_eigh(shift, bands=bands, dense_limit=50)
    assert_same(iterative, dense)
    assert iterative.lam_max == pytest.approx(dense.lam_max)
    x = torch.randn(400, 2, dtype=dense.vectors.dtype)
    complete_ = Lens.of(partial_eigh(shift), bands)
    for a, b, c in zip(
        *(Lens.of(s, bands)(x).parts() for s in (dense, iterative)),
        complete_(x).parts(),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=0)
        torch.testing.assert_close(a, c, atol=1e-7, rtol=0)


def test_atoms_need_everything():
    spectrum = partial_eigh(laplacian(random_geometric(60)), bands=AtomBands())
    assert spectrum.is_complete


def test_the_kernel_comes_from_the_components():
    graph = random_geometric(3000, 5.0, seed=0)
    shift = laplacian(graph, normalization="sym")
    count, labels = csgraph.connected_components(shift.matrix)
    spectrum = partial_eigh(shift, k=1)
    assert spectrum.num_pairs == spectrum.nullity == count > 1
    assert (spectrum.values == 0).all()
    # every vector of the kernel, divided by the square root of the degree, is constant on
    # components: their projection is the exact one
    root = torch.from_numpy(shift.null_vector)
    indicator = torch.zeros(3000, count, dtype=torch.float64)
    indicator[torch.arange(3000), torch.from_numpy(labels.astype(np.int64))] = root
    indicator /= indicator.norm(dim=0)
    V = spectrum.vectors
    torch.testing.assert_close(V @ (V.mT @ indicator), indicator)


def test_a_band_below_the_spectrum_is_empty():
    shift = ShiftOperator.from_matrix(5 * np.eye(4))
    spectrum = partial_eigh(shift, bands=IntervalBands([(0.0, 1.0)]))
    assert spectrum.num_pairs == 0
    x = torch.randn(4, 2, dtype=torch.float64)
    for part, expected in zip(
        Lens.of(spectrum, IntervalBands([(0.0, 1.0)]))(x).parts(), (0 * x, x), strict=True
    ):
        torch.testing.assert_close(part, expected)


def test_results_repeat_exactly():
    shift = laplacian(random_geometric(1500, 6.0))
    a, b = (partial_eigh(shift, k=20, dense_limit=100) for _ in range(2))
    assert a.values.equal(b.values)
    assert a.vectors.equal(b.vectors)


def test_global_random_state_is_left_alone():
    before = torch.random.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    partial_eigh(laplacian(random_geometric(300, 7.0)), k=5, dense_limit=50)
    after = torch.random.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert before[0].equal(after[0])
    assert before[1] == after[1]


def test_indefinite_custom_matrices():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((60, 60))
    shift = ShiftOperator.from_matrix(M + M.T)
    for order in ("ascending", "descending"):
        shift = ShiftOperator.from_matrix(M + M.T, order=order)
        for request in ({"k": 5}, {"bands": UniformBands(6, 2)}, {}):
            found = partial_eigh(shift, **request, dense_limit=10)
            expected = np.linalg.eigvalsh(M + M.T)
            expected = expected if order == "ascending" else expected[::-1]
            np.testing.assert_allclose(found.values, expected[: found.num_pairs], atol=1e-9)
            assert found.frequencies[0] == 0
            assert found.bandwidth == pytest.approx(np.ptp(expected))


def test_what_does_not_fit_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(eigensolve, "solve_dense", None)
    monkeypatch.setattr(components, "solve_dense", None)
    monkeypatch.setattr("nlsf.spectral.eigen.lowest.Davidson", None)
    shift = laplacian(random_geometric(4000, 9.0))
    with pytest.raises(MemoryBudgetError, match=r"component with 4,000 nodes .* 0\.64 GB"):
        partial_eigh(shift, memory_limit=10**8)
    with pytest.raises(MemoryBudgetError, match="332 eigenpairs of a component") as caught:
        partial_eigh(shift, k=301, memory_limit=10**7)
    assert caught.value.needed > caught.value.limit == 10**7
    with pytest.raises(MemoryBudgetError, match=r"About \d+ eigenpairs .* fewer bands"):
        partial_eigh(shift, bands=UniformBands(20, 1), memory_limit=8 * 10**6)


def test_giving_up_carries_residuals(monkeypatch):
    def never(*args, **kwargs):
        raise NotConverged((np.zeros(2), np.zeros((1500, 2)), np.array([1e-3, 1.0])))

    monkeypatch.setattr(components, "lowest_eigenpairs", never)
    monkeypatch.setattr(components, "DENSE_RESCUE", 100)
    shift = laplacian(random_geometric(1500, 12.0))
    with pytest.raises(SpectrumError, match="2 eigenpairs converged") as caught:
        partial_eigh(shift, k=5)
    assert caught.value.residuals.tolist() == [1e-3, 1.0]
    monkeypatch.setattr(components, "DENSE_RESCUE", 5000)
    assert partial_eigh(shift, k=5).num_pairs == 5, "a dense solve steps in"


def paley(q):
    """Nodes are numbers modulo a prime; those whose difference is a square are neighbours."""
    squares = torch.arange(1, q).square().remainder(q).unique()
    first = torch.arange(q).repeat_interleave(len(squares))
    return torch.stack([first, (first + squares.repeat(q)) % q])


def test_an_eigenspace_that_fills_half_of_the_graph_is_solved_densely(monkeypatch):
    """The block method would multiply for a hundred times as long before it sees the end of it."""
    products = []
    count = basis.Operator._accumulate

    def counted(operator, block, *arguments):
        products.append(block.shape[1])
        count(operator, block, *arguments)

    monkeypatch.setattr(basis.Operator, "_accumulate", counted)
    shift = laplacian(paley(701))
    found = partial_eigh(shift, k=90)
    assert found.multiplicities.tolist() == [1, 350]
    limit = components._most_products(EigenRequest(shift, None, 0, 0, 600, None, 0), shift.matrix)
    # Besides the filters, only the probe of the spectrum multiplies.
    assert sum(products) < limit + 500
    torch.testing.assert_close(found.values[1:], torch.full((350,), (701 - 701**0.5) / 2).double())


def test_the_block_method_stays_where_a_dense_solve_would_not_fit():
    shift = laplacian(torus(30, 31))
    request = EigenRequest(shift, None, 0, 0, 600, 10**6, 0)
    assert components._most_products(request, shift.matrix) == np.inf


def test_bad_requests():
    shift = laplacian(GRAPHS["ring"])
    with pytest.raises(BandError, match="at least 1"):
        partial_eigh(shift, k=0)
    with pytest.raises(BandError, match="not both"):
        partial_eigh(shift, k=3, bands=IndexBands(3))


def test_a_directed_graph_keeps_its_direction():
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    one_way = partial_eigh(magnetic_laplacian(edges, q=0.125))
    both = partial_eigh(magnetic_laplacian(torch.cat([edges, edges.flip(0)], 1), q=0.125))
    assert one_way.vectors.is_complex()
    assert not torch.allclose(2 * one_way.values, both.values)
    assert partial_eigh(adjacency(edges, symmetrize="sum")).values[0] == pytest.approx(2)
