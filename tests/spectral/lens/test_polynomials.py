import copy
import itertools

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

from cases import BANDS, DTYPES, GRAPHS, OPERATORS, signal
from nlsf.errors import BandError, SignalError
from nlsf.spectral import (
    DyadicBands,
    IntervalBands,
    Lens,
    PolynomialBands,
    UniformBands,
    adjacency,
    laplacian,
    partial_eigh,
)
from nlsf.spectral.kernels import chebyshev
from nlsf.spectral.kernels.chebyshev import ScaledOperator, chebyshev_traces
from nlsf.spectral.lens import ColumnLens, PolynomialLens
from nlsf.testing import (
    assert_permutation_equivariant,
    assert_permutation_invariant,
    assert_shift_equivariant,
    assert_shift_invariant,
)
from nlsf.testing.graphs import torus
from pairs import every_pair

FIXED = {name: bands for name, bands in BANDS.items() if bands.limits(1.0) is not None}
F64 = torch.float64


def polynomial(operator="L", bands="dyadic", graph="weighted", order=12, complement=True, pairs=0):
    shift = OPERATORS[operator](GRAPHS[graph])
    smooth = PolynomialBands(FIXED[bands], order, pairs)
    return Lens.of(shift, smooth, complement=complement)


def as_matrices(P):
    """The matrices P_j, (B, N, N)."""
    return torch.stack(list(P(torch.eye(P.num_nodes, dtype=P.dtype)).parts()))


@pytest.mark.parametrize("operator", ["N", "A", "magnetic L"])
@pytest.mark.parametrize("bands", FIXED)
def test_projections_sum_to_the_identity_and_lie_between_zero_and_one(operator, bands):
    small = (name for name, graph in GRAPHS.items() if graph.num_nodes < 20)
    options = itertools.cycle([(1, 0), (2, 3), (21, 0), (6, 2), (9, 50)])
    for graph, (order, pairs) in zip(small, options, strict=False):
        P = polynomial(operator, bands, graph, order, pairs=pairs)
        matrices = as_matrices(P)
        torch.testing.assert_close(
            matrices.sum(0), torch.eye(P.num_nodes, dtype=P.dtype), atol=1e-12, rtol=0
        )
        values = torch.linalg.eigvalsh(matrices)
        assert (values > -1e-12).all()
        assert (values < 1 + 1e-12).all()


@every_pair(operator=["L", "magnetic N"], bands=list(FIXED), dtype=list(DTYPES))
def test_energies_are_quadratic_forms_that_share_the_energy(operator, bands, dtype):
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    for graph in ("weighted", "star", "fifty triangles", "isolated nodes"):
        P = polynomial(operator, bands, graph, pairs=2).to(DTYPES[dtype])
        x = signal(P, leading=(2,))
        parts = P(x)
        energies = parts.energies()
        assert not energies.is_complex()
        assert (energies >= 0).all()
        total = x.abs().square().sum(-2)
        torch.testing.assert_close(energies.sum(-2), total, atol=tolerance, rtol=tolerance)
        forms = torch.stack([(x.conj() * parts.part(j)).sum(-2).real for j in range(P.n_bands)], -2)
        torch.testing.assert_close(energies, forms, atol=10 * tolerance, rtol=10 * tolerance)
        torch.testing.assert_close(parts.norms().square(), energies, atol=tolerance, rtol=1e-5)


@pytest.mark.parametrize("complement", [True, False])
@pytest.mark.parametrize("bands", ["dyadic", "dyadic, K < S", "intervals"])
def test_without_complement_the_other_bands_stay_as_they_are(bands, complement):
    P = polynomial("L", bands, complement=complement)
    x = signal(P)
    n = FIXED[bands].n_bands
    assert P.n_bands == n + complement
    kept = sum(P(x).part(j) for j in range(n))
    torch.testing.assert_close(sum(P(x).parts()), x if complement else kept)
    if FIXED[bands].covers_all:
        torch.testing.assert_close(kept, x)
        assert not complement or (P(x).part(n) == 0).all()


