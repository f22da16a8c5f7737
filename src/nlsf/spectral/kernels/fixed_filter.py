"""Filters of fixed sparse rows, and a linear map after them: `filter_and_map`."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlsf.spectral.kernels.sparse_signal import SparseSignal, inner_products, sparse_product
from nlsf.spectral.kernels.transforms import QuickFunction

_SPARSE = 0.25
"""Coefficients with a smaller share of nonzeros are multiplied as a sparse matrix. Those of null
vectors are: each is zero outside of one component of the graph."""


def filter_and_map(gain: Tensor, weight: Tensor, factors: SparseFactors) -> Tensor:
    r"""Rows of a filter with gains g (B, d), and a map W (d, d') after it: (R, d').

    At R nodes it is

    .. math::
        X_R \, \mathrm{diag}(g_{rest}) \, W
        + \sum_j V_{R,j} \, V_j^* X \, \mathrm{diag}(g_j - g_{rest}) \, W .

    :math:`X_R` and the coefficients :math:`V_j^* X` of null vectors are sparse, and their entries
    are what the gains multiply: nothing grows with the number of nodes.
    """
    product: Tensor = _Mapped.apply(gain.contiguous(), weight.contiguous(), factors)
    return product


class SparseFactors(NamedTuple):
    """What the product needs of a fixed signal; k = k' + k'' columns, of which k' are sparse.

    Attributes:
        sparse: (k' + R, d), sparse coefficients, and the rows of the signal below them.
        place: (nnz,), of each of its entries, the entry of the gains (B, d) that multiplies it.
        moved_place: (nnz,), the same in the order of the transposed matrix.
        dense: (k'', d), the other coefficients.
        band: (k'',), of each of them.
        sparse_vectors: (R, k').
        dense_vectors: (R, k'').
        fold: (B, B), takes the gain of the implicit band from those of all others.
    """

    sparse: SparseSignal
    place: Tensor
    moved_place: Tensor
    dense: Tensor
    band: Tensor
    sparse_vectors: Tensor
    dense_vectors: Tensor
    fold: Tensor

    @classmethod
    def of(
        cls,
        rows: SparseSignal,
        coefficients: Tensor,
        vectors: Tensor,
        band: Tensor,
        rest: int,
        n_bands: int,
    ) -> SparseFactors:
        """Sorts the columns.

        Args:
            rows: (R, d), of the signal.
            coefficients: (k, d).
            vectors: (R, k).
            band: (k,), of each column.
            rest: the implicit band.
            n_bands: B.
        """
        channels = rows.shape[1]
        few = (coefficients != 0).to(coefficients).mean(1) < _SPARSE
        sparse = SparseSignal.of(coefficients[few]).above(rows)
        owner = sparse.pattern.first.new_full((sparse.shape[0],), rest)
        owner[: int(few.sum())] = band[few]
        fold = torch.eye(n_bands).to(coefficients)
        fold[:, rest] = -1.0
        fold[rest, rest] = 1.0
        place = owner[sparse.pattern.row] * channels
        place += sparse.pattern.column
        return cls(
            sparse,
            place,
            place[sparse.pattern.order],
            coefficients[~few],
            band[~few],
            vectors[:, few].contiguous(),
            vectors[:, ~few].contiguous(),
            fold,
        )


class _Mapped(QuickFunction):
    """The formula of `filter_and_map`, which has a gradient for gains and map."""

    @staticmethod
    def forward(gain: Tensor, weight: Tensor, fixed: SparseFactors) -> Tensor:
        folded = fixed.fold @ gain
        values = fixed.sparse.values * folded.flatten().index_select(0, fixed.place)
        both = sparse_product(values, weight, fixed.sparse.pattern)
        null, rows = both.tensor_split([fixed.sparse_vectors.shape[1]])
        rows.addmm_(fixed.sparse_vectors, null)
        dense = (fixed.dense * folded.index_select(0, fixed.band)) @ weight
        return rows.addmm_(fixed.dense_vectors, dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        gain, weight, ctx.fixed = inputs
        ctx.save_for_backward(gain, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (gain, weight), fixed = ctx.saved_tensors, ctx.fixed
        folded, y = fixed.fold @ gain, grads[0]
        both = torch.cat([fixed.sparse_vectors.T @ y, y])
        dense = fixed.dense_vectors.T @ y
        to_folded = fixed.sparse.values * inner_products(fixed.sparse.pattern, both, weight)
        to_gain = torch.zeros_like(folded).flatten().index_add_(0, fixed.place, to_folded)
        to_gain = to_gain.reshape(folded.shape)
        to_gain.index_add_(0, fixed.band, fixed.dense * (dense @ weight.T))
        values = fixed.sparse.moved * folded.flatten().index_select(0, fixed.moved_place)
        to_weight = sparse_product(values, both, fixed.sparse.transposed)
        gained = fixed.dense * folded.index_select(0, fixed.band)
        return fixed.fold.T @ to_gain, to_weight.addmm_(gained.T, dense), None
