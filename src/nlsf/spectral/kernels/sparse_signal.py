"""Fixed features that are mostly zero, for the first linear layer: `SparseSignal`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.kernels.transforms import QuickFunction
from nlsf.spectral.operators.csr import LARGEST, csr_matrix


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a sparse matrix are, row by row, and how to transpose it.

    Attributes:
        first: (rows + 1,), the first entry of each row, and the number of entries.
        column: (nnz,), the column of each entry.
        order: (nnz,), the entries in the order of the transposed matrix.
        shape: rows and columns.
    """

    first: Tensor
    column: Tensor
    order: Tensor
    shape: tuple[int, int]

    @property
    def row(self) -> Tensor:
        """(nnz,), the row of each entry."""
        return torch.repeat_interleave(self.first.diff())

    @cached_property
    def narrow(self) -> Pattern:
        """The same in 32 bits, which are read in half the time."""
        return Pattern(self.first.int(), self.column.int(), self.order.int(), self.shape)

    def matrix(self, values: Tensor) -> Tensor:
        """The CSR matrix of these entries (nnz,), whose memory it shares."""
        return csr_matrix(self.narrow.first, self.narrow.column, values, self.shape)

    def remembered_matrix(self, values: Tensor) -> Tensor:
        """The same for entries that come again: making it takes half the time of a product."""
        last: tuple[Tensor, Tensor] | None = self.__dict__.get("_last")
        if last is None or last[0] is not values:
            last = self.__dict__["_last"] = values, self.matrix(values)
        return last[1]

    def __getstate__(self) -> dict[str, Any]:
        """What is copied: a CSR tensor cannot be."""
        return {name: value for name, value in self.__dict__.items() if name != "_last"}

    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        counts = torch.bincount(self.column, minlength=self.shape[1])
        back = torch.argsort(self.order)
        return Pattern(row_ends(counts), self.row[self.order], back, (self.shape[1], self.shape[0]))

    def to(self, device: torch.device | str | None) -> Pattern:
        """The same on another device."""
        first, column, order = (t.to(device) for t in (self.first, self.column, self.order))
        return Pattern(first, column, order, self.shape)


