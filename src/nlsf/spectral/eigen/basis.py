"""What the block method works with: a fast `Operator`, a growing `Basis`, the ways to give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nlsf.spectral.operators.csr import csr_tensor

Array: TypeAlias = NDArray[Any]
"""float64 or complex128."""


class Operator:
    """A Hermitian sparse matrix, renumbered for locality, with fast products and filters.

    Neighbouring nodes get neighbouring numbers (reverse Cuthill-McKee), which keeps a product on a
    point cloud or a mesh in the cache. Products go through torch's CSR kernel (MKL), which
    accumulates in place.

    Args:
        matrix: (n, n) Hermitian, float64 or complex128.
    """

    def __init__(self, matrix: sp.csr_array) -> None:
        n = matrix.shape[0]
        self.order: NDArray[np.int64] = reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(
            np.int64
        )
        permuted = matrix[self.order][:, self.order].tocoo()
        diagonal = np.arange(n)
        # An explicit (possibly zero) diagonal lets a shift change the values alone.
        self.matrix = sp.csr_array(
            sp.coo_array(
                (
                    np.concatenate([permuted.data, np.zeros(n, permuted.dtype)]),
                    (
                        np.concatenate([permuted.row, diagonal]),
                        np.concatenate([permuted.col, diagonal]),
                    ),
                ),
                shape=(n, n),
            )
        )
        self.matrix.sort_indices()
        rows = np.repeat(diagonal, np.diff(self.matrix.indptr))
        self._diagonal = np.flatnonzero(self.matrix.indices == rows)
        self._shifted = self.matrix.data.copy()
        self._tensor = self._wrap(self._shifted)
        self.products = 0

    @property
    def size(self) -> int:
        """Number of rows n."""
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or complex128."""
        kind: np.dtype[Any] = np.dtype(self.matrix.dtype)
        return kind

    def _wrap(self, data: Array) -> torch.Tensor | None:
        if not torch.backends.mkl.is_available():
            return None
        return csr_tensor(self.matrix, data)  # shared: a new shift needs no new tensor

    def _accumulate(self, block: Array, onto: Array, scale: float, keep: float) -> None:
        """Compute onto <- keep * onto + scale * (shifted A) @ block, all (n, b) and row major."""
        self.products += block.shape[1]
        if self._tensor is None:
            shifted = sp.csr_array(
                (self._shifted, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape
            )
            onto *= keep
            onto += scale * (shifted @ block)
            return
        target = torch.from_numpy(onto)
        torch.addmm(
            target, self._tensor, torch.from_numpy(block), beta=keep, alpha=scale, out=target
        )

    def _shift(self, centre: float) -> None:
        self._shifted[self._diagonal] = self.matrix.data[self._diagonal] - centre

    def apply(self, block: Array) -> Array:
        """A @ block, shapes (n, b) -> (n, b)."""
        self._shift(0.0)
        out = np.zeros(block.shape, self.dtype)
        self._accumulate(np.ascontiguousarray(block), out, 1.0, 0.0)
        return out

    def chebyshev(
        self,
        block: Array,
        low: float,
        high: float,
        degree: int,
        deflated: Array | None = None,
        period: int = 1,
    ) -> Array:
        """T_degree((A - c)/e) @ block with [c - e, c + e] = [low, high], the damped interval.

        Args:
            block: (n, b).
            low: lower edge of the damped interval; eigenvalues below it are amplified.
            high: upper edge, at least the largest eigenvalue.
            degree: at least 1.
            deflated: (n, m) orthonormal basis of an invariant subspace to keep out of the result.
            period: number of steps after which that subspace is projected out again.

        Returns:
            (n, b), row major.
        """
        centre, half = (low + high) / 2, (high - low) / 2
        self._shift(centre)
        previous = np.array(block, dtype=self.dtype, order="C")
        current = np.zeros_like(previous)
        self._accumulate(previous, current, 1 / half, 0.0)
        for step in range(1, degree):
            self._accumulate(current, previous, 2 / half, -1.0)
            previous, current = current, previous
            if deflated is not None and step % period == 0:
                previous -= deflated @ (deflated.conj().T @ previous)
                current -= deflated @ (deflated.conj().T @ current)
        return current


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


Pairs: TypeAlias = tuple[NDArray[np.float64], Array, NDArray[np.float64]]
"""Values (m,), vectors (n, m), norms of the residuals (m,)."""


class UnfinishedError(RuntimeError):
    """Base of the errors that carry what is converged so far.

    Attributes:
        values: (m,) converged eigenvalues, not necessarily a complete set.
        vectors: (n, m) their vectors.
        residuals: (m,) norms of their residuals.
    """

    def __init__(self, message: str, pairs: Pairs | None = None) -> None:
        super().__init__(message)
        if pairs is None:
            pairs = (np.empty(0), np.empty((0, 0)), np.empty(0))
        self.values: NDArray[np.float64] = pairs[0]
        self.vectors: Array = pairs[1]
        self.residuals: NDArray[np.float64] = pairs[2]


class TooManyPairs(UnfinishedError):  # noqa: N818 - a finding, not a fault
    """The answer has more than `max_pairs` pairs, or a large share of all: go dense instead.

    Attributes:
        found: how many it has at least, or is expected to have.
    """

    def __init__(self, found: int, pairs: Pairs | None = None) -> None:
        super().__init__(
            f"The answer has {found} eigenpairs or more, too many for a block method here: ask for "
            "less, or use a dense solver.",
            pairs,
        )
        self.found = found


class NotConverged(UnfinishedError):  # noqa: N818
    """The work budget is spent."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(
            f"Only {pairs[0].size} eigenpairs converged within the work budget: ask for fewer, "
            "loosen tol, or use a dense solver.",
            pairs,
        )
