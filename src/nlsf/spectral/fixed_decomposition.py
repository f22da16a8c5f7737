"""A signal that no step of training changes, at some nodes: `FixedDecomposition`."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlsf.spectral.column_decomposition import ColumnDecomposition
from nlsf.spectral.projector import Projector
from nlsf.spectral.quick_function import QuickFunction
from nlsf.spectral.sparse_signal import SparseSignal, inner_products, sparse_product
from nlsf.spectral.vmapped import is_vmapped

_SPARSE = 0.25
"""Coefficients with a smaller share of nonzeros are multiplied as a sparse matrix. Those of null
vectors are: each is zero outside of one component of the graph."""


class FixedDecomposition(ColumnDecomposition):
    r"""Rows of a fixed sparse signal: its norms are numbers, and what follows them is learned.

    At R nodes, a filter with gains g and a linear map W after it are

    .. math::
        X_R \, \mathrm{diag}(g_{rest}) \, W
        + \sum_j V_{R,j} \, V_j^* X \, \mathrm{diag}(g_j - g_{rest}) \, W .

    :math:`X_R` and the coefficients :math:`V_j^* X` of null vectors are sparse, and their entries
    are what the gains multiply: nothing grows with the number of nodes.

    Args:
        projector: of these rows.
        signal: (R, d), the rows of the signal.
        coefficients: (k, d).
        remainder: (R, d), the rows of the projection on the implicit band.
        rest_energy: (1, d), its squared norms on all nodes.
        sparse: (R, d), the rows of the signal again.
    """

    projector: Projector

    def __init__(
        self,
        projector: Projector,
        signal: Tensor,
        coefficients: Tensor,
        remainder: Tensor,
        rest_energy: Tensor,
        sparse: SparseSignal,
    ) -> None:
        super().__init__(projector, signal, coefficients, remainder, rest_energy, prepared=True)
        self.sparse = sparse

    def norms(self) -> Tensor:
        """(B, d), computed once."""
        return self._norms

    @cached_property
    def _norms(self) -> Tensor:
        return super().norms()

    def mapped(self, gain: Tensor, weight: Tensor) -> Tensor:
        """The diagonal synthesis with gains (B, d), and a map (d, d') after it: (R, d')."""
        transformed = torch.compiler.is_compiling() or is_vmapped(gain) or is_vmapped(weight)
        if transformed or torch.is_autocast_enabled(gain.device.type):
            return super().mapped(gain, weight)
        product: Tensor = _Mapped.apply(gain.contiguous(), weight.contiguous(), self._factors)
        return product

    @cached_property
    def _factors(self) -> _Factors:
        projector, coefficients, channels = self.projector, self.coefficients, self.sparse.shape[1]
        assert projector.rest is not None
        few = (coefficients != 0).to(coefficients).mean(1) < _SPARSE
        sparse = SparseSignal.of(coefficients[few]).above(self.sparse)
        band = sparse.pattern.first.new_full((sparse.shape[0],), projector.rest)
        band[: int(few.sum())] = projector.band[few]
        fold = torch.eye(projector.n_bands).to(coefficients)
        fold[:, projector.rest] = -1.0
        fold[projector.rest, projector.rest] = 1.0
        place, vectors = band[sparse.pattern.row] * channels, projector.vectors
        place += sparse.pattern.column
        return _Factors(
            sparse,
            place,
            place[sparse.pattern.order],
            coefficients[~few],
            projector.band[~few],
            vectors[:, few].contiguous(),
            vectors[:, ~few].contiguous(),
            fold,
        )


class _Factors(NamedTuple):
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


class _Mapped(QuickFunction):
    """The formula of `FixedDecomposition`, for gains (B, d) and a map (d, d')."""

    @staticmethod
    def forward(gain: Tensor, weight: Tensor, fixed: _Factors) -> Tensor:
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