class SparseSignal:
    """A signal (N, F) of which only the entries that are not zero are kept.

    It is fixed: a product with it has a gradient for the other factor, and none for the values.
    `torch.func.vmap` may batch the values, the other factor, or both.

    Args:
        values: (nnz,), the entries.
        pattern: where they are.
        transposed: the same for the transposed matrix.
        moved: (nnz,), the entries in the order of the transposed matrix, where they are known.

    Example:
        >>> import torch
        >>> x = SparseSignal.of(torch.eye(3))
        >>> x
        SparseSignal((3, 3), density=0.333)
        >>> torch.equal(x @ torch.ones(3, 2), torch.ones(3, 2))
        True
    """

    def __init__(
        self, values: Tensor, pattern: Pattern, transposed: Pattern, moved: Tensor | None = None
    ) -> None:
        self.values, self.pattern, self.transposed = values, pattern, transposed
        self._moved = moved

    @classmethod
    def fixed(cls, values: Tensor, pattern: Pattern) -> SparseSignal:
        """Entries (nnz,) that many products will use: their transposed order is found once."""
        values = values.detach()
        return cls(values, pattern, pattern.transposed(), values[pattern.order])

    @classmethod
    def of(cls, x: Tensor) -> SparseSignal:
        """The sparse form of a dense or CSR signal (N, F) of floating point."""
        if x.ndim != 2 or not x.is_floating_point():
            raise SignalError(
                "A sparse signal must have the shape (nodes, channels) and be of floating point, "
                f"not {tuple(x.shape)} of {x.dtype}."
            )
        if x.layout == torch.sparse_csr:
            values, first = x.values(), x.crow_indices().long()
            column = x.col_indices().long()
        elif x.layout == torch.strided:
            rows, column = x.nonzero(as_tuple=True)
            values, first = x[rows, column], row_ends(torch.bincount(rows, minlength=x.shape[0]))
        else:
            raise SignalError(f"A sparse signal is made of a dense or CSR tensor, not {x.layout}.")
        order = torch.argsort(column, stable=True)
        return cls.fixed(values, Pattern(first, column, order, (x.shape[0], x.shape[1])))

    @property
    def shape(self) -> torch.Size:
        """(N, F)."""
        return torch.Size(self.pattern.shape)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.values.device

    @property
    def moved(self) -> Tensor:
        """(nnz,), the values in the order of the transposed matrix."""
        return _in_order(self.values, self.pattern.order) if self._moved is None else self._moved

    @cached_property
    def symmetric(self) -> bool:
        """Whether the transposed matrix is the same, entry by entry."""
        here, there = self.pattern, self.transposed
        pairs = ((here.first, there.first), (here.column, there.column), (self.values, self.moved))
        return all(torch.equal(a, b) for a, b in pairs)

    @property
    def density(self) -> float:
        """The share of entries that are kept; 0 for a signal without entries."""
        return self.pattern.column.numel() / max(self.shape.numel(), 1)

    def with_values(self, values: Tensor) -> SparseSignal:
        """Other values (nnz,) at the same places."""
        same = values is self.values  # a dropout that does nothing
        return self if same else SparseSignal(values, self.pattern, self.transposed)

    def rows(self, index: Tensor) -> SparseSignal:
        """Some of its rows (R,)."""
        pattern = self.pattern
        counts = pattern.first.diff().index_select(0, index)
        first = row_ends(counts)
        begin = pattern.first.index_select(0, index) - first[:-1]
        entry = torch.arange(int(first[-1])).to(first) + torch.repeat_interleave(begin, counts)
        column = pattern.column[entry]
        order = torch.argsort(column, stable=True)
        some = Pattern(first, column, order, (len(index), self.shape[1]))
        return SparseSignal.fixed(self.values[entry], some)

    def above(self, other: SparseSignal) -> SparseSignal:
        """The rows of this one, then those of the other, of as many columns."""
        here, there = self.pattern, other.pattern
        first = torch.cat([here.first, here.first[-1] + there.first[1:]])
        column = torch.cat([here.column, there.column])
        order = torch.argsort(column, stable=True)
        shape = (self.shape[0] + other.shape[0], self.shape[1])
        values = torch.cat([self.values, other.values])
        return SparseSignal.fixed(values, Pattern(first, column, order, shape))

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> SparseSignal:
        """The same signal on another device or in another precision."""
        values = self.values.to(device=device, dtype=dtype)
        moved = None if self._moved is None else self._moved.to(device=device, dtype=dtype)
        return SparseSignal(values, self.pattern.to(device), self.transposed.to(device), moved)

    def dense(self) -> Tensor:
        """The signal as a tensor (N, F)."""
        place = self.pattern.row * self.shape[1] + self.pattern.column
        flat = self.values.new_zeros(self.shape.numel()).index_add(0, place, self.values)
        return flat.reshape(self.shape)

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product (N, d) with a dense matrix (F, d) of the same dtype."""
        if weight.ndim != 2 or weight.shape[0] != self.shape[1] or weight.dtype != self.dtype:
            raise SignalError(
                f"A sparse signal {tuple(self.shape)} of {self.dtype} is multiplied by a matrix "
                f"({self.shape[1]}, d) of the same dtype, not {tuple(weight.shape)} of "
                f"{weight.dtype}."
            )
        if self.values.requires_grad:
            raise SignalError("A sparse signal is fixed: its values cannot have a gradient.")
        return _product(self.values, self._moved, weight, self.pattern, self.transposed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self.shape)}, density={self.density:.3g})"


class _Product(QuickFunction):
    """Sparse times dense: (..., columns, d), and values (..., nnz), or (nnz,) for all of them."""

    @staticmethod
    def forward(
        values: Tensor,
        moved: Tensor | None,
        weight: Tensor,
        pattern: Pattern,
        transposed: Pattern,
    ) -> Tensor:
        return _multiply(values, weight, pattern, fixed=moved is not None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, moved, _, ctx.pattern, ctx.transposed = inputs
        ctx.save_for_backward(values, moved)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        values, moved = ctx.saved_tensors
        if moved is None:  # the values do not come again, nor do they in another order
            moved, values = _in_order(values, ctx.pattern.order), None
        grad = _product(moved, values, grads[0], ctx.transposed, ctx.pattern)
        return None, None, grad, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        values: Tensor,
        moved: Tensor | None,
        weight: Tensor,
        pattern: Pattern,
        transposed: Pattern,
    ) -> tuple[Tensor, int]:
        def batched(tensor: Tensor, dim: int | None) -> Tensor:
            if dim is None:
                return tensor.expand(info.batch_size, *tensor.shape)
            return tensor.movedim(dim, 0)

        weight = batched(weight, in_dims[2])
        if in_dims[0] is not None or values.ndim > 1:
            # Values that an inner batch shared get its dimensions, of size one.
            inner = (None,) * (weight.ndim - 1 - batched(values, in_dims[0]).ndim)
            values = batched(values, in_dims[0])[:, *inner]
            moved = None if moved is None else batched(moved, in_dims[1])[:, *inner]
        return _product(values, moved, weight, pattern, transposed), 0


def _product(
    values: Tensor, moved: Tensor | None, weight: Tensor, pattern: Pattern, transposed: Pattern
) -> Tensor:
    product: Tensor = _Product.apply(values, moved, weight, pattern, transposed)
    return product


# Up to so many columns, one product with all factors side by side beats one product a factor.
_NARROW = 128
# Up to so many, a CSR product beats ``embedding_bag``.
_FEW = 16


def _multiply(values: Tensor, weight: Tensor, pattern: Pattern, *, fixed: bool) -> Tensor:
    """The products of all members of the batch."""
    rows, columns = pattern.shape
    leading, d = weight.shape[:-2], weight.shape[-1]
    members = leading.numel()
    if pattern.column.numel() == 0 or d == 0 or members == 0:
        return weight.new_zeros(*leading, rows, d)

    if values.ndim == 1 and not leading:
        return sparse_product(values, weight, pattern, fixed=fixed)
    weight = weight.reshape(members, columns, d)
    if values.ndim == 1 and members * d <= _NARROW:
        side_by_side = weight.movedim(0, 1).reshape(columns, members * d)
        product = sparse_product(values, side_by_side, pattern, fixed=fixed)
        product = product.reshape(rows, members, d).movedim(1, 0)
    else:
        each = values.expand(*leading, -1).reshape(members, -1)
        pairs = zip(each, weight, strict=True)
        product = torch.stack([sparse_product(v, w, pattern) for v, w in pairs])
    return product.reshape(*leading, rows, d)


def sparse_product(
    values: Tensor, weight: Tensor, pattern: Pattern, *, fixed: bool = False
) -> Tensor:
    """The product of a matrix of these values (nnz,) with one (columns, d), without a gradient.

    A row of a product is a weighted sum of rows of the dense factor, which is what
    ``embedding_bag`` computes, on a CPU faster than a CSR product; but for few columns MKL's is
    faster still.

    Args:
        values: the entries.
        weight: the dense factor.
        pattern: where the entries are.
        fixed: whether the same values come again.
    """
    weight = weight.contiguous()  # the fast path of neither takes a transposed matrix
    if weight.shape[1] <= _FEW and _has_csr_product(values):
        matrix = pattern.remembered_matrix(values) if fixed else pattern.matrix(values)
        return matrix @ weight
    product: Tensor = torch.nn.functional.embedding_bag(
        pattern.column, weight, pattern.first[:-1], mode="sum", per_sample_weights=values
    )
    return product


def inner_products(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    """The inner products of rows i of a and j of b, for all entries ij of the pattern: (nnz,)."""
    none = a.new_zeros(len(pattern.column))
    products: Tensor = torch.sparse.sampled_addmm(pattern.matrix(none), a, b.T, beta=0.0).values()
    return products


def _has_csr_product(values: Tensor) -> bool:
    """Whether MKL multiplies a matrix of these entries, and 32 bits count them."""
    real = values.dtype in (torch.float32, torch.float64)
    here = values.device.type == "cpu" and torch.backends.mkl.is_available()
    return real and here and values.numel() <= LARGEST and not torch.compiler.is_compiling()


def _in_order(values: Tensor, order: Tensor) -> Tensor:
    """Values (..., nnz) in another order: a quarter of the time of values[..., order]."""
    return values.index_select(-1, order)


def row_ends(counts: Tensor) -> Tensor:
    """Where the rows of a sparse matrix begin and end, from the number of entries of each."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
