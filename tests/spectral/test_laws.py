"""What must hold for every operator, every family of bands, every precision and every graph."""

import itertools

import pytest
import torch

from cases import BANDS, DTYPES, GRAPHS, OPERATORS, lens, signal, spectrum
from nlsf.spectral import Lens, partial_eigh
from nlsf.testing import (
    assert_basis_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    assert_shift_equivariant,
    assert_shift_invariant,
)

# Precisions take turns: every operator and every family meets both of them.
every_case = pytest.mark.parametrize(
    ("operator", "bands", "dtype"),
    [
        (operator, bands, list(DTYPES)[(i + j) % 2])
        for i, operator in enumerate(OPERATORS)
        for j, bands in enumerate(BANDS)
    ],
)
SOME = ["weighted", "torus", "two equal components", "star", "one edge and an isolated node"]
EXACT = {"float32": 1e-5, "float64": 1e-10}


def response(norms):
    """A fixed nonlinear response, different in every band and channel."""
    bands, channels = norms.shape[-2:]
    ramp = torch.linspace(0.5, 1.5, bands * channels).reshape(bands, channels)
    return torch.tanh(norms) + ramp.to(norms)


def mixing(norms, out):
    """Coefficients (..., B, d, out) that depend on all norms."""
    column = torch.linspace(-1.0, 1.0, out).to(norms)
    return torch.sin(norms.unsqueeze(-1) + column) + norms.mean((-2, -1))[..., None, None, None]


def forms(norms):
    """Coefficients of all three forms of synthesis."""
    bands, channels = norms.shape[-2:]
    full = mixing(norms, 2 * bands).reshape(*norms.shape[:-2], bands * channels, 2 * bands)
    return {"diagonal": response(norms), "matrices": mixing(norms, 4), "full": full}


@every_case
def test_projections_partition_the_identity(operator, bands, dtype):
    """Of partial spectra; the next law says that those of complete ones are the same."""
    tol = EXACT[dtype]
    for graph in GRAPHS:
        P = lens(operator, bands, dtype, graph)
        eye = torch.eye(P.num_nodes, dtype=P.dtype)
        parts = [p.clone() for p in P(eye).parts()]
        assert len(parts) == P.n_bands == BANDS[bands].n_bands + 1
        torch.testing.assert_close(sum(parts), eye, atol=tol, rtol=0)
        used = [j for j in range(P.n_bands) if P.dimension[j] > 0]
        assert all(not parts[j].any() for j in range(P.n_bands) if j not in used)
        if not used:
            continue
        each = torch.stack([parts[j] for j in used])
        assert (each - each.mH).abs().max() <= tol
        trace = each.diagonal(dim1=-2, dim2=-1).sum(-1).real
        assert (trace - P.dimension[used]).abs().max() < 1e-3
        for j, part in enumerate(each):  # P_j P_i is P_j for i = j, and 0 otherwise
            products = part @ each
            products[j] -= part
            assert products.abs().max() <= tol


@every_case
def test_partial_and_complete_spectra_give_the_same_projections(operator, bands, dtype):
    for graph in SOME:
        some = lens(operator, bands, dtype, graph)
        every = lens(operator, bands, dtype, graph, complete=True)
        x = signal(some)
        for a, b in zip(some(x).parts(), every(x).parts(), strict=True):
            torch.testing.assert_close(a, b, atol=10 * EXACT[dtype], rtol=0)


@every_case
def test_leading_projections_are_those_without_the_complement(operator, bands, dtype):
    for graph in SOME:
        lead = lens(operator, bands, dtype, graph, complement=False)
        full = lens(operator, bands, dtype, graph)
        x = signal(full)
        assert lead.n_bands == full.n_bands - 1
        for a, b in zip(lead(x).parts(), full(x).parts(), strict=False):
            torch.testing.assert_close(a, b, atol=10 * EXACT[dtype], rtol=0)


@every_case
def test_analysis_is_invariant_and_keeps_the_energy(operator, bands, dtype):
    for graph, complement in itertools.product(SOME, (True, False)):
        P = lens(operator, bands, dtype, graph, complement=complement)
        assert_shift_invariant(lambda x, P=P: P(x).norms(), P)
        assert_shift_invariant(lambda x, P=P: P(x).norms(), P.spectrum)
        x = signal(P)
        if complement:
            total = P(x).norms().square().sum(-2)
            torch.testing.assert_close(total, x.abs().square().sum(-2))


