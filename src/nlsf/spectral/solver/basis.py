"""The growing orthonormal basis of a block method: `Basis`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlsf.spectral.solver.operator import Array


def orthonormal_eigh(matrix: Array) -> tuple[NDArray[np.float64], Array]:
    """Dense eigenpairs (..., n), (..., n, n) whose vectors are orthonormal to working precision.

    LAPACK's divide and conquer (`syevd`, behind `numpy.linalg.eigh`) was seen to return vectors
    that are orthogonal to 1e-10 only, on a small matrix with many equal eigenvalues. One step of
    Newton's iteration for the nearest unitary matrix squares that error.
    """
    values, vectors = np.linalg.eigh(matrix)
    gram = vectors.conj().swapaxes(-1, -2) @ vectors
    index = np.arange(gram.shape[-1])
    gram[..., index, index] -= 1.0
    if np.abs(gram).max(initial=0.0) > 1e-13:
        vectors = vectors - vectors @ gram / 2
    return values, vectors


@dataclass
class Basis:
    """Orthonormal V (n, m), its image W = (I - Q Q*) A V, and H = V* W."""

    vectors: Array
    images: Array
    projected: Array
    size: int = 0

    @staticmethod
    def empty(n: int, capacity: int, dtype: np.dtype[np.generic]) -> Basis:
        """Room for `capacity` columns, none used yet."""
        shape = (n, capacity)
        return Basis(
            np.empty(shape, dtype, order="F"),
            np.empty(shape, dtype, order="F"),
            np.zeros((capacity, capacity), dtype),
        )

    @property
    def capacity(self) -> int:
        """Number of columns there is room for."""
        return int(self.vectors.shape[1])

    def append(self, vectors: Array, images: Array) -> None:
        """Adds orthonormal columns and their images, and extends H."""
        old, new = self.size, self.size + vectors.shape[1]
        self.vectors[:, old:new], self.images[:, old:new] = vectors, images
        cross = self.vectors[:, :new].conj().T @ images
        self.projected[:new, old:new] = cross
        self.projected[old:new, :old] = cross[:old].conj().T
        inner = cross[old:]
        self.projected[old:new, old:new] = (inner + inner.conj().T) / 2
        self.size = new

    def ritz(self) -> tuple[NDArray[np.float64], Array]:
        """Ritz values (m,), ascending, and the rotation (m, m) to their vectors."""
        return orthonormal_eigh(self.projected[: self.size, : self.size])

    def rotated(self, rotation: Array, values: NDArray[np.float64], capacity: int) -> Basis:
        """Basis of the Ritz vectors V @ rotation, for which H is diagonal."""
        kept = rotation.shape[1]
        new = Basis.empty(self.vectors.shape[0], max(capacity, kept), self.vectors.dtype)
        new.vectors[:, :kept] = self.vectors[:, : self.size] @ rotation
        new.images[:, :kept] = self.images[:, : self.size] @ rotation
        new.projected[range(kept), range(kept)] = values
        new.size = kept
        return new


def project_out(block: Array, *bases: Array) -> None:
    """Removes from the block, in place, its part in each orthonormal basis."""
    for basis in bases:
        if basis.shape[1]:
            block -= basis @ (basis.conj().T @ block)


def orthonormalise(block: Array, *bases: Array) -> Array:
    """Orthonormal basis of the block's part outside the bases; vanishing directions are dropped.

    Gram matrices instead of QR, which is slow for tall blocks, and repeated until a pass
    changes little. What still shrinks in the third pass is rounding noise inside the bases (on a
    symmetric graph even noise is symmetric), and is dropped.
    """
    for attempt in range(6):
        floor = 1e-13 if attempt < 2 else 0.1
        block = block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(float).tiny)
        project_out(block, *bases)
        left = np.linalg.norm(block, axis=0)
        block = block[:, left > floor] / left[left > floor]
        if not block.shape[1]:
            break
        weights, rotation = np.linalg.eigh(block.conj().T @ block)
        alive = weights > floor * weights[-1]
        block = block @ (rotation[:, alive] / np.sqrt(weights[alive]))
        if left.min() > 0.7 and weights[0] > 0.7:
            break
    return block
