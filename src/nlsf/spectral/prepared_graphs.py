"""The signals of many graphs prepared for the graph level: `PreparedGraphs`, `RowBatch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.batch_projector import BatchProjector
from nlsf.spectral.node_ranges import nodes_of_graphs
from nlsf.spectral.norms import power
from nlsf.spectral.projector import Projector
from nlsf.spectral.segment_sum import segment_energy


class RowBatch(NamedTuple):
    """Some prepared graphs; with leading dimensions, one batch of R graphs a model.

    Attributes:
        rows: (..., n, F), the rows of these graphs.
        band: (..., n), the band of each row, counted through: that of graph g is g B + j; R B for
            rows that pad.
        num_graphs: R.
        n_bands: B.
    """

    rows: Tensor
    band: Tensor
    num_graphs: int
    n_bands: int

    def norms(self, weight: Tensor | None = None) -> Tensor:
        """The L_2 norms (R, B, d) of X W in all bands, as `analyze` gives them.

        Args:
            weight: W, (F, d); the signals themselves by default.
        """
        rows = self.rows if weight is None else self.rows @ weight
        count = self.num_graphs * self.n_bands
        energies = segment_energy(rows, self.band, count + 1)[:count]
        return power(energies.unflatten(0, (self.num_graphs, self.n_bands)), 0.5)


@dataclass(frozen=True, eq=False)
class PreparedGraphs:
    r"""The signals of many graphs, or many signals on one, as what a graph-level filter reads.

    The norms of :math:`X W` in all bands are those of :math:`C W`, where C holds
    :math:`V^* X` for the explicit bands, and a triangular factor of the remainder for the implicit
    one: at most F rows instead of N. On one graph each band has such a factor. A data set of graphs
    becomes one tensor, the rows of all graphs one after the other.

    Attributes:
        rows: (K_1 + ... + K_G, F), the C of every graph, without rows of zeros.
        band: (K_1 + ... + K_G,), the band of each row.
        counts: (G,), the number K of rows of each graph.
        n_bands: B.
    """

    rows: Tensor
    band: Tensor
    counts: Tensor
    n_bands: int

    @classmethod
    def of(cls, x: Tensor, projector: BatchProjector | Projector) -> PreparedGraphs:
        """Prepares signals.

        Args:
            x: (N_1 + ... + N_G, F), the signals of all graphs; or (G, N, F), G signals on one.
            projector: of these graphs, or of the one graph.
        """
        if projector.dtype.is_complex:
            raise SignalError("Prepared graphs are for real operators.")
        if isinstance(projector, Projector):
            rows, band = _on_one_graph(x, projector)
        else:
            parts = projector.decompose(x)
            rows, band = parts.coefficients, projector.band
            if projector.rest is not None:
                factor = _factor(parts.remainder)
                rest = torch.full(factor.shape[:2], projector.rest).to(band)
                rows, band = torch.cat([rows, factor], dim=1), torch.cat([band, rest], dim=1)
        some = (rows != 0).any(-1)  # the others, which pad, have no part in any norm
        return cls(rows[some], band.expand_as(some)[some], some.sum(1), projector.n_bands)

    @classmethod
    def cat(cls, parts: Sequence[PreparedGraphs]) -> PreparedGraphs:
        """All graphs of several, one after the other: those of a data set prepared in chunks."""
        if len({part.n_bands for part in parts}) != 1:
            raise SignalError("Prepared graphs are put together from at least one, of equal bands.")
        return cls(
            torch.cat([part.rows for part in parts]),
            torch.cat([part.band for part in parts]),
            torch.cat([part.counts for part in parts]),
            parts[0].n_bands,
        )

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, index: Tensor) -> RowBatch:
        """Some of the graphs: (R,), or (M, R) for M models that look at R graphs each.

        The models' batches are padded to the number of rows of the largest.
        """
        row, graph = nodes_of_graphs(self.counts, index if index.ndim == 2 else index[None])
        if index.ndim == 1:
            row, graph = row[0], graph[0]
        place = row.flatten()
        band = self.band.index_select(0, place).reshape(row.shape)
        pads = graph == index.shape[-1]
        return RowBatch(
            self.rows.index_select(0, place).reshape(*row.shape, self.rows.shape[1]),
            (graph * self.n_bands + band).masked_fill(pads, index.shape[-1] * self.n_bands),
            index.shape[-1],
            self.n_bands,
        )

    def norms(self, weight: Tensor | None = None) -> Tensor:
        """The L_2 norms (G, B, d) of all graphs, as `RowBatch.norms` gives them."""
        return self[torch.arange(len(self), device=self.counts.device)].norms(weight)


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
