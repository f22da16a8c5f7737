"""Fixed signals prepared for training: the graph is not seen again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.batch_projector import BatchProjector
from nlsf.spectral.column_decomposition import PYTHAGORAS, ColumnDecomposition
from nlsf.spectral.norms import energy, power
from nlsf.spectral.projector import Projector
from nlsf.spectral.thin import thin_product
from nlsf.spectral.vmapped import holds_everywhere


class Multiplies(Protocol):
    """A fixed signal (N, F) in a form whose products with maps (F, d) are cheap."""

    def __matmul__(self, weight: Tensor) -> Tensor: ...


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
    """

    projector: Projector
    signal: Tensor
    coefficients: Tensor
    remainder: Tensor
    gram: Tensor | None
    nodes: Tensor
    sparse: Multiplies | None = None

    @classmethod
    def of(
        cls, x: Tensor, projector: Projector, rows: Tensor, sparse: Multiplies | None = None
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
        )

    def map(
        self, weight: Tensor | None = None, mapped: Tensor | None = None
    ) -> ColumnDecomposition:
        """The decomposition of X W at the prepared nodes.

        Args:
            weight: W, (F, d); the signal itself by default.
            mapped: the product of ``sparse`` with it, (N, d), where it is known already.
        """
        coefficients, remainder = self.coefficients, self.remainder
        if weight is not None:
            coefficients = thin_product(coefficients, weight)
            if self.sparse is not None:
                mapped = self.sparse @ weight if mapped is None else mapped
                found = self._by_pythagoras(mapped, coefficients)
                if found is not None:
                    return found
            remainder = remainder @ weight
        # The synthesis needs the remainder, and not the signal: that is the sum of both if asked.
        signal = self.signal if weight is None else None
        total = self._rest_energy(weight)
        return ColumnDecomposition(
            self.projector, signal, coefficients, remainder, total, prepared=True
        )

    def _by_pythagoras(self, mapped: Tensor, coefficients: Tensor) -> ColumnDecomposition | None:
        """The same of the mapped signal (N, d); ``None`` where too little is left to subtract."""
        rest = None
        if self.gram is not None:
            total = energy(mapped).sum(0, keepdim=True)
            rest = total - energy(coefficients).sum(0, keepdim=True)
            if not holds_everywhere(rest > PYTHAGORAS * total):
                return None
        # Its gradient is a third of the time of that of mapped[nodes].
        signal = mapped.index_select(0, self.nodes)
        return ColumnDecomposition(self.projector, signal, coefficients, None, rest, prepared=True)

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
    r"""The signals of many graphs, or many signals on one, as what a graph-level filter reads.

    The norms of :math:`X W` in all bands are those of :math:`C W`, where C holds
    :math:`V^* X` for the explicit bands, and a triangular factor of the remainder for the implicit
    one: at most F rows instead of N. On one graph each band has such a factor. A data set of graphs
    becomes one tensor (G, K, F).

    Args:
        x: (N_1 + ... + N_G, F), the signals of all graphs; or (G, N, F), G signals on one graph.
        projector: of these graphs, or of the one graph.

    Attributes:
        rows: (G, K, F), the C of every graph.
        band: (G, K), the band of each row; (K,) where all have the same.
        n_bands: B.
    """

    def __init__(self, x: Tensor, projector: BatchProjector | Projector) -> None:
        if projector.dtype.is_complex:
            raise SignalError("Prepared graphs are for real operators.")
        self.n_bands = projector.n_bands
        if isinstance(projector, Projector):
            self.rows, self.band = _on_one_graph(x, projector)
            return
        parts = projector.decompose(x)
        self.rows, self.band = parts.coefficients, projector.band
        if projector.rest is not None:
            factor = _factor(parts.remainder)
            rest = torch.full(factor.shape[:2], projector.rest).to(self.band)
            self.rows = torch.cat([self.rows, factor], dim=1)
            self.band = torch.cat([self.band, rest], dim=1)

    @classmethod
    def cat(cls, parts: Sequence[PreparedGraphs]) -> PreparedGraphs:
        """All graphs of several, one after the other: those of a data set prepared in chunks."""
        if len({part.n_bands for part in parts}) != 1:
            raise SignalError("Prepared graphs are put together from at least one, of equal bands.")
        width = max(part.rows.shape[1] for part in parts)
        rows, bands = [], []
        for part in parts:
            # Rows that pad are zero, so it does not matter which band they count for.
            missing = width - part.rows.shape[1]
            rows.append(torch.nn.functional.pad(part.rows, (0, 0, 0, missing)))
            band = part.band.expand(len(part), -1)
            bands.append(torch.nn.functional.pad(band, (0, missing)))
        return cls._of(torch.cat(rows), torch.cat(bands), parts[0].n_bands)

    @classmethod
    def _of(cls, rows: Tensor, band: Tensor, n_bands: int) -> PreparedGraphs:
        made = object.__new__(cls)
        made.rows, made.band, made.n_bands = rows, band, n_bands
        return made

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __getitem__(self, index: Tensor | slice) -> PreparedGraphs:
        """Some of the graphs, for a mini-batch; the index may differ within a `vmap`."""
        band = self.band if self.band.ndim == 1 else self.band[index]
        return self._of(self.rows[index], band, self.n_bands)

    def norms(self, weight: Tensor | None = None) -> Tensor:
        """The L_2 norms (G, B, d) of X W in all bands, as `analyze` gives them.

        Args:
            weight: W, (F, d); the signals themselves by default.
        """
        rows = self.rows if weight is None else self.rows @ weight
        squares = rows.square()
        sums = squares.new_zeros(squares.shape[0], self.n_bands, squares.shape[2])
        if self.band.ndim == 1:
            sums = sums.index_add(1, self.band, squares)
        else:
            sums = sums.scatter_add(1, self.band[:, :, None].expand_as(squares), squares)
        return power(sums, 0.5)


def _factor(rows: Tensor) -> Tensor:
    """At most F rows with the Gram matrix of the given ones: (G, K, F) to (G, min(K, F), F)."""
    return torch.linalg.qr(rows, mode="r").R if rows.shape[-2] > rows.shape[-1] else rows


def _on_one_graph(x: Tensor, projector: Projector) -> tuple[Tensor, Tensor]:
    """The rows (G, K, F) of signals (G, N, F), and the bands (K,) of the rows."""
    if x.ndim != 3:
        raise SignalError(
            "Signals on one graph are prepared as (signals, nodes, channels), not "
            f"{tuple(x.shape)}."
        )
    # The channels of all signals side by side: one product, not one a signal.
    parts = projector.decompose(x.movedim(0, 1).flatten(1))
    signals = (x.shape[0], x.shape[2])
    coefficients = parts.coefficients.unflatten(1, signals).movedim(1, 0)
    pieces = [coefficients[:, columns] for columns in projector.slices]
    if projector.rest is not None:
        pieces[projector.rest] = parts.remainder.unflatten(1, signals).movedim(1, 0)
    rows = [_factor(piece) for piece in pieces]
    sizes = torch.tensor([piece.shape[1] for piece in rows])
    return torch.cat(rows, dim=1), torch.repeat_interleave(sizes).to(projector.band)
