"""Assertions that a function has the symmetry that it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nlsf.spectral import (
    FunctionalShift,
    Lens,
    ShiftOperator,
    Spectrum,
    equivariance_error,
    invariance_error,
    sample_shift,
)
from nlsf.spectral.symmetry import random_unitary

_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}


def tolerance(dtype: torch.dtype) -> float:
    """The relative error that the assertions allow: 1e-4 in float32, 1e-9 in float64."""
    real = dtype.to_real() if dtype.is_complex else dtype
    if real not in _TOLERANCE:
        raise TypeError(f"The assertions compare float32 or float64, not {dtype}.")
    return _TOLERANCE[real]


def assert_shift_equivariant(
    f: Callable[[Tensor], Tensor],
    space: Spectrum | Lens,
    x: Tensor | None = None,
    *,
    samples: int = 3,
    tol: float | None = None,
    seed: int = 0,
) -> None:
    """Asserts f(U x) = U f(x) for sampled functional shifts U (Prop. 1).

    Args:
        f: from (..., N, d) to (..., N, d').
        space: the group: a `Spectrum` for U_Delta, a `Lens` for the relaxed groups.
        x: the signal; by default a random one with 3 channels, in the dtype of the space.
        samples: how many shifts to try.
        tol: allowed relative error; `tolerance` of the dtype by default.
        seed: of the shifts and of the default signal.

    Raises:
        AssertionError: with the largest error found.
    """
    x = _signal(space, seed) if x is None else x
    errors = [equivariance_error(f, x, u) for u in _shifts(space, samples, seed)]
    _assert_small(max(errors), tol, x.dtype, "not equivariant: |f(Ux) - U f(x)| / |f(x)|")


def assert_shift_invariant(
    f: Callable[[Tensor], Tensor],
    space: Spectrum | Lens,
    x: Tensor | None = None,
    *,
    samples: int = 3,
    tol: float | None = None,
    seed: int = 0,
) -> None:
    """Asserts f(U x) = f(x) for sampled functional shifts U; see `assert_shift_equivariant`."""
    x = _signal(space, seed) if x is None else x
    errors = [invariance_error(f, x, u) for u in _shifts(space, samples, seed)]
    _assert_small(max(errors), tol, x.dtype, "not invariant: |f(Ux) - f(x)| / |f(x)|")


def assert_permutation_equivariant(
    f: Callable[[Tensor, ShiftOperator], Tensor],
    shift: ShiftOperator,
    x: Tensor,
    *,
    tol: float | None = None,
    seed: int = 0,
) -> None:
    """Asserts that renumbering the nodes renumbers the output.

    Args:
        f: takes a signal (..., N, d) and the operator; gives (..., N, d').
        shift: the operator.
        x: the signal.
        tol: allowed relative error.
        seed: of the permutation.
    """
    permutation = _permutation(shift.num_nodes, seed)
    expected = f(x, shift)[..., permutation, :]
    found = f(x[..., permutation, :], shift.permute(permutation))
    _assert_close(found, expected, tol, x.dtype, "not permutation equivariant")


def assert_permutation_invariant(
    f: Callable[[Tensor, ShiftOperator], Tensor],
    shift: ShiftOperator,
    x: Tensor,
    *,
    tol: float | None = None,
    seed: int = 0,
) -> None:
    """Asserts that renumbering the nodes changes nothing; see `assert_permutation_equivariant`."""
    permutation = _permutation(shift.num_nodes, seed)
    found = f(x[..., permutation, :], shift.permute(permutation))
    _assert_close(found, f(x, shift), tol, x.dtype, "not permutation invariant")


def assert_basis_invariant(
    f: Callable[[Tensor, Spectrum], Tensor],
    spectrum: Spectrum,
    x: Tensor | None = None,
    *,
    tol: float | None = None,
    seed: int = 0,
) -> None:
    """Asserts that the choice of eigenvectors inside each eigenspace does not matter.

    Args:
        f: takes a signal (..., N, d) and a spectrum.
        spectrum: the spectrum whose basis is rotated.
        x: the signal; a random one by default.
        tol: allowed relative error.
        seed: of the rotation.
    """
    x = _signal(spectrum, seed) if x is None else x
    found = f(x, rotate_basis(spectrum, seed=seed))
    _assert_close(found, f(x, spectrum), tol, x.dtype, "dependent on the basis")


def rotate_basis(spectrum: Spectrum, *, seed: int = 0) -> Spectrum:
    """The same spectrum with another orthonormal basis in every eigenspace."""
    generator = torch.Generator().manual_seed(seed)
    parts = spectrum.vectors.split(spectrum.multiplicities.tolist(), dim=1)
    turned = [v @ random_unitary(v.shape[1], v.dtype, generator) for v in parts]
    return replace(spectrum, vectors=torch.cat(turned, dim=1) if turned else spectrum.vectors)


def _signal(space: Spectrum | Lens, seed: int) -> Tensor:
    dtype = space.vectors.dtype if isinstance(space, Spectrum) else space.dtype
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(space.num_nodes, 3, dtype=dtype, generator=generator)


def _shifts(space: Spectrum | Lens, samples: int, seed: int) -> list[FunctionalShift]:
    generator = torch.Generator().manual_seed(seed)
    return [sample_shift(space, generator=generator) for _ in range(samples)]


def _permutation(n: int, seed: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def _assert_close(
    found: Tensor, expected: Tensor, tol: float | None, dtype: torch.dtype, what: str
) -> None:
    found, expected = found.detach(), expected.detach()
    if found.shape != expected.shape:
        raise AssertionError(f"The function is {what}: shape {found.shape} != {expected.shape}.")
    size = float(torch.linalg.vector_norm(expected)) or 1.0
    error = float(torch.linalg.vector_norm(found - expected)) / size
    _assert_small(error, tol, dtype, f"{what}: relative error")


def _assert_small(error: float, tol: float | None, dtype: torch.dtype, what: str) -> None:
    allowed = tolerance(dtype) if tol is None else tol
    if not error <= allowed:  # also catches NaN
        raise AssertionError(f"The function is {what} = {error:.3g}, allowed {allowed:.3g}.")
