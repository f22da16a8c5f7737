"""A fixed signal on one graph, prepared for training: `PreparedRows`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from nlsf.spectral.column_decomposition import ColumnDecomposition
from nlsf.spectral.fixed_decomposition import FixedDecomposition
from nlsf.spectral.norms import column_energy
from nlsf.spectral.projector import Projector
from nlsf.spectral.sparse_signal import SparseSignal
from nlsf.spectral.thin import thin_product


@dataclass(frozen=True, eq=False)
class PreparedRows:
    r"""A signal on one graph, of which only some nodes are ever computed.

    A linear map W of the channels commutes with the projections,

    .. math::
        V^* (X W) = (V^* X) W, \qquad \|P_{rest} X W\|^2 = \mathrm{diag}(W^* G W), \quad
        G = X^* P_{rest} X,

    so after this preparation a training step costs nothing that grows with the number of nodes
    or edges: only with k, the channels, and the rows asked for. Where most entries of X are zero,
    X W costs less than G W, and gives the same norms by Pythagoras while these are accurate.

    Attributes:
        projector: of these rows.
        coefficients: (k, F), :math:`V^* X`.
        signal: (R, F), the rows of the signal.
        remainder: (R, F), the rows of the projection on the implicit band.
        gram: (F, F), the G of the formula; or all rows of the remainder (N, F), where N < F;
            or ``None`` where no band is implicit.
        nodes: (R,), which nodes of the graph they are.
        sparse: the whole signal, where most of it is zero.
        settled: whether these rows come in every step, so that more preparation pays.
    """

    projector: Projector
    signal: Tensor
    coefficients: Tensor
    remainder: Tensor
    gram: Tensor | None
    nodes: Tensor
    sparse: SparseSignal | None = None
    settled: bool = True

    @classmethod
    def of(
        cls, x: Tensor, projector: Projector, rows: Tensor, sparse: SparseSignal | None = None
    ) -> PreparedRows:
        """Prepares a signal for these nodes.

        Args:
            x: (N, F).
            projector: of its graph.
            rows: (R,), the nodes.
            sparse: the same signal, where its products are cheaper in another form.
        """
        parts = projector.decompose(x)
        gram = None
        if projector.rest is not None:
            gram = parts.remainder
            if gram.shape[0] >= gram.shape[1]:  # also N = F: a square matrix is always the G
                gram = gram.mH @ gram
        some = projector.rows(rows)
        kept = None if projector.dtype.is_complex else sparse
        return cls(
            some, parts.signal[rows], parts.coefficients, parts.remainder[rows], gram, rows, kept
        )

    def __getitem__(self, index: Tensor) -> PreparedRows:
        """Some of the prepared rows, counted from 0; the index may differ within a `vmap`."""
        return replace(
            self,
            projector=self.projector.rows(index),
            signal=self.signal[index],
            remainder=self.remainder[index],
            nodes=self.nodes[index],
            settled=False,
        )

    def settle(self, index: Tensor) -> PreparedRows:
        """The same for rows that will come in every step."""
        return replace(self[index], settled=True)

    def map(
        self, weight: Tensor | None = None, mapped: Tensor | None = None
    ) -> ColumnDecomposition:
        """The decomposition of X W at the prepared nodes.

        Args:
            weight: W, (F, d); the signal itself by default.
            mapped: the product of ``sparse`` with it, (N, d), where it is known already.
        """
        coefficients, remainder = self.coefficients, self.remainder
        if weight is None and self._fixed is not None:
            return self._fixed
        if weight is not None:
            coefficients = thin_product(coefficients, weight)
            if self.sparse is not None:
                mapped = self.sparse @ weight if mapped is None else mapped
                parts = self._of_mapped(mapped, coefficients)
                if self.gram is None or parts.inferred is not None:
                    return parts
            remainder = remainder @ weight
        # The synthesis needs the remainder, and not the signal: that is the sum of both if asked.
        signal = self.signal if weight is None else None
        total = self._rest_energy(weight)
        return ColumnDecomposition(
            self.projector, signal, coefficients, remainder, total, prepared=True
        )

    @cached_property
    def _fixed(self) -> FixedDecomposition | None:
        """The decomposition of the signal itself, if it is sparse and the same in every step."""
        energy = self._rest_energy(None)
        if self.sparse is None or energy is None or not self.settled:
            return None
        rows = self.sparse.rows(self.nodes)
        return FixedDecomposition(
            self.projector, self.signal, self.coefficients, self.remainder, energy, rows
        )

    def _of_mapped(self, mapped: Tensor, coefficients: Tensor) -> ColumnDecomposition:
        """The same of the mapped signal (N, d), which tells the norms by Pythagoras."""
        total = None if self.gram is None else column_energy(mapped)
        # Its gradient is a third of the time of that of mapped[nodes].
        signal = mapped.index_select(0, self.nodes)
        return ColumnDecomposition(self.projector, signal, coefficients, total=total, prepared=True)

    def _rest_energy(self, weight: Tensor | None) -> Tensor | None:
        if self.gram is None:
            return None
        if self.gram.shape[0] != self.gram.shape[1]:
            return column_energy(self.gram if weight is None else self.gram @ weight)
        if weight is None:
            total = self.gram.diagonal().real
        else:
            total = (weight.conj() * (self.gram @ weight)).real.sum(0)
        return total.clamp(min=0.0).unsqueeze(0)
