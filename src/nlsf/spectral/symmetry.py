"""The symmetry that filters keep: functional shifts, errors of maps that should keep it, distances.

A functional shift is a unitary map that commutes with a shift operator or with its bands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nlsf.errors import BandError, NotSymmetricError, SignalError
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.lens.columns import ColumnLens
from nlsf.spectral.lens.lens import Lens
from nlsf.spectral.lens.view import View
from nlsf.spectral.operators.shift import ShiftOperator

_REFLECTIONS = 4


@dataclass(frozen=True, eq=False)
class FunctionalShift:
    r"""A unitary map U that acts inside blocks of eigenvectors (Lemmas A.1 and A.2).

    .. math::
        U = V \, \mathrm{diag}(U_1, \dots, U_m) \, V^* + H (I - V V^*)

    where H is a product of reflections :math:`I - 2 w w^*` with :math:`V^* w = 0`, and a sign.

    Attributes:
        vectors: (N, k), orthonormal.
        blocks: the unitary :math:`U_i`, which act on consecutive columns.
        mirrors: (N, m), unit vectors w orthogonal to ``vectors``; applied from the first.
        sign: 1 or -1, the action on what the vectors leave, before the mirrors.
    """

    vectors: Tensor
    blocks: tuple[Tensor, ...]
    mirrors: Tensor
    sign: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        """U x for a signal (..., N, d)."""
        if x.ndim < 2 or x.shape[-2] != self.vectors.shape[0]:
            raise SignalError(
                f"The signal must have the shape (..., {self.vectors.shape[0]}, channels), "
                f"not {tuple(x.shape)}."
            )
        x = x.to(torch.promote_types(x.dtype, self.vectors.dtype))
        vectors = self.vectors.to(x.dtype)
        coefficients = vectors.mH @ x
        rest = self.sign * (x - vectors @ coefficients)
        for w in self.mirrors.to(x.dtype).mT:
            rest = rest - 2 * w[:, None] * (w.conj()[None, :] @ rest)
        sizes = [block.shape[0] for block in self.blocks]
        pieces = coefficients.split(sizes, dim=-2) if sizes else []
        turned = [b.to(x.dtype) @ c for b, c in zip(self.blocks, pieces, strict=True)]
        return vectors @ torch.cat(turned, dim=-2) + rest if turned else rest

    @property
    def inverse(self) -> FunctionalShift:
        """The inverse, which is the adjoint."""
        blocks = tuple(block.mH for block in self.blocks)
        return FunctionalShift(self.vectors, blocks, self.mirrors.flip(-1), self.sign)

    def matrix(self) -> Tensor:
        """U as a dense (N, N) tensor."""
        n = self.vectors.shape[0]
        return self(torch.eye(n, dtype=self.vectors.dtype, device=self.vectors.device))

    @classmethod
    def from_matrix(
        cls, matrix: Tensor, shift: ShiftOperator, *, tol: float = 1e-8
    ) -> FunctionalShift:
        """A given unitary matrix, checked to commute with the operator (Def. 1).

        Args:
            matrix: (N, N), for example a translation of a torus.
            shift: the operator.
            tol: allowed deviation, relative to the operator's norm.

        Raises:
            NotSymmetricError: if the matrix is not unitary or does not commute.
        """
        matrix = matrix.to(torch.promote_types(matrix.dtype, torch.float64))
        n = shift.num_nodes
        eye = torch.eye(n, dtype=matrix.dtype)
        unitary = matrix.shape == (n, n) and torch.allclose(
            matrix.mH @ matrix, eye, rtol=0.0, atol=tol
        )
        if not unitary:
            raise NotSymmetricError(f"A functional shift must be a unitary {n} x {n} matrix.")
        array: Any = matrix.numpy()
        commutator = shift.matrix @ array - (shift.matrix.conj().T @ array.conj().T).conj().T
        worst = float(abs(commutator).max()) if n else 0.0
        if worst > tol * shift.scale:
            raise NotSymmetricError(
                f"The matrix does not commute with {shift.name}: the commutator has an entry of "
                f"{worst:.2g}."
            )
        return cls(eye, (matrix,), eye[:, :0])


def sample_shift(
    space: Spectrum | Lens, *, seed: int = 0, generator: torch.Generator | None = None
) -> FunctionalShift:
    r"""A random functional shift.

    Args:
        space: which group to draw from. A `Spectrum`: :math:`\mathcal{U}_\Delta` (Def. 1), a Haar
            random unitary in every eigenspace at hand, and a sign on what a partial spectrum
            leaves out. A `Lens`: :math:`\mathcal{U}^g_\Delta` for value bands (Def. 2) or
            :math:`\mathcal{U}^J_\Delta` for index bands (Def. 3), a random unitary in every band,
            the implicit one included.
        seed: of the generator, if none is given.
        generator: source of randomness.

    Raises:
        BandError: for a lens without eigenvectors.

    Example:
        >>> import torch
        >>> from nlsf.spectral import laplacian, partial_eigh
        >>> path = laplacian(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> U = sample_shift(partial_eigh(path)).matrix()
        >>> torch.allclose(U @ path.to_dense(), path.to_dense() @ U)
        True
    """
    if not isinstance(space, Spectrum | ColumnLens):
        raise BandError(
            f"A {type(space).__name__} has no eigenvectors whose shifts could be drawn: pass the "
            "Spectrum, partial_eigh(shift). Polynomial bands commute with its shifts."
        )
    if generator is None:
        generator = torch.Generator().manual_seed(seed)
    if isinstance(space, Spectrum):
        vectors, sizes = space.vectors, space.multiplicities.tolist()
        mirrors = vectors[:, :0]
    else:
        vectors = space.vectors
        sizes = [s.stop - s.start for s in space.slices if s.stop > s.start]
        left = space.num_nodes - vectors.shape[1]
        mirrors = _random_orthogonal_to(vectors, min(_REFLECTIONS, left), generator)
    dtype = torch.promote_types(vectors.dtype, torch.float64)
    blocks = tuple(random_unitary(int(size), dtype, generator) for size in sizes)
    sign = 1.0 if torch.rand((), generator=generator) < 0.5 else -1.0
    return FunctionalShift(vectors.to(dtype), blocks, mirrors.to(dtype), sign)


def random_unitary(size: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """A Haar random orthogonal (or unitary, for a complex dtype) matrix, (size, size)."""
    q, r = torch.linalg.qr(torch.randn(size, size, dtype=dtype, generator=generator))
    # QR alone is not Haar distributed: the phases of R's diagonal have to be taken out.
    unitary: Tensor = q * torch.sgn(r.diagonal())
    return unitary


@torch.no_grad()
def equivariance_error(f: Callable[[Tensor], Tensor], x: Tensor, shift: FunctionalShift) -> float:
    r"""How far a map is from commuting with a shift: :math:`\|f(Ux) - U f(x)\| / \|f(x)\|`.

    Args:
        f: from (..., N, d) to (..., N, d').
        x: the signal.
        shift: U.
    """
    expected = shift(f(x))
    return _relative(f(shift(x).to(_like(x, shift))) - expected, expected)


@torch.no_grad()
def invariance_error(f: Callable[[Tensor], Tensor], x: Tensor, shift: FunctionalShift) -> float:
    r"""How far a map is from ignoring a shift: :math:`\|f(Ux) - f(x)\| / \|f(x)\|`."""
    expected = f(x)
    return _relative(f(shift(x).to(_like(x, shift))) - expected, expected)


def spectral_distance(
    view: View, other: View, *, p: float = 2.0, normalize: bool = False
) -> Tensor:
    r"""The distance of two graph-signals in the spectral domain (Sec. 4.3, App. D.2.2, D.2.3).

    .. math::
        \mathrm{dist}\bigl((\Delta, X), (\Delta', X')\bigr)
            = \| \mathcal{A}(\Delta, X) - \mathcal{A}(\Delta', X') \|_2

    It is a pseudo-metric: symmetric, with the triangle inequality, and zero between signals that
    differ, namely (for p = 2) by a functional shift. On one graph it is at most
    :math:`\|X - X'\|_2` for p = 2.

    Args:
        view: one graph-signal, as its lens shows it: ``lens(x)``.
        other: the other one, through as many bands.
        p: the norm of `View.norms`.
        normalize: divide norms by :math:`N^{1/p}`, to compare graphs of different sizes.

    Returns:
        (...), real and not negative; one number a graph where there are many.

    Raises:
        SignalError: the two have different numbers of bands or channels, or they refuse the norm.

    Example:
        >>> import torch
        >>> from nlsf.spectral import Lens, UniformBands, laplacian, partial_eigh, sample_shift
        >>> spectrum = partial_eigh(laplacian(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])))
        >>> P = Lens.of(spectrum, UniformBands(S=2))
        >>> x = torch.randn(3, 2, dtype=torch.float64)
        >>> bool(spectral_distance(P(x), P(sample_shift(P)(x))) < 1e-12)
        True
    """
    first = view.norms(p, normalize)
    second = other.norms(p, normalize)
    if first.shape[-2:] != second.shape[-2:]:
        raise SignalError(
            f"Signals are compared band by band and channel by channel, but one has "
            f"{first.shape[-2]} x {first.shape[-1]} coefficients and the other {second.shape[-2]} "
            f"x {second.shape[-1]}: use the same bands and as many channels."
        )
    distance: Tensor = torch.linalg.vector_norm(first - second, dim=(-2, -1))
    return distance


def _like(x: Tensor, shift: FunctionalShift) -> torch.dtype:
    """The dtype of the signal, complex where the shift is."""
    return x.dtype.to_complex() if shift.vectors.is_complex() and not x.is_complex() else x.dtype


def _relative(difference: Tensor, reference: Tensor) -> float:
    size = float(torch.linalg.vector_norm(reference))
    return float(torch.linalg.vector_norm(difference)) / (size or 1.0)


def _random_orthogonal_to(vectors: Tensor, count: int, generator: torch.Generator) -> Tensor:
    if count <= 0:
        return vectors[:, :0]
    w = torch.randn(vectors.shape[0], count, dtype=vectors.dtype, generator=generator)
    for _ in range(2):
        w = w - vectors @ (vectors.mH @ w)
    return torch.nn.functional.normalize(w, dim=0)
