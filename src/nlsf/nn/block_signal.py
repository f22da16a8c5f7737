"""Blocks of a block-diagonal matrix, one or many for each of many models: `BlockSignal`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.sparse_signal import Pattern, SparseSignal, row_ends


class BlockSignal(SparseSignal):
    """A block-diagonal matrix (M n, M n) for M models, of which each multiplies by its own block.

    It is for the inside of a `torch.func.vmap` over the models: ``matrix @ h`` takes the (n, d) of
    one of them, and the products of all are one.

    Args:
        whole: all blocks.
        models: M.
    """

    def __init__(self, whole: SparseSignal, models: int) -> None:
        super().__init__(whole.values, whole.pattern, whole.transposed, whole.moved)
        self.models = models

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product (n, d) of this model's block with its matrix (n, d)."""
        product: Tensor = _OfModels.apply(weight, self)  # type: ignore[no-untyped-call]
        return product

    def of_all(self, weight: Tensor) -> Tensor:
        """The products (M, n, d) of all models."""
        product: Tensor = super().__matmul__(weight.flatten(0, 1))
        return product.reshape(weight.shape)


class _OfModels(torch.autograd.Function):
    """The product, for `torch.func.vmap` to call; the one of all blocks knows the gradient."""

    @staticmethod
    def forward(weight: Tensor, matrix: BlockSignal) -> Tensor:
        raise SignalError(
            f"The blocks of {matrix.models} models are multiplied inside of a torch.func.vmap "
            "over these models."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], weight: Tensor, matrix: BlockSignal
    ) -> tuple[Tensor, int]:
        if info.batch_size != matrix.models or in_dims[0] is None:
            return _OfModels.forward(weight, matrix), 0
        return matrix.of_all(weight.movedim(in_dims[0], 0)), 0


def diagonal_blocks(matrix: SparseSignal, node: Tensor, inside: Tensor) -> SparseSignal:
    """Some blocks of a square block-diagonal matrix, with rows of zeros where it is padded.

    Args:
        matrix: (N, N).
        node: (n,), the old row of each row; every block comes whole, its rows in their order.
        inside: (n,), whether the row is one of a block; the others become zeros.
    """
    values, pattern = _rows(matrix.values, matrix.pattern, node, inside)
    if matrix.symmetric:
        return SparseSignal(values, pattern, pattern, values)
    moved, transposed = _rows(matrix.moved, matrix.transposed, node, inside)
    return SparseSignal(values, pattern, transposed, moved)


def _rows(values: Tensor, pattern: Pattern, node: Tensor, inside: Tensor) -> tuple[Tensor, Pattern]:
    # index_select takes a fraction of the time of an index in brackets.
    counts = pattern.first.diff().index_select(0, node) * inside
    first = row_ends(counts)
    row = torch.repeat_interleave(counts)
    # Entries of a block follow each other, before and after: they all move by the same number,
    # those of the transposed matrix too.
    moved = (pattern.first.index_select(0, node) - first[:-1]).index_select(0, row)
    entry = torch.arange(len(row)).to(row).add_(moved)
    shift = torch.arange(len(node)).to(node) - node
    column = pattern.column.index_select(0, entry).add_(shift.index_select(0, row))
    order = pattern.order.index_select(0, entry).sub_(moved)
    return values.index_select(0, entry), Pattern(first, column, order, (len(node), len(node)))
