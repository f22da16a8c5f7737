"""A coarse picture of a spectrum from a few short Lanczos runs: `probe_spectrum`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from nlsf.spectral.solver.operator import Array, Operator

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
