"""The bands of one huge graph on a cluster: `BlockLens`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from nlsf.cluster import block_rows as tasks
from nlsf.cluster.connection import first_done, gone, require_workers, watched
from nlsf.errors import ClusterError, SignalError
from nlsf.spectral import Lens, PolynomialBands, View
from nlsf.spectral.lens import PolynomialLens

_ATTEMPTS = 3
"""How often a recurrence is run whose rows were lost with a worker."""


class BlockLens(Lens):
    r"""A lens on polynomial bands whose products run on a cluster, a block of rows a worker.

    The rows of the operator are divided among the workers once. In every step of the recurrence

    .. math::
        (T_{k+1} X)_p = 2 \sum_q \tilde\Delta_{pq} (T_k X)_q - (T_{k-1} X)_p, \qquad
        (P_j X)_p = \sum_k b_{jk} (T_k X)_p

    worker p gets the blocks :math:`(T_k X)_q` that have an edge into its rows (`traffic` says how
    many bytes that is) and adds the term to its rows of all bands. The projections stay on the
    workers: the norms bring moments of (K + 1) d numbers back, a synthesis one signal.

    Equal to the lens on one machine up to rounding. There is no gradient. A worker that dies
    costs the recurrence, which starts again, and no result.

    Args:
        lens: the bands and the operator; its leading eigenpairs, if any, stay here.
        client: of the cluster, from `connect`; it must stay open.
        blocks: number of block rows; by default one a worker.

    Example::

        with connect("tcp://10.0.0.5:8786") as client:
            view = BlockLens(Lens.of(shift, bands), client)(x)
            c = view.norms()  # (B, d)
            y = view.synthesize(torch.tanh(c))  # (N, d)
    """

    def __init__(self, lens: Lens, client: Any, *, blocks: int | None = None) -> None:
        if blocks is not None and blocks < 1:
            raise ClusterError(f"There must be at least 1 block of rows, not {blocks}.")
        require_workers(client)
        if not isinstance(lens.bands, PolynomialBands) or lens.nodes is not None:
            raise ClusterError(f"Blocks of rows are for polynomial bands of one graph, not {lens}.")
        self.client, self.whole = client, cast("PolynomialLens", lens)
        self.bands, self.complement, self.n_bands = lens.bands, lens.complement, lens.n_bands
        self.num_nodes = lens.num_nodes
        self.dimension, self.frequencies = lens.dimension, lens.frequencies
        self.rows = tasks.block_rows(self.whole.operator, blocks or len(client.nthreads()))
        self._there: list[Any] | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the operator."""
        return self.whole.dtype

    def traffic(self, channels: int) -> int:
        r"""Bytes that all workers together receive in one step of the recurrence.

        .. math:: \sum_p \sum_{q \in Q_p, q \ne p} n_q D \cdot \text{bytes a number}

        At most :math:`(P - 1) N D` numbers, with P blocks; less where blocks have no common edge.

        Args:
            channels: D, of all signals together.
        """
        received = sum(
            len(self.rows[q].rows) for p, row in enumerate(self.rows) for q in row.sources if q != p
        )
        return received * channels * self.dtype.itemsize

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> BlockLens:
        """The same in another precision; the rows are sent to the workers again."""
        return BlockLens(self.whole.to(dtype, device), self.client, blocks=len(self.rows))

    def view(self, x: Tensor) -> BlockView:
        """Starts the recurrence for a signal, and does not wait for it.

        Raises:
            SignalError: for a signal that asks for a gradient.
        """
        if x.requires_grad and torch.is_grad_enabled():
            raise SignalError("A cluster computes no gradients: pass x.detach().")
        return BlockView(self, x)

    def places(self) -> list[list[str]]:
        """The worker of every block."""
        require_workers(self.client)
        workers = sorted(self.client.nthreads())
        return [[workers[p % len(workers)]] for p in range(len(self.rows))]

    def scattered(self, *, again: bool = False) -> list[Any]:
        """The block rows on their workers: sent once, or again after one was lost."""
        if self._there is None or again:
            self._there = self._scatter(self.rows)
        return self._there

    def _scatter(self, parts: list[Any]) -> list[Any]:
        pairs = zip(parts, self.places(), strict=True)
        return [self.client.scatter(part, workers=where, hash=False) for part, where in pairs]

    def recurrence(self, columns: Tensor, *, again: bool = False) -> list[Any]:
        """Hands in all steps for columns (N, D); the futures of the `Sums` of every block."""
        rows, places = self.scattered(again=again), self.places()
        array = columns.detach().cpu().numpy()
        x = self._scatter([array[row.rows.start : row.rows.stop] for row in self.rows])
        series = self.whole.series.to(self.dtype).cpu().numpy()
        previous, current = x, x
        sums: list[Any] = [None] * len(rows)
        for k in range(self.whole.bands.order + 1):
            if k:
                task = tasks.first_term if k == 1 else tasks.next_term
                following = []
                for p, row in enumerate(rows):
                    sources = [current[q] for q in self.rows[p].sources]
                    following.append(self._submit(places[p], task, row, previous[p], *sources))
                previous, current = current, following
            sums = [
                self._submit(where, tasks.add_term, s, x_p, term, series[:, k])
                for where, s, x_p, term in zip(places, sums, x, current, strict=True)
            ]
        return sums

    def _submit(self, where: list[str], task: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(
            task, *arguments, workers=where, allow_other_workers=True, pure=False
        )

    def __repr__(self) -> str:
        return f"BlockLens({self.whole}, blocks={len(self.rows)})"


class BlockView(View):
    """A signal whose projections on all bands lie on the workers, in blocks of rows.

    Args:
        lens: the `BlockLens` that it is seen through.
        signal: (..., N, d), the signal itself.
    """

    lens: BlockLens

    def __init__(self, lens: BlockLens, signal: Tensor) -> None:
        self.lens, self.signal = lens, signal
        self._end, self._coefficients = lens.whole.end, None
        if self._end is not None:
            self._coefficients, signal = self._end.split(signal)
        self._columns = signal.movedim(-2, 0).flatten(1)
        self._channels = (*signal.shape[:-2], signal.shape[-1])
        self._sums = lens.recurrence(self._columns)

    def moments(self) -> Tensor:
        r"""(K + 1, D), :math:`\langle x, T_k x \rangle` of all columns, without the exact end."""
        return torch.stack(self._blocks(tasks.moments)).sum(0)

    def energies(self) -> Tensor:
        r"""(..., B, d), :math:`\sum_k b_{jk} \langle x, T_k x \rangle`."""
        columns = self.lens.whole.series @ self.moments()
        energies: Tensor = columns.unflatten(-1, self._channels).movedim(0, -2).clamp(min=0.0)
        if self._end is None or self._coefficients is None:
            return energies
        of_end: Tensor = self._end.energies(self._coefficients)
        return energies + of_end

    def weighted(self, gain: Tensor) -> Tensor:
        r"""The diagonal synthesis :math:`\sum_j g_j \odot P_j X`: (..., N, d)."""
        gain = gain.to(self.signal.dtype)
        y = torch.cat(self._blocks(tasks.weighted, self._channels, _array(gain)), -2)
        if self._end is None or self._coefficients is None:
            return y
        of_end: Tensor = self._end.weighted(self._coefficients, gain)
        return y + of_end

    def mixed(self, r: Tensor) -> Tensor:
        r"""The synthesis :math:`\sum_j P_j X R_j`: (..., N, d')."""
        r = r.to(self.signal.dtype)
        y = torch.cat(self._blocks(tasks.mixed, self._channels, _array(r)), -2)
        if self._end is None or self._coefficients is None:
            return y
        of_end: Tensor = self._end.mixed(self._coefficients, r)
        return y + of_end

    def padded_part(self, j: int) -> Tensor:
        """The projection on band j, (..., N, d)."""
        y = torch.cat(self._blocks(tasks.part, self._channels, j), -2)
        if self._end is None or self._coefficients is None:
            return y
        gain = torch.zeros(self.lens.n_bands, self.signal.shape[-1], dtype=y.dtype)
        gain[j] = 1.0
        of_end: Tensor = self._end.weighted(self._coefficients, gain)
        return y + of_end

    def _blocks(self, task: Callable[..., tasks.Array], *arguments: Any) -> list[Tensor]:
        """What a task gives for every block of rows."""
        with watched(self.lens.client):
            return self._attempts(task, *arguments)

    def _attempts(self, task: Callable[..., tasks.Array], *arguments: Any) -> list[Tensor]:
        from distributed import CancelledError, KilledWorker

        lens = self.lens
        for attempt in range(1, _ATTEMPTS + 1):
            waiting = [
                lens._submit(where, task, sums, *arguments)
                for where, sums in zip(lens.places(), self._sums, strict=True)
            ]
            try:
                for future in waiting:
                    first_done(lens.client, [future])
                return [tasks.tensor(block) for block in lens.client.gather(waiting)]
            except (KilledWorker, CancelledError) as error:
                if lens.client.status != "running":
                    raise gone(lens.client) from error
                if attempt == _ATTEMPTS:
                    raise ClusterError(
                        f"Workers died in {attempt} recurrences; most likely for want of memory: "
                        "use more workers and blocks, or fewer channels at a time."
                    ) from error
                self._sums = lens.recurrence(self._columns, again=True)
        raise AssertionError("the last attempt returns or raises")


def _array(values: Tensor) -> tasks.Array:
    return values.detach().cpu().numpy()
