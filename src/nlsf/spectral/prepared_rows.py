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
    X W costs less than G W, and gives the same norms by Pythagoras while these are accurate; G,
    which would take longer than all else here, is then not computed.

    Attributes:
        projector: of these rows.
        coefficients: (k, F), :math:`V^* X`.
        signal: (R, F), the rows of the signal.
        remainder: (R, F), the rows of the projection on the implicit band.
        rest_energy: (1, F), the squared norms of all of it; ``None`` where no band is implicit.
        gram: (F, F), the G of the formula; or all rows of the remainder (N, F), where N < F;
            ``None`` where no band is implicit, and for a sparse signal.
        nodes: (R,), which nodes of the graph they are.
        sparse: the whole signal, where most of it is zero.
        vectors: (N, k), the columns at all nodes, for a sparse signal.
        settled: whether these rows come in every step, so that more preparation pays.
    """

    projector: Projector
    signal: Tensor
    coefficients: Tensor
    remainder: Tensor
    rest_energy: Tensor | None
    gram: Tensor | None
    nodes: Tensor
    sparse: SparseSignal | None = None
    vectors: Tensor | None = None
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
        kept = None if projector.dtype.is_complex else sparse
        energy = gram = None
        if projector.rest is not None:
            energy = column_energy(parts.remainder)
            gram = parts.remainder if kept is None else None
            if gram is not None and gram.shape[0] >= gram.shape[1]:
                gram = gram.mH @ gram  # also N = F: a square matrix is always the G
        return cls(
            projector=projector.rows(rows),
            signal=parts.signal[rows],
            coefficients=parts.coefficients,
            remainder=parts.remainder[rows],
            rest_energy=energy,
            gram=gram,
            nodes=rows,
            sparse=kept,
            vectors=None if kept is None else projector.vectors,
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
        if weight is None:
            return self._fixed or ColumnDecomposition(
                self.projector,
                self.signal,
                self.coefficients,
                self.remainder,
                self.rest_energy,
                prepared=True,
            )
        coefficients = thin_product(self.coefficients, weight)
        if self.sparse is not None:
            return self._of_mapped(self.sparse @ weight if mapped is None else mapped, coefficients)
        # The synthesis needs the remainder, and not the signal: that is the sum of both if asked.
        return ColumnDecomposition(
            self.projector,
            None,
            coefficients,
            self.remainder @ weight,
            self._rest_energy(weight),
            prepared=True,
        )

    @cached_property
    def _fixed(self) -> FixedDecomposition | None:
        """The decomposition of the signal itself, if it is sparse and the same in every step."""
        if self.sparse is None or self.rest_energy is None or not self.settled:
            return None
        rows, energy = self.sparse.rows(self.nodes), self.rest_energy
        return FixedDecomposition(
            self.projector, self.signal, self.coefficients, self.remainder, energy, rows
        )

    def _of_mapped(self, mapped: Tensor, coefficients: Tensor) -> ColumnDecomposition:
        """The same of the mapped signal (N, d), which tells the norms by Pythagoras, if it can."""
        total = None if self.rest_energy is None else column_energy(mapped)
        # Its gradient is a third of the time of that of mapped[nodes].
        signal = mapped.index_select(0, self.nodes)
        parts = ColumnDecomposition(
            self.projector, signal, coefficients, total=total, prepared=True
        )
        if total is None or parts.inferred is not None:
            return parts
        assert self.vectors is not None
        left = mapped - thin_product(self.vectors, coefficients)
        some, energy = left.index_select(0, self.nodes), column_energy(left)
        return ColumnDecomposition(
            self.projector, signal, coefficients, some, energy, prepared=True
        )

    def _rest_energy(self, weight: Tensor) -> Tensor | None:
        if self.gram is None:
            return None
        if self.gram.shape[0] != self.gram.shape[1]:
            return column_energy(self.gram @ weight)
        total = (weight.conj() * (self.gram @ weight)).real.sum(0)
        return total.clamp(min=0.0).unsqueeze(0)
