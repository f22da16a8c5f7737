"""A spectrum as a random vector sees it: `SpectralMeasure`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from nlsf.spectral.csr import csr_tensor

STEPS = 30
"""Lanczos steps, one product each."""

ROUNDING = 1e-6
"""Of single precision, after so many steps; relative to the largest point."""


@dataclass(frozen=True, eq=False)
class SpectralMeasure:
    r"""Points and weights that stand for the spectrum of a Hermitian matrix A, by m products.

    .. math::
        \langle z, p(A) z \rangle = \sum_i w_i \, p(\theta_i), \qquad \|z\| = 1,

    for a random vector z and every polynomial p of degree up to 2 m - 1 (Gauss quadrature). The
    points are Ritz values, so they also tell where the spectrum ends.

    Attributes:
        points: (m,), ascending.
        weights: (m,), with the sum 1.
        residuals: (m,), within which of each point there is an eigenvalue.
        degree: of the polynomials; infinite where A has no more eigenvalues that z could tell.
    """

    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    residuals: NDArray[np.float64]
    degree: float

    @classmethod
    def of(cls, matrix: sparse.csr_array, scale: float, seed: int) -> SpectralMeasure:
        """By Lanczos steps without orthogonalisation: copies of a point share its weight.

        Single precision is exact beside what one random vector can tell, and less to read; the
        matrix is divided by a bound of its norm, to fit into its range.

        Args:
            matrix: A, (N, N) with at least one node.
            scale: a bound of the norm of A, positive.
            seed: of the random vector, whose direction is uniform.
        """
        values = np.empty(matrix.nnz, np.complex64 if matrix.dtype.kind == "c" else np.float32)
        np.divide(matrix.data, scale, out=values, casting="same_kind")
        A = csr_tensor(matrix, values)  # its product uses all threads
        start = torch.Generator().manual_seed(seed)
        v = torch.randn(A.shape[0], generator=start, dtype=A.dtype)
        v /= v.norm()
        before, beta = torch.zeros_like(v), 0.0
        diagonal, beside = [], []
        for _ in range(STEPS):
            w = A @ v - beta * before
            diagonal.append(float(torch.vdot(v, w).real))
            w -= diagonal[-1] * v
            beta = float(w.norm())
            beside.append(beta)
            if beta <= ROUNDING:
                break
            before, v = v, w / beta
        points, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))
        residuals = beta * abs(vectors[-1])
        degree = math.inf if beta <= ROUNDING else 2 * len(points) - 1
        return cls(scale * points, vectors[0] ** 2, scale * residuals, degree)

    def bounds(self) -> tuple[float, float]:
        """An interval around the spectrum, a few hundredths of its width too wide.

        Thirty steps can stop short of its ends: the residual and a hundredth of the width are
        added.
        """
        width = 0.01 * (self.points[-1] - self.points[0]) + ROUNDING * abs(self.points).max()
        low, high = self.points[[0, -1]] + self.residuals[[0, -1]] * [-1, 1]
        return float(low - width), float(high + width)

    def chebyshev(self, centre: float, half: float, order: int) -> NDArray[np.float64]:
        r""":math:`\langle z, T_k((A - \text{centre}) / \text{half}) z \rangle`, k = 0..order."""
        angle = np.arccos(np.clip((self.points - centre) / half, -1, 1))
        return np.asarray(np.cos(np.arange(order + 1)[:, None] * angle) @ self.weights)
