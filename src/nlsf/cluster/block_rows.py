"""An operator in block rows, and what a worker does with one of them: `BlockRow`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nlsf.spectral.kernels.chebyshev import ScaledOperator
from nlsf.spectral.operators.csr import csr_tensor

Array: TypeAlias = NDArray[Any]
"""Numbers travel as arrays: Dask sends them without a copy."""


@dataclass(frozen=True, eq=False)
class BlockRow:
    r"""The rows :math:`\tilde\Delta_p` of an operator, in the blocks that are not zero.

    .. math::
        (\tilde\Delta X)_p = \sum_{q \in Q_p} \tilde\Delta_{pq} X_q

    Attributes:
        rows: which rows.
        sources: :math:`Q_p`, the numbers of the blocks with an edge into these rows.
        matrices: :math:`\tilde\Delta_{pq}` for each of them, CSR.
    """

    rows: range
    sources: tuple[int, ...]
    matrices: tuple[sparse.csr_array, ...]

    @cached_property
    def _tensors(self) -> list[Tensor]:
        return [csr_tensor(matrix) for matrix in self.matrices]

    def __getstate__(self) -> dict[str, Any]:
        # Sparse tensors do not travel; they share their memory with the matrices.
        return {name: value for name, value in self.__dict__.items() if name != "_tensors"}

    def product(self, currents: Sequence[Array], factor: float, out: Tensor) -> Array:
        r"""``out`` plus ``factor`` times :math:`\sum_q \tilde\Delta_{pq} X_q`: (n, D)."""
        if out.numel():  # the kernel does not take a matrix without rows
            for matrix, current in zip(self._tensors, currents, strict=True):
                torch.addmm(out, matrix, tensor(current), alpha=factor, out=out)
        return out.numpy()


def block_rows(operator: ScaledOperator, count: int) -> list[BlockRow]:
    """Cuts an operator into at most ``count`` block rows with about the same number of entries.

    Args:
        operator: the whole operator.
        count: how many parts, at least 1.
    """
    matrix, n = operator.matrix, operator.num_nodes
    parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
    A = sparse.csr_array(tuple(part.cpu().numpy() for part in parts), shape=(n, n))
    # A row costs its entries, and its share of the sums over bands.
    cost = A.indptr + np.arange(n + 1)
    inner = np.searchsorted(cost, cost[-1] * np.arange(1, count) / count)
    edges = np.unique([0, *inner, n]).tolist() if n else [0, 0]
    blocks = [range(a, b) for a, b in itertools.pairwise(edges)]
    return [_block_row(A[rows.start : rows.stop], rows, blocks) for rows in blocks]


def _block_row(A: sparse.csr_array, rows: range, blocks: list[range]) -> BlockRow:
    pieces = {q: A[:, columns.start : columns.stop] for q, columns in enumerate(blocks)}
    filled = {q: piece for q, piece in pieces.items() if piece.nnz}
    return BlockRow(rows, tuple(filled), tuple(filled.values()))


# The tasks. Every one is a pure function of its arguments, so that Dask may run it again.


def first_term(row: BlockRow, x: Array, *currents: Array) -> Array:
    r""":math:`T_1 X = \tilde\Delta X` in the rows of a block: (n, D)."""
    return row.product(currents, 1.0, torch.zeros_like(tensor(x)))


def next_term(row: BlockRow, previous: Array, *currents: Array) -> Array:
    r""":math:`T_{k+1} X = 2 \tilde\Delta T_k X - T_{k-1} X` in the rows of a block: (n, D)."""
    return row.product(currents, 2.0, -tensor(previous))


@dataclass(frozen=True, eq=False)
class Sums:
    r"""What has been summed so far in the rows of a block.

    Attributes:
        bands: (B, n, D), :math:`\sum_k b_{jk} T_k X`.
        moments: (k, D), the rows' part of :math:`\langle x, T_k x \rangle`.
    """

    bands: Array
    moments: Array


def add_term(sums: Sums | None, x: Array, term: Array, weights: Array) -> Sums:
    """The sums with one term more; ``weights``, (B,), are its coefficients."""
    t, w = tensor(term), tensor(weights)[:, None, None]
    bands = w * t if sums is None else torch.addcmul(tensor(sums.bands), w, t)
    moment = (t.conj() * tensor(x)).sum(0, keepdim=True).resolve_conj().numpy().real
    moments = moment if sums is None else np.concatenate([sums.moments, moment])
    return Sums(bands.numpy(), moments)


def moments(sums: Sums) -> Array:
    """(K + 1, D), the rows' part of the moments."""
    return sums.moments


def weighted(sums: Sums, channels: tuple[int, ...], gain: Array) -> Array:
    r""":math:`\sum_j g_j \odot P_j X` in the rows of a block: (..., n, d)."""
    return (tensor(gain).unsqueeze(-2) * _parts(sums, channels)).sum(-3).numpy()


def mixed(sums: Sums, channels: tuple[int, ...], r: Array) -> Array:
    r""":math:`\sum_j P_j X R_j` in the rows of a block: (..., n, d')."""
    return (_parts(sums, channels) @ tensor(r)).sum(-3).numpy()


def part(sums: Sums, channels: tuple[int, ...], j: int) -> Array:
    r""":math:`P_j X` in the rows of a block: (..., n, d)."""
    return _parts(sums, channels)[..., j, :, :].numpy()


def _parts(sums: Sums, channels: tuple[int, ...]) -> Tensor:
    """The bands (B, n, D) as (..., B, n, d)."""
    apart: Tensor = tensor(sums.bands).unflatten(-1, channels)
    return apart.movedim((0, 1), (-3, -2))


def tensor(array: Array) -> Tensor:
    """A tensor that shares the memory of an array; nobody writes to what has travelled."""
    # torch reads complex numbers by instructions that fault on an odd address, such as Dask gives.
    if array.ctypes.data % array.itemsize:
        array = array.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "The given NumPy array is not writable"
        return torch.from_numpy(array)