@pytest.mark.parametrize("operator", ["L", "A", "magnetic L"])
def test_with_growing_order_bands_between_eigenvalues_become_exact(operator):
    shift = OPERATORS[operator](GRAPHS["weighted"])
    spectrum = partial_eigh(shift)
    frequency = spectrum.frequencies
    middle = ((frequency[1:] + frequency[:-1]) / 2)[frequency.diff().argsort()[-2:]]
    low, high = sorted(middle.tolist())
    bands = IntervalBands([(0, low), (low, high), (high, float("inf"))])
    exact = Lens.of(spectrum, bands)
    x = signal(exact)
    errors, leakages = [], []
    for order in (8, 32, 128, 512):
        P = Lens.of(shift, PolynomialBands(bands, order))
        pairs = zip(P(x).parts(), exact(x).parts(), strict=True)
        errors.append(max(float((a - b).abs().max()) for a, b in pairs))
        leakages.append(float(P.leakage.max()))
    assert errors == sorted(errors, reverse=True)
    assert leakages == sorted(leakages, reverse=True)
    assert errors[-1] < 2e-3
    torch.testing.assert_close(P.dimension, exact.dimension.to(F64), atol=1e-2, rtol=0)
    torch.testing.assert_close(P.frequencies, exact.frequencies, atol=1e-2, rtol=0)


@pytest.mark.parametrize(("order", "pairs"), [(1, 0), (3, 0), (40, 0), (3, 4)])
@pytest.mark.parametrize("operator", OPERATORS)
def test_functional_shifts_are_respected_at_any_order(operator, order, pairs):
    P = polynomial(operator, "uniform", "torus", order, pairs=pairs)
    spectrum = partial_eigh(OPERATORS[operator](GRAPHS["torus"]))
    r = torch.randn(P.n_bands, 3, generator=torch.Generator().manual_seed(0), dtype=F64)
    maps = torch.randn(P.n_bands, 3, 2, generator=torch.Generator().manual_seed(1), dtype=F64)
    assert_shift_equivariant(lambda x: P(x).synthesize(r, a=0.5), spectrum)
    assert_shift_equivariant(lambda x: P(x).synthesize(maps, form="matrices"), spectrum)
    assert_shift_invariant(lambda x: P(x).norms(), spectrum)


@pytest.mark.parametrize("graph", ["weighted", "nearly disconnected"])
def test_renumbering_nodes_renumbers_everything(graph):
    bands = PolynomialBands(DyadicBands(S=4), 9)
    shift = laplacian(GRAPHS[graph], normalization="sym")
    x = signal(Lens.of(shift, bands))

    def filtered(x, shift):
        P = Lens.of(shift, bands)
        return P(x).synthesize(P.frequencies[:, None].expand(-1, 3) + P.leakage[:, None])

    assert_permutation_equivariant(filtered, shift, x)
    assert_permutation_invariant(lambda x, s: Lens.of(s, bands)(x).norms(), shift, x)


@pytest.mark.parametrize(
    ("operator", "order", "pairs"), [("N", 1, 0), ("N", 5, 0), ("N", 2, 1), ("magnetic N", 4, 1)]
)
def test_gradients(operator, order, pairs):
    P = polynomial(operator, "intervals", "one edge and an isolated node", order, pairs=pairs)
    x = signal(P, channels=1, leading=(2,)).requires_grad_()
    r = torch.randn(2, P.n_bands, 1, dtype=F64, requires_grad=True)
    maps = torch.randn(2, P.n_bands, 1, 2, dtype=F64, requires_grad=True)
    assert gradcheck(lambda x: P(x).energies(), x)
    assert gradcheck(lambda x, r: P(x).weighted(r), (x, r))
    assert gradcheck(lambda x, r: P(x).mixed(r), (x, maps))
    assert gradcheck(lambda x: P(x).part(1), x)
    assert gradgradcheck(lambda x: P(x).energies(), x)
    assert gradgradcheck(lambda x, r: P(x).weighted(r), (x, r))


