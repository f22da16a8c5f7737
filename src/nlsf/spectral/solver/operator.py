"""A sparse Hermitian matrix made fast to multiply with: `Operator`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nlsf.spectral.csr import csr_tensor

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
