import math

import numpy as np
import pytest
import torch
from scipy import sparse

from nlsf.errors import MemoryBudgetError
from nlsf.spectral import (
    Lens,
    PolynomialBands,
    ShiftOperator,
    UniformBands,
    adjacency,
    laplacian,
    magnetic_laplacian,
    partial_eigh,
)
from nlsf.spectral.eigen import request as module
from nlsf.spectral.eigen.request import available_memory, ends_request, range_of, require_memory
from nlsf.testing.graphs import (
    TinyGraph,
    disjoint,
    hostile_graphs,
    path,
    ring,
    star,
    tiny_graphs,
    torus,
)

GRAPHS = {
    **tiny_graphs(),
    **hostile_graphs(),
    "large torus": torus(30, 31),
    "many stars": disjoint(star(20), 40),
}


def frequency_range(shift):
    return range_of(ends_request(shift))


def operators(graph):
    arguments = graph.edge_index, graph.edge_weight, graph.num_nodes
    yield laplacian(*arguments)
    yield laplacian(*arguments, "sym", self_loops=True)
    yield adjacency(*arguments)
    yield magnetic_laplacian(*arguments)


@pytest.mark.filterwarnings("error::nlsf.errors.NumericalWarning")
@pytest.mark.parametrize("closed", [True, False])
def test_the_ends_where_eigenvalues_crowd(closed):
    """Rings and paths of 10,001 nodes; those of a ring know each other by four millionths."""
    n = 10_001
    graph = ring(n) if closed else path(n)
    step = math.pi / n
    largest = 2 + 2 * math.cos(step)
    assert frequency_range(laplacian(graph))[1] == pytest.approx(largest, rel=1e-12)
    normalised = 1 + math.cos(step) if closed else 2.0
    assert frequency_range(laplacian(graph, normalization="sym"))[1] == pytest.approx(
        normalised, rel=1e-12
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_the_ends_and_their_bounds(name, monkeypatch):
    for shift in operators(GRAPHS[name]):
        sign = 1 if shift.order == "ascending" else -1
        values = np.sort(sign * np.linalg.eigvalsh(shift.to_dense().numpy()))
        monkeypatch.setattr(module, "SHARP", 10**9)
        low, far = frequency_range(shift)
        if len(values):
            assert far == pytest.approx(values[-1], abs=1e-8 * shift.scale)
        monkeypatch.setattr(module, "DENSE_LIMIT", 0)
        monkeypatch.setattr(module, "SHARP", 0)
        outer_low, outer_far = frequency_range(shift)
        monkeypatch.undo()
        # Bounds lie outside, and not far.
        rounding, width = 1e-9 * shift.scale, far - low
        assert outer_low - rounding <= low
        assert far <= outer_far + rounding
        assert outer_far - outer_low <= 1.05 * width + rounding


@pytest.mark.parametrize("name", ["large torus", "many stars"])
def test_leading_eigenpairs_beside_a_bound_on_the_last(name, monkeypatch):
    for shift in operators(GRAPHS[name]):
        exact = partial_eigh(shift, 9, dense_limit=5)
        monkeypatch.setattr(module, "SHARP", 0)
        bounded = partial_eigh(shift, 9, dense_limit=5)
        monkeypatch.undo()
        np.testing.assert_allclose(bounded.values, exact.values, atol=1e-9 * shift.scale)
        sign = 1 if shift.order == "ascending" else -1
        beyond = sign * (bounded.far - exact.far)
        assert -1e-9 * shift.scale <= beyond <= 0.05 * abs(exact.far - float(exact.values[0]))


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_bounds_of_weights_beyond_single_precision(unit, monkeypatch):
    graph = GRAPHS["large torus"]
    far = frequency_range(laplacian(graph))[1]
    heavy = laplacian(graph.edge_index, np.full(graph.edge_index.shape[1], unit), graph.num_nodes)
    monkeypatch.setattr(module, "DENSE_LIMIT", 0)
    monkeypatch.setattr(module, "SHARP", 0)
    assert far <= frequency_range(heavy)[1] / unit <= 1.05 * far


def multiples_of_the_identity(n):
    none = torch.zeros(2, 0, dtype=torch.int64)
    yield from ((shift, 0.0) for shift in operators(TinyGraph(none, n)))
    for c in (3.0, -0.5, 2.0 + 0j):
        yield ShiftOperator.from_matrix(c * sparse.eye_array(n, format="csr")), c.real


@pytest.mark.parametrize("n", [1, 3, module.DENSE_LIMIT, module.DENSE_LIMIT + 1])
def test_operators_with_one_eigenvalue(n):
    """That of a graph without edges is zero: the bands of frequency 0 hold everything."""
    for shift, c in multiples_of_the_identity(n):
        sign = 1 if shift.order == "ascending" else -1
        assert frequency_range(shift)[1] == pytest.approx(sign * c, abs=1e-12)
        P = Lens.of(shift, PolynomialBands(UniformBands(S=4), order=6))
        x = torch.randn(n, 2, dtype=P.dtype)
        torch.testing.assert_close(sum(P(x).parts()), x)
        if c <= 0:
            torch.testing.assert_close(P(x).part(0), x)


def test_what_fits_passes_and_what_does_not_says_how_much():
    assert available_memory() > 1e6
    require_memory(1000, None, "A list", "")
    with pytest.raises(
        MemoryBudgetError, match=r"A list would need about 2 GB, and 1 GB"
    ) as caught:
        require_memory(2 * 10**9, 10**9, "A list", "Ask for less.")
    assert caught.value.needed == 2 * 10**9
    assert caught.value.limit == 10**9
    assert isinstance(caught.value, MemoryError)
