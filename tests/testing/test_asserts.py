"""The testers are tested on functions that must fail."""

import pytest
import torch

from cases import GRAPHS, lens, signal
from nlsf.spectral import laplacian, partial_eigh
from nlsf.testing import (
    assert_basis_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    assert_shift_equivariant,
    assert_shift_invariant,
    rotate_basis,
    tolerance,
)

P = lens("N", "dyadic", "float64", "torus")
SHIFT = laplacian(GRAPHS["torus"], normalization="sym")


def test_shift_equivariance():
    assert_shift_equivariant(lambda x: 2 * x, P)
    for broken in (torch.relu, lambda x: x + 1, lambda x: x * torch.arange(16)[:, None]):
        for space in (P, P.spectrum):
            with pytest.raises(AssertionError, match=r"not equivariant.* = [0-9.]+, allowed 1e-09"):
                assert_shift_equivariant(broken, space)


def test_a_filter_of_the_operator_keeps_the_strict_group_only():
    filter_ = torch.linalg.matrix_exp(-SHIFT.to_dense())
    assert_shift_equivariant(lambda x: filter_ @ x, P.spectrum)
    wide = lens("N", "uniform, K < S", "float64", "tree")
    matrix = torch.linalg.matrix_exp(-laplacian(GRAPHS["tree"], normalization="sym").to_dense())
    with pytest.raises(AssertionError):
        assert_shift_equivariant(lambda x: matrix @ x, wide)


def test_shift_invariance():
    assert_shift_invariant(lambda x: x.norm(dim=0), P)
    for broken in (lambda x: x.abs().sum(0), lambda x: x, lambda x: x[0]):
        with pytest.raises(AssertionError, match="not invariant"):
            assert_shift_invariant(broken, P)


def test_permutations():
    x = signal(P)

    def good(x, shift):
        return shift.to_dense() @ x

    assert_permutation_equivariant(good, SHIFT, x)
    assert_permutation_invariant(lambda x, s: (x * good(x, s)).sum(0), SHIFT, x)
    with pytest.raises(AssertionError, match="not permutation equivariant"):
        assert_permutation_equivariant(lambda x, s: x.cumsum(0), SHIFT, x)
    with pytest.raises(AssertionError, match="not permutation invariant"):
        assert_permutation_invariant(lambda x, s: x[:3], SHIFT, x)
    with pytest.raises(AssertionError, match="shape"):
        assert_permutation_invariant(
            lambda x, s: x[: int(x[0, 0] > x[1, 0]) + 1], SHIFT, torch.arange(16.0)[:, None]
        )


def test_basis():
    spectrum = P.spectrum
    assert_basis_invariant(lambda x, s: s.vectors @ (s.vectors.mH @ x), spectrum)
    for broken in (lambda x, s: s.vectors.mH @ x, lambda x, s: s.vectors.abs().mH @ x):
        with pytest.raises(AssertionError, match="dependent on the basis"):
            assert_basis_invariant(broken, spectrum)


def test_nan_is_a_failure():
    with pytest.raises(AssertionError):
        assert_shift_invariant(lambda x: x * torch.nan, P)


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_rotated_basis_is_a_basis_of_eigenvectors(graph):
    shift = laplacian(GRAPHS[graph])
    spectrum = partial_eigh(shift)
    V = rotate_basis(spectrum).vectors
    torch.testing.assert_close(V.mH @ V, torch.eye(shift.num_nodes, dtype=V.dtype))
    torch.testing.assert_close(shift.to_dense() @ V, V * spectrum.values, atol=1e-8, rtol=0)


def test_tolerances():
    assert tolerance(torch.complex64) == tolerance(torch.float32) == 1e-4
    assert tolerance(torch.complex128) == tolerance(torch.float64) == 1e-9
    with pytest.raises(TypeError, match="bfloat16"):
        tolerance(torch.bfloat16)
