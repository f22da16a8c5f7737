import pytest
import torch

from cases import BANDS, GRAPHS, OPERATORS, lens, signal
from nlsf.errors import BandError, NotSymmetricError, SignalError
from nlsf.spectral import (
    FunctionalShift,
    IndexBands,
    Lens,
    PolynomialBands,
    UniformBands,
    equivariance_error,
    invariance_error,
    laplacian,
    partial_eigh,
    sample_shift,
)
from nlsf.spectral.symmetry import random_unitary
from nlsf.testing.graphs import ring, torus


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_shift_of_the_spectrum_commutes_with_the_operator(operator, graph):
    shift = OPERATORS[operator](GRAPHS[graph])
    delta = shift.to_dense()
    eye = torch.eye(shift.num_nodes, dtype=delta.dtype)
    for k in (1, 3, None):
        U = sample_shift(partial_eigh(shift, k=k), seed=3).matrix()
        torch.testing.assert_close(U.mH @ U, eye, atol=1e-12, rtol=0)
        torch.testing.assert_close(U @ delta, delta @ U, atol=1e-8, rtol=0)


@pytest.mark.parametrize("bands", BANDS)
@pytest.mark.parametrize("operator", ["L", "magnetic N"])
def test_a_relaxed_shift_commutes_with_the_bands_and_not_with_the_operator(bands, operator):
    P = lens(operator, bands, "float64", "tree")
    U = sample_shift(P, seed=1).matrix()
    eye = torch.eye(P.num_nodes, dtype=P.dtype)
    torch.testing.assert_close(U.mH @ U, eye, atol=1e-12, rtol=0)
    for part in P(eye).parts():
        torch.testing.assert_close(U @ part, part @ U, atol=1e-9, rtol=0)


def test_leading_shifts_also_turn_what_lies_beyond():
    shift = laplacian(GRAPHS["tree"])
    P = Lens.of(partial_eigh(shift, bands=IndexBands(2)), IndexBands(2))
    U, delta = sample_shift(P).matrix(), shift.to_dense()
    assert (U @ delta - delta @ U).abs().max() > 1e-2


def test_inverse_undoes():
    P = lens("magnetic L", "dyadic, K < S", "float64", "tree")
    U, x = sample_shift(P, seed=5), signal(P, leading=(2,))
    torch.testing.assert_close(U.inverse(U(x)), x)
    torch.testing.assert_close(U(U.inverse(x)), x)


def test_same_seed_same_shift():
    spectrum = partial_eigh(laplacian(GRAPHS["torus"]))
    a, b, c = (sample_shift(spectrum, seed=s).matrix() for s in (1, 1, 2))
    assert a.equal(b)
    assert not torch.allclose(a, c)


@pytest.mark.parametrize("tol", [1e-8, 1e-4])
def test_the_tolerance_is_kept(tol):
    shift = laplacian(ring(6))
    eye = torch.eye(6, dtype=torch.float64)
    FunctionalShift.from_matrix((1 + 0.4 * tol) * eye, shift, tol=tol)
    with pytest.raises(NotSymmetricError, match="unitary 6 x 6"):
        FunctionalShift.from_matrix((1 + 2 * tol) * eye, shift, tol=tol)


def test_shifts_of_polynomial_bands_come_from_the_spectrum():
    shift, bands = laplacian(GRAPHS["torus"]), PolynomialBands(UniformBands(S=3), order=6)
    P = Lens.of(shift, bands)
    with pytest.raises(BandError, match="pass the Spectrum"):
        sample_shift(P)
    x = signal(P)
    for part in range(P.n_bands):
        U = sample_shift(partial_eigh(shift), seed=part)
        assert equivariance_error(lambda x, j=part: P(x).part(j), x, U) < 1e-10


def test_random_unitary_is_haar():
    """The mean of |trace|^2 is 1 for Haar unitary and orthogonal matrices."""
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float64, torch.complex128):
        traces = [random_unitary(4, dtype, generator).trace().abs() ** 2 for _ in range(2000)]
        assert torch.stack(traces).mean() == pytest.approx(1.0, abs=0.15)


def test_a_translation_of_the_torus_is_a_functional_shift():
    shift = laplacian(torus(4, 5))
    index = torch.arange(20).reshape(4, 5).roll((1, 2), dims=(0, 1)).ravel()
    translation = torch.eye(20, dtype=torch.float64)[index]
    U = FunctionalShift.from_matrix(translation, shift)
    x = torch.randn(20, 3, dtype=torch.float64)
    torch.testing.assert_close(U(x), x[index])
    torch.testing.assert_close(U.inverse(U(x)), x)


def test_other_matrices_are_refused():
    shift = laplacian(ring(6))
    with pytest.raises(NotSymmetricError, match="unitary 6 x 6"):
        FunctionalShift.from_matrix(2 * torch.eye(6), shift)
    swap = torch.eye(6)[[1, 0, 2, 3, 4, 5]]
    with pytest.raises(NotSymmetricError, match="does not commute with L"):
        FunctionalShift.from_matrix(swap, shift)
    with pytest.raises(SignalError, match="6, channels"):
        sample_shift(partial_eigh(shift))(torch.zeros(5, 1))


def test_relu_breaks_the_symmetry_and_a_filter_does_not():
    """App. A: on a ring, a filter followed by ReLU does not commute with functional shifts."""
    shift = laplacian(ring(100))
    spectrum = partial_eigh(shift)
    U = sample_shift(spectrum, seed=2)
    filter_ = torch.linalg.matrix_exp(-shift.to_dense())
    x = torch.randn(100, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert equivariance_error(lambda x: filter_ @ x, x, U) < 1e-12
    assert equivariance_error(lambda x: torch.relu(filter_ @ x), x, U) > 0.1
    assert invariance_error(lambda x: x.norm(), x, U) < 1e-12
    assert invariance_error(lambda x: x.abs().sum(), x, U) > 1e-3
