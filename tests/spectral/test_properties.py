"""Laws on graphs that nobody thought of: drawn edge lists, with doubles, loops and loose nodes."""

import functools
import warnings

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from cases import BANDS
from nlsf.errors import SelfLoopWarning
from nlsf.spectral import Lens, laplacian, partial_eigh

TOL = 1e-9
# Derandomised: the same examples in every run, so that a failure is there again.
drawn = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def edge_lists(draw):
    """Ends (2, E), weights (E,) or none, and the number of nodes, 0 to 9."""
    num_nodes = draw(st.integers(0, 9))
    if num_nodes == 0:
        return torch.zeros(2, 0, dtype=torch.int64), None, 0
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=16))
    # Of very different sizes, also so small that an edge nearly is none.
    weight = st.sampled_from([1.0, 0.5, 3.0, 1e-6, 1e4])
    weights = draw(st.none() | st.lists(weight, min_size=len(pairs), max_size=len(pairs)))
    ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    return ends, None if weights is None else torch.tensor(weights, dtype=torch.float64), num_nodes


def operators(test):
    """Gives the test a drawn graph, whether to normalise and whether to add loops."""

    @given(graph=edge_lists(), normalization=st.sampled_from([None, "sym"]), loops=st.booleans())
    @functools.wraps(test)
    def run(graph, normalization, loops, **others):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelfLoopWarning)
            test(graph, normalization, loops, **others)

    return drawn(run)


def operator(graph, normalization, loops):
    return laplacian(*graph, normalization, self_loops=loops, symmetrize="sum")


def transcribed(graph, normalization, loops):
    """The same matrix, from the formula, entry by entry."""
    (starts, ends), weights, n = graph
    A = np.zeros((n, n))
    for e in range(len(starts)):
        i, j = int(starts[e]), int(ends[e])
        if i != j:
            A[i, j] += 1.0 if weights is None else float(weights[e])
    A = A + A.T
    if normalization is None:
        return np.diag(A.sum(1)) - A
    A = A + np.eye(n) * loops
    degree = A.sum(1)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in degree])
    return np.diag((degree > 0).astype(float)) - scale[:, None] * A * scale


@operators
def test_the_operator_is_its_formula(graph, normalization, loops):
    expected = transcribed(graph, normalization, loops)
    found = operator(graph, normalization, loops).matrix.toarray()
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, atol=1e-12 * scale, rtol=0)


@operators
def test_neither_the_order_nor_the_direction_of_edges_matters(graph, normalization, loops):
    ends, weights, n = graph
    flipped = ends.flip(0).flip(1), None if weights is None else weights.flip(0), n
    ours, theirs = (operator(g, normalization, loops).matrix.toarray() for g in (graph, flipped))
    np.testing.assert_allclose(theirs, ours, atol=1e-12 * max(1.0, np.abs(ours).max(initial=0.0)))


@operators
def test_eigenpairs_are_those_of_the_operator(graph, normalization, loops):
    shift = operator(graph, normalization, loops)
    spectrum = partial_eigh(shift)
    L, V = torch.from_numpy(shift.matrix.toarray()), spectrum.vectors
    scale = max(1.0, float(L.abs().max()) if L.numel() else 0.0)
    n = graph[2]
    assert V.shape == (n, n)
    torch.testing.assert_close(V.T @ V, torch.eye(n, dtype=V.dtype), atol=TOL, rtol=0)
    torch.testing.assert_close(L @ V, V * spectrum.values, atol=TOL * scale, rtol=0)
    pieces = connected_components(shift.matrix, directed=False)[0] if n else 0
    assert spectrum.nullity == pieces
    first = spectrum.eigenspaces == 0
    assert int(first.sum()) == pieces


@drawn
@given(graph=edge_lists(), normalization=st.sampled_from([None, "sym"]),
       bands=st.sampled_from(sorted(BANDS)), partial=st.booleans())  # fmt: skip
def test_projections_are_orthogonal_commute_and_sum_to_the_identity(
    graph, normalization, bands, partial
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)
        shift = operator(graph, normalization, False)
    spectrum = partial_eigh(shift, bands=BANDS[bands]) if partial else partial_eigh(shift)
    P = Lens.of(spectrum, BANDS[bands])
    n = graph[2]
    eye = torch.eye(n, dtype=torch.float64)
    L = torch.from_numpy(shift.matrix.toarray())
    scale = max(1.0, float(L.abs().max()) if n else 0.0)
    parts = [part.clone() for part in P(eye).parts()]
    torch.testing.assert_close(sum(parts), eye, atol=TOL, rtol=0)
    for j, part in enumerate(parts):
        torch.testing.assert_close(part @ L, L @ part, atol=10 * TOL * scale, rtol=0)
        for i, other in enumerate(parts):
            expected = part if i == j else torch.zeros_like(part)
            torch.testing.assert_close(part @ other, expected, atol=10 * TOL, rtol=0)
    x = torch.randn(n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    energy = P(x).norms().square().sum(-2)
    torch.testing.assert_close(energy, x.square().sum(0), atol=TOL, rtol=TOL)


@operators
def test_renumbered_nodes_have_renumbered_projections(graph, normalization, loops):
    ends, weights, n = graph
    order = torch.randperm(n, generator=torch.Generator().manual_seed(1))
    bands = BANDS["uniform"]
    found = []
    for places in (torch.arange(n), order):
        shift = operator((places[ends], weights, n), normalization, loops)
        P = Lens.of(partial_eigh(shift, bands=bands), bands)
        eye = torch.eye(n, dtype=torch.float64)
        found.append([p.clone()[places][:, places] for p in P(eye).parts()])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(theirs, ours, atol=10 * TOL, rtol=0)


def test_what_is_drawn_has_all_that_is_feared():
    seen = set()

    @settings(drawn, max_examples=60)
    @given(graph=edge_lists())
    def look(graph):
        (starts, ends), weights, n = graph
        pairs = list(zip(starts.tolist(), ends.tolist(), strict=True))
        seen.update(
            name
            for name, there in {
                "no node": n == 0,
                "no edge": n > 0 and not pairs,
                "loop": any(i == j for i, j in pairs),
                "double": len(set(pairs)) < len(pairs),
                "loose node": n > len({i for pair in pairs for i in pair}) > 0,
                "weights": weights is not None and len(weights) > 0,
            }.items()
            if there
        )

    look()
    assert seen == {"no node", "no edge", "loop", "double", "loose node", "weights"}
