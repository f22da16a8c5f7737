"""Fixed signals as what a graph-level filter reads of them: `FixedNorms`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.kernels.dense import power
from nlsf.spectral.kernels.segments import nodes_of_graphs, segment_energy
from nlsf.spectral.kernels.transforms import as_pytree, lasting
from nlsf.spectral.lens.columns import ColumnLens
from nlsf.spectral.lens.lens import Lens


@as_pytree
@dataclass(frozen=True, eq=False)
class FixedNorms:
    r"""The signals of many graphs, or many signals on one, of which only norms are ever asked.

    The norms of :math:`X W` in all bands are those of :math:`C W`. Here C holds :math:`V^* X` for
    the explicit bands, and for the implicit one a triangular factor of the remainder: at most F
    rows instead of N. On one graph each band has such a factor. A data set of graphs becomes one
    tensor, the rows of all graphs one after the other. An index of graphs gives the same for these
    graphs; an index (M, R) does so for M models that look at R graphs each.

    Attributes:
        rows: (..., n, F), the C of every graph, without rows of zeros.
        place: (..., n), the graph and the band of each row: g B + j; G B for rows that pad.
        counts: (..., G), the number of rows of each graph.
        n_bands: B.
    """

    rows: Tensor
    place: Tensor
    counts: Tensor
    n_bands: int

    @classmethod
    def of(cls, x: Tensor, lens: Lens) -> FixedNorms:
        """Prepares signals.

        Args:
            x: (N_1 + ... + N_G, F), the signals of all graphs; or (G, N, F), G signals on one.
            lens: on these graphs, or on the one, with exact bands.

        Raises:
            SignalError: for complex operators, for polynomial bands, or for one signal on one
                graph.
        """
        if not isinstance(lens, ColumnLens) or lens.dtype.is_complex:
            raise SignalError("Norms are prepared for exact bands of real operators.")
        if lens.nodes is None:
            rows, band = _on_one_graph(x, lens)
        else:
            view = lens.view(lens.fitting(x))
            rows, band = view.coefficients, lens.band
            if lens.rest is not None:
                factor = _factor(view.remainder)
                rest = torch.full(factor.shape[:2], lens.rest).to(band)
                rows, band = torch.cat([rows, factor], dim=1), torch.cat([band, rest], dim=1)
        some = (rows != 0).any(-1)  # the others, which pad, have no part in any norm
        counts = some.sum(1)
        place = torch.repeat_interleave(counts) * lens.n_bands + band.expand_as(some)[some]
        return cls(rows[some], place, counts, lens.n_bands)

    @classmethod
    def cat(cls, parts: Sequence[FixedNorms]) -> FixedNorms:
        """All graphs of several, one after the other: those of a data set prepared in chunks."""
        if len({part.n_bands for part in parts}) != 1:
            raise SignalError("Fixed norms are put together from at least one, of equal bands.")
        n_bands, first, places = parts[0].n_bands, 0, []
        for part in parts:
            places.append(part.place + first * n_bands)
            first += len(part)
        return cls(
            torch.cat([part.rows for part in parts]),
            torch.cat(places),
            torch.cat([part.counts for part in parts]),
            n_bands,
        )

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, index: Tensor) -> FixedNorms:
        """Some of the graphs: (R,), or (M, R) for M models that look at R graphs each.

        The models' rows are padded to the number of the largest.
        """
        row, graph = nodes_of_graphs(self.counts, index if index.ndim == 2 else index[None])
        if index.ndim == 1:
            row, graph = row[0], graph[0]
        wanted, count = row.flatten(), index.shape[-1]
        band = self.place.index_select(0, wanted).reshape(row.shape) % self.n_bands
        return FixedNorms(
            self.rows.index_select(0, wanted).reshape(*row.shape, self.rows.shape[1]),
            (graph * self.n_bands + band).masked_fill(graph == count, count * self.n_bands),
            self.counts[index],
            self.n_bands,
        )

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.rows.device

    def map(self, weight: Tensor | None) -> FixedNorms:
        """The same of X W, with W (F, d); the signals themselves for ``None``."""
        return self if weight is None else replace(self, rows=self.rows @ weight)

    def norms(self, p: float = 2.0, normalize: bool = False) -> Tensor:
        """The L_2 norms (G, B, d) in all bands.

        Raises:
            SignalError: for any others, which what is prepared does not know any more.
        """
        if p != 2 or normalize:
            raise SignalError("A prepared signal knows its L_2 norms only: use p = 2.")
        return self._norms

    @cached_property
    def _norms(self) -> Tensor:
        graphs = self.counts.shape[-1]
        count = graphs * self.n_bands
        with lasting(self.rows):
            energies = segment_energy(self.rows, self.place, count + 1)[:count]
            return power(energies.unflatten(0, (graphs, self.n_bands)), 0.5)


def _factor(rows: Tensor) -> Tensor:
    """At most F rows with the Gram matrix of the given ones: (G, K, F) to (G, min(K, F), F)."""
    return torch.linalg.qr(rows, mode="r").R if rows.shape[-2] > rows.shape[-1] else rows


def _on_one_graph(x: Tensor, lens: ColumnLens) -> tuple[Tensor, Tensor]:
    """The rows (G, K, F) of signals (G, N, F), and the bands (K,) of the rows."""
    if x.ndim != 3:
        raise SignalError(
            "Signals on one graph are prepared as (signals, nodes, channels), not "
            f"{tuple(x.shape)}."
        )
    # The channels of all signals side by side: one product, not one a signal.
    view = lens.view(lens.fitting(x.movedim(0, 1).flatten(1)))
    signals = (x.shape[0], x.shape[2])
    coefficients = view.coefficients.unflatten(1, signals).movedim(1, 0)
    pieces = [coefficients[:, columns] for columns in lens.slices]
    if lens.rest is not None:
        pieces[lens.rest] = view.remainder.unflatten(1, signals).movedim(1, 0)
    rows = [_factor(piece) for piece in pieces]
    sizes = torch.tensor([piece.shape[1] for piece in rows])
    return torch.cat(rows, dim=1), torch.repeat_interleave(sizes).to(lens.band)