@every_case
def test_synthesis_is_equivariant_in_every_form(operator, bands, dtype):
    """The exponents take turns: each meets every form and every graph, in every case."""
    exponents = itertools.cycle((0.0, 0.5, 1.0))
    for _ in range(list(BANDS).index(bands) % 3):  # and the three together, in another case
        next(exponents)
    for graph in SOME:
        P = lens(operator, bands, dtype, graph)
        for form in ("diagonal", "matrices", "full"):
            a = next(exponents)

            def layer(x, P=P, form=form, a=a):
                return P(x).synthesize(forms(P(x).norms())[form], form=form, a=a, eps=1e-3)

            assert_shift_equivariant(layer, P, samples=2)
            assert_shift_equivariant(layer, P.spectrum, samples=2)
        next(exponents)


@every_case
def test_the_basis_inside_an_eigenspace_does_not_matter(operator, bands, dtype):
    def layer(x, spectrum):
        P = Lens.of(spectrum, BANDS[bands])
        return P(x).synthesize(response(P(x).norms()), eps=1e-3)

    for graph in GRAPHS:
        assert_basis_invariant(layer, spectrum(operator, graph, bands).to(DTYPES[dtype]))


@every_case
def test_permutation_equivariance(operator, bands, dtype):
    def build(shift):
        spectrum = partial_eigh(shift, bands=BANDS[bands]).to(DTYPES[dtype])
        return Lens.of(spectrum, BANDS[bands])

    def layer(x, shift):
        P = build(shift)
        return P(x).synthesize(response(P(x).norms()), eps=1e-3)

    def norms(x, shift):
        P = build(shift)
        return torch.stack([P(x).norms(p=p) for p in (1.0, 2.0, 3.0)])

    for graph in SOME:
        shift = OPERATORS[operator](GRAPHS[graph])
        x = signal(lens(operator, bands, dtype, graph))
        assert_permutation_equivariant(layer, shift, x)
        assert_permutation_invariant(norms, shift, x)


@every_case
def test_synthesis_is_an_isometry_and_analysis_its_adjoint(operator, bands, dtype):
    """App. D.3: for a = 1, e -> 0, <S(r), x> = <r, A(x)> and |S(r)| = |r| where no band is zero."""
    tol = {"float32": 1e-4, "float64": 1e-8}[dtype]
    for graph in SOME:
        P = lens(operator, bands, dtype, graph)
        x = signal(P, channels=1)
        norms = P(x).norms()
        r = response(norms) * (norms > 1e-3)
        y = P(x).synthesize(r, a=1.0, eps=1e-12)
        size = r.norm()
        torch.testing.assert_close(torch.linalg.vector_norm(y).to(size), size, atol=tol, rtol=tol)
        inner = (x.conj() * y).sum().real
        torch.testing.assert_close(inner, (r * norms).sum(), atol=tol, rtol=tol)


@every_case
def test_leading_dimensions_are_signals_one_by_one(operator, bands, dtype):
    P = lens(operator, bands, dtype, "torus")
    x = signal(P, leading=(2, 3))
    norms = P(x).norms()
    coefficients = forms(norms)
    for form, r in coefficients.items():
        many = P(x).synthesize(r, form=form, eps=1e-3)
        for i in range(2):
            for j in range(3):
                torch.testing.assert_close(norms[i, j], P(x[i, j]).norms())
                one = P(x[i, j]).synthesize(r[i, j], form=form, eps=1e-3)
                torch.testing.assert_close(many[i, j], one, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_hostile_graph_goes_through(operator, graph):
    for bands in BANDS:
        P = lens(operator, bands, "float64", graph)
        x = signal(P)
        norms = P(x).norms()
        assert norms.shape == (P.n_bands, 3)
        assert torch.isfinite(norms).all()
        assert (norms[P.dimension == 0] == 0).all(), "an empty band has coefficients of exactly 0"
        for form, r in forms(norms).items() if P.num_nodes else ():
            assert torch.isfinite(P(x).synthesize(r, form=form)).all()