@pytest.mark.parametrize("form", ["diagonal", "matrices", "full"])
@pytest.mark.parametrize(("shared", "pairs"), [(False, 0), (True, 0), (False, 2)])
def test_many_models_in_one_call_have_the_numbers_of_each_alone(form, shared, pairs):
    P = polynomial("N", "dyadic, K < S", pairs=pairs)
    generator = torch.Generator().manual_seed(0)
    b, d = P.n_bands, 2
    shape = {"diagonal": (b, d), "matrices": (b, d, 3), "full": (b * d, b)}[form]
    r = torch.randn(5, *shape, dtype=F64, generator=generator)
    x = signal(P, channels=d, leading=() if shared else (5,))

    def loss(r, x):
        parts = P(x, check_finite=False)
        y = parts.synthesize(r, form=form, a=0.5)
        return (y.square().sum(-1) * torch.arange(len(y))).sum() + parts.part(1).abs().sum()

    dims = (0, None if shared else 0)
    each = range(5)
    one = [x if shared else x[i] for i in each]
    found = vmap(loss, dims)(r, x)
    torch.testing.assert_close(found, torch.stack([loss(r[i], one[i]) for i in each]))
    for argument in (0, 1):
        derivative = grad(loss, argument)
        expected = torch.stack([derivative(r[i], one[i]) for i in each])
        torch.testing.assert_close(vmap(derivative, dims)(r, x), expected)
    # As in training: the members inside, the gradient outside.
    r.requires_grad_()
    vmap(loss, dims)(r, x).sum().backward()
    torch.testing.assert_close(r.grad, torch.stack([grad(loss)(r[i], one[i]) for i in each]))


def test_coefficients_may_have_more_leading_dimensions_than_the_signal():
    P = polynomial()
    x = signal(P)
    r = torch.randn(4, P.n_bands, 3, dtype=F64)
    expected = torch.stack([P(x).synthesize(one) for one in r])
    torch.testing.assert_close(P(x).synthesize(r), expected)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_other_norms_are_those_of_the_projections(p):
    P = polynomial()
    x = signal(P)
    expected = torch.stack([torch.linalg.vector_norm(y, p, dim=0) for y in P(x).parts()])
    torch.testing.assert_close(P(x).norms(p=p), expected)


@pytest.mark.parametrize("bands", FIXED)
@pytest.mark.parametrize("graph", ["empty", "one node", "isolated nodes"])
def test_a_graph_without_edges_has_the_bands_of_exact_projections(bands, graph):
    P = polynomial("N", bands, graph)
    exact = Lens.of(partial_eigh(laplacian(GRAPHS[graph], normalization="sym")), FIXED[bands])
    x = signal(P).requires_grad_()
    torch.testing.assert_close(P(x).norms(), exact(x).norms())
    torch.testing.assert_close(P.dimension, exact.dimension.to(F64))
    P(x).synthesize(torch.ones(P.n_bands, 3, dtype=F64)).sum().backward()
    assert x.grad.isfinite().all()


def test_double_and_single_precision_agree():
    P = polynomial("N", order=64)
    x = signal(P)
    single = P.to(torch.float32)
    assert (single.dtype, P.dtype) == (torch.float32, F64)
    torch.testing.assert_close(
        single(x.float()).norms(), P(x).norms().float(), atol=1e-3, rtol=1e-4
    )
    assert polynomial("magnetic L").to(torch.float32).dtype == torch.complex64


def test_traces_are_exact_for_small_graphs_and_estimated_for_others():
    shift = laplacian(torus(12, 13), normalization="sym")
    operator = ScaledOperator.of(shift)
    angle = torch.linalg.eigvalsh(operator.matrix.to_dense()).clamp(-1, 1).arccos()
    expected = torch.cos(torch.arange(13) * angle[:, None]).sum(0)
    torch.testing.assert_close(chebyshev_traces(operator, 6), expected, atol=1e-9, rtol=0)
    estimated = chebyshev_traces(operator, 6, exact=0, probes=200)
    assert estimated[0] == 156
    torch.testing.assert_close(estimated, expected, atol=6.0, rtol=0)


@pytest.mark.parametrize("name", ["N", "magnetic N"])
@pytest.mark.parametrize("probes", [1, 2, 3])
def test_traces_of_few_random_vectors_are_the_same_one_by_one(name, probes, monkeypatch):
    operator = ScaledOperator.of(OPERATORS[name](GRAPHS["weighted"]))
    estimated = []
    for limit in (0, 10):
        monkeypatch.setattr(chebyshev, "_ONE_BY_ONE", limit)
        estimated.append(chebyshev_traces(operator, 6, exact=0, probes=probes))
    torch.testing.assert_close(*estimated, atol=1e-12, rtol=0)


