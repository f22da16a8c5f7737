"""Fixed signals prepared for training: the graph is not seen again."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.batch_projector import BatchProjector
from nlsf.spectral.norms import energy, power
from nlsf.spectral.projector import Decomposition, Projector


@dataclass(frozen=True, eq=False)
class PreparedRows:
    r"""A signal on one graph, of which only some nodes are ever computed.

    A linear map W of the channels commutes with the projections,

    .. math::
        V^* (X W) = (V^* X) W, \qquad \|P_{rest} X W\|^2 = \mathrm{diag}(W^* G W), \quad
        G = X^* P_{rest} X,

    so after this preparation a training step costs nothing that grows with the number of nodes
    or edges: only with k, the channels, and the rows asked for.

    Attributes:
        projector: of these rows.
        coefficients: (k, F), :math:`V^* X`.
        signal: (R, F), the rows of the signal.
        remainder: (R, F), the rows of the projection on the implicit band.
        gram: (F, F), the G of the formula; or all rows of the remainder (N, F), where they are
            fewer; or ``None`` where no band is implicit.
    """

    projector: Projector
    signal: Tensor
    coefficients: Tensor
    remainder: Tensor
    gram: Tensor | None

    @classmethod
    def of(cls, x: Tensor, projector: Projector, rows: Tensor) -> PreparedRows:
        """Prepares a signal (N, F) for these nodes."""
        parts = projector.decompose(x)
        gram = None
        if projector.rest is not None:
            gram = parts.remainder
            if gram.shape[-2] > gram.shape[-1]:
                gram = gram.mH @ gram
        some = projector.rows(rows)
        return cls(some, parts.signal[rows], parts.coefficients, parts.remainder[rows], gram)

    def map(self, weight: Tensor | None = None) -> Decomposition:
        """The decomposition of X W at the prepared nodes.

        Args:
            weight: W, (F, d); the signal itself by default.
        """
        signal, coefficients, remainder = self.signal, self.coefficients, self.remainder
        if weight is not None:
            # The remainder makes the rows of the signal itself unnecessary in the synthesis.
            coefficients, remainder = coefficients @ weight, remainder @ weight
        total = self._rest_energy(weight)
        return Decomposition(self.projector, signal, coefficients, remainder, total)

    def _rest_energy(self, weight: Tensor | None) -> Tensor | None:
        if self.gram is None:
            return None
        if self.gram.shape[0] != self.gram.shape[1]:
            rows = self.gram if weight is None else self.gram @ weight
            total = energy(rows).sum(0)
        elif weight is None:
            total = self.gram.diagonal().real
        else:
            total = (weight.conj() * (self.gram @ weight)).real.sum(0)
        return total.clamp(min=0.0).unsqueeze(0)


class PreparedGraphs:
    r"""The signals of many graphs, reduced to what a graph-level filter reads.

    The norms of :math:`X W` in all bands are those of :math:`C W`, where C holds
    :math:`V^* X` for the explicit bands, and a triangular factor of the remainder for the implicit
    one: at most F rows instead of N. A data set of graphs becomes one tensor (G, K, F).

    Args:
        x: (N_1 + ... + N_G, F), the signals of all graphs.
        projector: of these graphs.
    """

    def __init__(self, x: Tensor, projector: BatchProjector) -> None:
        parts = projector.decompose(x)
        rows, band = parts.coefficients, projector.band
        if projector.rest is not None:
            factor = parts.remainder
            if factor.shape[1] > factor.shape[2]:
                factor = torch.linalg.qr(factor, mode="r").R
            rows = torch.cat([rows, factor], dim=1)
            rest = torch.full(factor.shape[:2], projector.rest).to(band)
            band = torch.cat([band, rest], dim=1)
        self.rows, self.band, self.n_bands = rows, band, projector.n_bands

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __getitem__(self, index: Tensor | slice) -> PreparedGraphs:
        """Some of the graphs, for a mini-batch."""
        some = object.__new__(PreparedGraphs)
        some.rows, some.band, some.n_bands = self.rows[index], self.band[index], self.n_bands
        return some

    def norms(self, weight: Tensor | None = None) -> Tensor:
        """The L_2 norms (G, B, d) of X W in all bands, as `analyze` gives them.

        Args:
            weight: W, (F, d); the signals themselves by default.
        """
        if self.rows.is_complex():
            raise SignalError("Prepared graphs are for real operators.")
        rows = self.rows if weight is None else self.rows @ weight
        squares = rows.square()
        sums = squares.new_zeros(squares.shape[0], self.n_bands, squares.shape[2])
        sums = sums.scatter_add(1, self.band[:, :, None].expand_as(squares), squares)
        return power(sums, 0.5)
