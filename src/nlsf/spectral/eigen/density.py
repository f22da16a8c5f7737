"""Where a spectrum has its eigenvalues, told by a few products with random vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from nlsf.spectral.eigen.basis import Array, Operator
from nlsf.spectral.operators.csr import csr_tensor

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


_PROBE_STEPS, _PROBE_COLUMNS = 60, 4


@dataclass(frozen=True)
class Probe:
    """A coarse picture of the spectrum: nodes and weights of a Gauss quadrature of its density.

    Attributes:
        nodes: (q,) ascending Ritz values of a few short Lanczos runs.
        counts: (q,) estimated number of eigenvalues up to each node.
        low: estimate of the smallest eigenvalue, clipped to the given bounds.
        high: upper bound of the largest one, clipped likewise.
    """

    nodes: NDArray[np.float64]
    counts: NDArray[np.float64]
    low: float
    high: float

    def value_at(self, count: float) -> float:
        """Estimate of the eigenvalue with the given number of eigenvalues below it."""
        return float(np.interp(count, self.counts, self.nodes))

    def count_below(self, value: float) -> float:
        """Estimated number of eigenvalues up to `value`."""
        return float(np.interp(value, self.nodes, self.counts, left=0.0))


def probe_spectrum(
    operator: Operator, known: Array, bounds: tuple[float, float], rng: np.random.Generator
) -> Probe:
    """Estimate the spectral density by Lanczos quadrature with a few random starts.

    For a random unit vector q, the mean of q* f(A) q is trace f(A) / n, and Lanczos gives a Gauss
    rule for it: its nodes are the Ritz values, its weights the squared first components.

    Args:
        operator: the matrix, n rows.
        known: (n, m0) deflated vectors.
        bounds: interval that encloses the spectrum.
        rng: source of the starts.
    """
    n, steps = operator.size, min(_PROBE_STEPS, operator.size - known.shape[1])
    current = rng.standard_normal((n, _PROBE_COLUMNS)).astype(operator.dtype)
    current -= known @ (known.conj().T @ current)
    current /= np.linalg.norm(current, axis=0)
    previous = np.zeros_like(current)
    alpha = np.zeros((steps, _PROBE_COLUMNS))
    beta = np.zeros((steps, _PROBE_COLUMNS))
    for step in range(steps):
        image = operator.apply(current)
        if step:
            image -= beta[step - 1] * previous
        alpha[step] = np.einsum("ij,ij->j", current.conj(), image).real
        image -= alpha[step] * current
        image -= known @ (known.conj().T @ image)
        beta[step] = np.linalg.norm(image, axis=0)
        if beta[step].min() <= 1e-10 * (bounds[1] - bounds[0]):
            steps = step + 1  # an invariant subspace: the rule is exact already
            break
        previous, current = current, image / beta[step]
    nodes, weights = [], []
    low, high = bounds[1], bounds[0]
    for column in range(_PROBE_COLUMNS):
        ritz, vectors = eigh_tridiagonal(alpha[:steps, column], beta[: steps - 1, column])
        doubt = beta[steps - 1, column] * np.abs(vectors[-1])
        nodes.append(ritz)
        weights.append(vectors[0] ** 2)
        low, high = min(low, ritz[0] - doubt[0]), max(high, ritz[-1] + doubt[-1])
    order = np.argsort(np.concatenate(nodes))
    counts = np.cumsum(np.concatenate(weights)[order]) * (n - known.shape[1]) / _PROBE_COLUMNS
    width = bounds[1] - bounds[0]
    return Probe(
        nodes=np.concatenate(nodes)[order],
        counts=counts,
        low=max(low, bounds[0]),
        high=min(high + 1e-3 * width, bounds[1]),
    )