@pytest.mark.parametrize("pairs", [0, 3])
@pytest.mark.parametrize("complement", [True, False])
def test_traces_are_those_of_the_matrices(pairs, complement):
    P = polynomial("L", "uniform, K < S", "weighted", complement=complement, pairs=pairs)
    M, L = as_matrices(P), OPERATORS["L"](GRAPHS["weighted"]).to_dense()

    def trace(matrices):
        return matrices.diagonal(dim1=1, dim2=2).sum(1)

    torch.testing.assert_close(P.dimension, trace(M), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(P.frequencies, trace(M @ L) / trace(M), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(P.leakage, trace(M - M @ M) / 8, atol=1e-5, rtol=1e-5)


@every_pair(operator=["L", "A", "magnetic N"], bands=list(FIXED), complement=[True, False])
def test_with_all_pairs_the_bands_are_exact(operator, bands, complement):
    P = polynomial(operator, bands, order=3, pairs=8, complement=complement)
    shift = OPERATORS[operator](GRAPHS["weighted"])
    exact = Lens.of(partial_eigh(shift), FIXED[bands], complement=complement)
    x = signal(P)
    pairs = zip(P(x).parts(), exact(x).parts(), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(P.dimension, exact.dimension.to(F64))
    torch.testing.assert_close(P.frequencies, exact.frequencies)
    assert P.leakage.max() < 1e-9


def test_a_large_operator_is_scaled_by_its_largest_eigenvalue():
    for shift in (laplacian(torus(28, 30)), adjacency(torus(28, 30))):
        P = Lens.of(shift, PolynomialBands(UniformBands(4), 4), complement=False)
        assert P.operator.bandwidth == pytest.approx(8.0, rel=1e-7)
        assert P.dimension.sum() == pytest.approx(840)
        assert P.frequencies.diff().min() > 0


def test_the_lens_suits_the_bands():
    shift = laplacian(GRAPHS["torus"])
    exact = Lens.of(shift, DyadicBands(), dtype=torch.float32, complement=False)
    assert (type(exact), exact.dtype, exact.complement) == (ColumnLens, torch.float32, False)
    smooth = Lens.of(shift, PolynomialBands(), dtype=torch.float32)
    assert (type(smooth), smooth.dtype) == (PolynomialLens, torch.float32)
    assert "order=32, pairs=0), complement=True, num_nodes=16, dimension=[" in repr(smooth)


def test_errors_say_what_to_do():
    shift = laplacian(GRAPHS["torus"])
    P = Lens.of(shift, PolynomialBands())
    with pytest.raises(SignalError, match=r"\(\.\.\., 16, channels\)"):
        P(torch.zeros(15, 2, dtype=F64))
    with pytest.raises(SignalError, match="value nan"):
        P(torch.full((16, 2), torch.nan, dtype=F64))
    with pytest.raises(BandError, match="0 to 6"):
        P(torch.zeros(16, 2, dtype=F64)).part(7)
    with pytest.raises(BandError, match=r"Lens\.of\(shift, bands\)"):
        partial_eigh(shift, bands=PolynomialBands())
    with pytest.raises(BandError, match="give the ShiftOperator"):
        Lens.of(partial_eigh(shift), PolynomialBands())


def test_a_lens_is_not_one_on_other_bands():
    lens = polynomial()
    assert Lens.of(lens, lens.bands).n_bands == lens.n_bands
    for bands, complement in ((lens.bands, False), (PolynomialBands(lens.bands.base, 13), True)):
        with pytest.raises(BandError, match="no others can be made of it"):
            Lens.of(lens, bands, complement=complement)


@pytest.mark.parametrize("pairs", [0, 3])
def test_a_lens_and_its_view_can_be_copied(pairs):
    view = polynomial(pairs=pairs)(x := signal(polynomial()))
    for again in (copy.deepcopy(view), copy.deepcopy(view.lens)(x)):
        torch.testing.assert_close(again.norms(), view.norms())
