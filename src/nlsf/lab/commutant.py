"""Operators that commute with given maps, and linear filters, as spaces of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

from nlsf.lab.study import Floats
from nlsf.spectral import IndexBands, Projector, Spectrum

Space: TypeAlias = Spectrum | Projector

_ZERO = 1e-6
"""Singular values below this share of the largest count as zero."""


def commutant(shifts: Sequence[Floats], channels: int) -> tuple[Floats, Floats]:
    """Ascending singular values of B -> (B U - U B)_U, and a basis (m, Nd, Nd) of its kernel.

    Singular values are relative to the largest; U acts on every channel alike. They are roots of
    eigenvalues, so that a zero shows as 1e-8.
    """
    size = shifts[0].shape[0] * channels
    eye, gram = np.eye(size), np.zeros((size**2, size**2))
    for shift in shifts:
        U = np.kron(shift, np.eye(channels))
        # With the rows of B one after the other, U B is (U x I) vec B and B U is (I x U^T) vec B.
        equations = np.kron(U, eye) - np.kron(eye, U.T)
        gram += equations.T @ equations
    squares, vectors = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares, 0.0) / max(squares[-1], 1e-300))
    return values, vectors.T[values < _ZERO].reshape(-1, size, size)


def filters(space: Space, channels: int) -> Floats:
    """An orthonormal basis (m, Nd, Nd) of the filters X -> sum_j P_j X M_j."""
    if isinstance(space, Spectrum):
        space = Projector(space, IndexBands(space.num_eigenspaces))
    eye = torch.eye(space.num_nodes, dtype=torch.float64)
    basis = []
    for P in (part.numpy() for part in space.projections(eye)):
        if np.trace(P) < 0.5:  # an empty band
            continue
        for k in range(channels**2):
            unit = np.zeros(channels**2)
            unit[k] = 1.0
            basis.append(np.kron(P, unit.reshape(channels, channels)) / np.sqrt(np.trace(P)))
    return np.array(basis)


def distance_from_span(found: Floats, basis: Floats) -> float:
    """The largest distance of a unit operator among those found from the span of the basis."""
    if len(found) == 0:
        return 1.0
    a, b = found.reshape(len(found), -1), basis.reshape(len(basis), -1)
    return float(np.linalg.norm(a - (a @ b.T) @ b, 2))
