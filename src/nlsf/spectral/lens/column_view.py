"""A signal in the columns of eigenvectors: `ColumnView`, and at fixed nodes `FixedRows`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nlsf.spectral.kernels.dense import column_energy, energy, shared_product
from nlsf.spectral.kernels.fixed_filter import SparseFactors, filter_and_map
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.kernels.transforms import holds_everywhere, is_vmapped, lasting
from nlsf.spectral.lens.view import View

PYTHAGORAS = 1e-3
"""Share of the energy below which the implicit band's norm is computed, not inferred."""


class ColumnView(View):
    """A signal by its coefficients in explicit eigenvectors; at most one band is implicit.

    Args:
        lens: the `ColumnLens` that it is seen through.
        signal: (..., N, d), the signal itself, at the nodes that the lens synthesises; may be
            ``None`` where the remainder is given.
        coefficients: (..., k, d), :math:`V^* X` for the explicit columns.
        remainder: (..., N, d), the projection on the implicit band, if it is at hand.
        rest_energy: (..., 1, d), its squared norms, if they are at hand.
        total: (..., 1, d), the squared norms of the signal on all nodes, where it is here at some.
        partial: whether the lens synthesises some nodes only, of a signal on more.
    """

    def __init__(
        self,
        lens: Any,
        signal: Tensor | None,
        coefficients: Tensor,
        remainder: Tensor | None = None,
        rest_energy: Tensor | None = None,
        total: Tensor | None = None,
        *,
        partial: bool = False,
    ) -> None:
        self.lens = lens
        if signal is not None:
            self.signal = signal
        self.coefficients = coefficients
        self.rest_energy = rest_energy
        self.total = total
        self.known_remainder = remainder
        self.partial = partial

    @cached_property
    def signal(self) -> Tensor:  # type: ignore[override]
        """:math:`V V^* X` and the remainder, where the signal was not given."""
        assert self.known_remainder is not None
        with lasting(self.coefficients):
            return shared_product(self.lens.vectors, self.coefficients) + self.known_remainder

    @property
    def remainder(self) -> Tensor:
        """:math:`X - V V^* X`, the projection on the implicit band: computed when first asked."""
        if self.known_remainder is None:
            with lasting(self.coefficients):
                explicit = shared_product(self.lens.vectors, self.coefficients)
                self.known_remainder = self.signal - explicit
        return self.known_remainder

    def energies(self) -> Tensor:
        """Squared norms (..., B, d): sums of squared coefficients over the columns of each band."""
        lens, rest = self.lens, self.rest_energy
        if lens.rest is not None and rest is None:
            if self.known_remainder is None and self.inferred is not None:
                return self.inferred
            rest = column_energy(self.remainder)
        explicit: Tensor = lens.band_sums(energy(self.coefficients))
        return explicit if rest is None else explicit.index_add(-2, lens.rest_index, rest)

    @cached_property
    def inferred(self) -> Tensor | None:
        """All energies (..., B, d), by Pythagoras; ``None`` where that is inaccurate.

        The implicit band has what the explicit ones leave of the signal's energy. The difference of
        two nearly equal energies has no digits left: where less than a thousandth is left, the norm
        is computed from the remainder (docs/decisions.md).
        """
        lens = self.lens
        assert lens.rest is not None
        with lasting(self.coefficients):
            total = column_energy(self.signal) if self.total is None else self.total
            taken = shared_product(lens.balance, energy(self.coefficients))
            energies = taken.index_add(-2, lens.rest_index, total)
            rest = energies.narrow(-2, lens.rest, 1)
        return energies if holds_everywhere(rest > PYTHAGORAS * total) else None

    def weighted(self, gain: Tensor) -> Tensor:
        """The diagonal synthesis with gains (..., B, d): (..., N, d), by one thin product."""
        lens = self.lens
        gain = gain.to(self.coefficients.dtype)
        y = shared_product(lens.vectors, self.coefficients * self._column_gains(gain))
        if lens.rest is not None:
            y = torch.addcmul(y, self._left, gain.narrow(-2, lens.rest, 1))
        return self._restored(y)

    def mapped(self, gain: Tensor, weight: Tensor) -> Tensor:
        """The same and a map (d, d') after it; a narrow one goes first, through the projections."""
        if self.coefficients.ndim > 2 or weight.shape[1] >= weight.shape[0]:
            return super().mapped(gain, weight)
        lens = self.lens
        gain, weight = gain.to(self.coefficients.dtype), weight.to(self.coefficients.dtype)
        y = shared_product(lens.vectors, (self.coefficients * self._column_gains(gain)) @ weight)
        if lens.rest is not None:
            y = y + self._left @ (gain[lens.rest].unsqueeze(-1) * weight)
        return self._restored(y)

    def _column_gains(self, gain: Tensor) -> Tensor:
        """(..., k, d), what each column is multiplied by, if `_left` has the gain of the rest."""
        if self.lens.rest is None or self.known_remainder is not None:
            spread: Tensor = self.lens.spread(gain)
            return spread
        return shared_product(self.lens.balance.mT.to(gain), gain)

    @property
    def _left(self) -> Tensor:
        """The remainder; or the signal, where columns subtract from it what is theirs."""
        return self.signal if self.known_remainder is None else self.known_remainder

    def mixed(self, r: Tensor) -> Tensor:
        """The synthesis with a matrix for every band, (..., B, d, d'): (..., N, d')."""
        lens = self.lens
        r = r.to(self.coefficients.dtype)
        mixed = lens.mix(self.coefficients, r)
        if lens.rest is None:
            return self._restored(shared_product(lens.vectors, mixed))
        rest = r[..., lens.rest, :, :]
        if self.known_remainder is None:
            mixed = mixed - self.coefficients @ rest
            y = shared_product(lens.vectors, mixed)
            return self._restored(y + self.signal @ rest)
        return self._restored(shared_product(lens.vectors, mixed) + self.remainder @ rest)

    def gained_and_mixed(self, gain: Tensor, maps: Tensor) -> Tensor:
        """The sum with gains (..., B, d), then one map (B, d, d') a band, for one graph.

        With few channels it is cheaper to synthesise what goes into the maps than what comes out.
        """
        lens = self.lens
        if lens.nodes is not None:
            return super().gained_and_mixed(gain, maps)
        gain, maps = gain.to(self.coefficients.dtype), maps.to(self.coefficients.dtype)
        if maps.shape[0] * maps.shape[1] <= maps.shape[2]:
            y: Tensor = self._side_by_side().mT @ (gain.unsqueeze(-1) * maps).flatten(-3, -2)
            return y
        gained = self.coefficients * lens.spread(gain)
        sizes = [columns.stop - columns.start for columns in lens.slices]
        # Split and unbound, all bands have one gradient; slices would each fill one of full size.
        bands = zip(gained.split(sizes, dim=-2), maps.unbind(), strict=True)
        mixed = torch.cat([_times(band, one) for band, one in bands], dim=-2)
        if lens.rest is None:
            return shared_product(lens.vectors, mixed)
        of_rest, rest = gain[..., lens.rest, None, :], maps[lens.rest]
        # The implicit band is X minus the columns.
        mixed = mixed - _times(self.coefficients * of_rest, rest)
        return shared_product(lens.vectors, mixed) + _times(self.signal * of_rest, rest)

    def _side_by_side(self) -> Tensor:
        """The projections on all bands of one graph: (..., B d, N)."""
        lens, found = self.lens, []
        for j, columns in enumerate(lens.slices):
            if j == lens.rest:
                found.append(self.remainder.mT)
            else:
                # This way around it is one product for all signals.
                found.append(self.coefficients[..., columns, :].mT @ lens.vectors[:, columns].mT)
        return torch.cat(found, dim=-2)

    def padded_part(self, j: int) -> Tensor:
        """The projection on band j, in the layout of ``signal``."""
        if j == self.lens.rest:
            return self.remainder
        found: Tensor = self.lens.synthesized(self.coefficients, j)
        return found


class FixedRows(ColumnView):
    r"""A signal on one graph that does not change, of which only some nodes are ever computed.

    A linear map W of the channels commutes with the projections,

    .. math::
        V^* (X W) = (V^* X) W, \qquad \|P_{rest} X W\|^2 = \mathrm{diag}(W^* G W), \quad
        G = X^* P_{rest} X,

    so a training step costs nothing that grows with the number of nodes or edges: only with k, the
    channels, and the rows asked for. Where most entries of X are zero, X W costs less than G W, and
    gives the same norms by Pythagoras while these are accurate; G, which would take longer than all
    else here, is then not computed.

    Attributes:
        nodes: (R,), which nodes of the graph the rows are.
        gram: (F, F), the G of the formula; or all rows of the remainder (N, F), where N < F;
            ``None`` where no band is implicit, and for a sparse signal.
        sparse: the whole signal, where most of it is zero.
        vectors: (N, k), the columns at all nodes, for a sparse signal.
        settled: whether these rows come in every step, so that more preparation pays.
    """

    nodes: Tensor
    gram: Tensor | None
    sparse: SparseSignal | None
    vectors: Tensor | None
    settled: bool

    @classmethod
    def of(cls, view: ColumnView, rows: Tensor, sparse: SparseSignal | None = None) -> FixedRows:
        """Some nodes (R,) of a view.

        Args:
            view: of the signal at all nodes.
            rows: the nodes.
            sparse: the same signal, where its products are cheaper in another form.
        """
        lens = view.lens
        energy = gram = None
        sparse = None if lens.dtype.is_complex else sparse
        if lens.rest is not None:
            energy = column_energy(view.remainder)
            gram = view.remainder if sparse is None else None
            if gram is not None and gram.shape[0] >= gram.shape[1]:
                gram = gram.mH @ gram  # also N = F: a square matrix is always the G
        signal, remainder = view.signal[rows], view.remainder[rows]
        fixed = cls(lens.rows(rows), signal, view.coefficients, remainder, energy, partial=True)
        fixed.nodes, fixed.gram, fixed.sparse, fixed.settled = rows, gram, sparse, True
        fixed.vectors = None if sparse is None else lens.vectors
        return fixed

    def __getitem__(self, index: Tensor) -> FixedRows:
        """Some of the rows, counted from 0; the index may differ within a `vmap`."""
        return self._chosen(index, settled=False)

    def settle(self, index: Tensor) -> FixedRows:
        """The same for rows that will come in every step."""
        return self._chosen(index, settled=True)

    def _chosen(self, index: Tensor, settled: bool) -> FixedRows:
        assert self.known_remainder is not None
        some = FixedRows(
            self.lens.rows(index),
            self.signal[index],
            self.coefficients,
            self.known_remainder[index],
            self.rest_energy,
            partial=True,
        )
        some.nodes, some.settled = self.nodes[index], settled
        some.gram, some.sparse, some.vectors = self.gram, self.sparse, self.vectors
        return some

    def map(self, weight: Tensor | None = None, mapped: Tensor | None = None) -> ColumnView:
        """The view of X W at these nodes.

        Args:
            weight: W, (F, d); the signal itself by default.
            mapped: the product of ``sparse`` with it, (N, d), where it is known already.
        """
        if weight is None:
            return self
        coefficients = shared_product(self.coefficients, weight)
        if self.sparse is not None:
            return self._of_mapped(self.sparse @ weight if mapped is None else mapped, coefficients)
        assert self.known_remainder is not None
        # The synthesis needs the remainder, and not the signal: that is the sum of both if asked.
        rest, energy = self.known_remainder @ weight, self._rest_energy(weight)
        return ColumnView(self.lens, None, coefficients, rest, energy, partial=True)

    def _of_mapped(self, mapped: Tensor, coefficients: Tensor) -> ColumnView:
        """The same of the mapped signal (N, d), which tells the norms by Pythagoras, if it can."""
        total = None if self.rest_energy is None else column_energy(mapped)
        # Its gradient is a third of the time of that of mapped[nodes].
        signal = mapped.index_select(0, self.nodes)
        view = ColumnView(self.lens, signal, coefficients, total=total, partial=True)
        if total is None or view.inferred is not None:
            return view
        assert self.vectors is not None
        left = mapped - shared_product(self.vectors, coefficients)
        some, energy = left.index_select(0, self.nodes), column_energy(left)
        return ColumnView(self.lens, signal, coefficients, some, energy, partial=True)

    def _rest_energy(self, weight: Tensor) -> Tensor | None:
        if self.gram is None:
            return None
        if self.gram.shape[0] != self.gram.shape[1]:
            return column_energy(self.gram @ weight)
        total = (weight.conj() * (self.gram @ weight)).real.sum(0)
        return total.clamp(min=0.0).unsqueeze(0)

    @property
    def _repeats(self) -> bool:
        """Whether what depends on the signal alone is worth keeping for the next step."""
        return self.settled and self.sparse is not None and self.rest_energy is not None

    def norms(self, p: float = 2.0, normalize: bool = False) -> Tensor:
        """(B, d); numbers, as the signal does not change."""
        if self._repeats and p == 2 and not normalize:
            return self._norms
        return super().norms(p, normalize)

    @cached_property
    def _norms(self) -> Tensor:
        with lasting(self.coefficients):
            return super().norms()

    def mapped(self, gain: Tensor, weight: Tensor) -> Tensor:
        """The sum with gains (B, d), and a map (d, d') after it: (R, d')."""
        transformed = torch.compiler.is_compiling() or is_vmapped(gain) or is_vmapped(weight)
        in_half = torch.is_autocast_enabled(gain.device.type)
        if transformed or in_half or not self._repeats:
            return super().mapped(gain, weight)
        return filter_and_map(gain, weight, self._factors)

    @cached_property
    def _factors(self) -> SparseFactors:
        lens, sparse = self.lens, self.sparse
        assert sparse is not None
        with lasting(self.coefficients):
            rows = sparse.rows(self.nodes)
            return SparseFactors.of(
                rows, self.coefficients, lens.vectors, lens.band, lens.rest, lens.n_bands
            )


def _times(x: Tensor, matrix: Tensor) -> Tensor:
    """The product of signals (..., n, d) with one matrix, as one product of matrices."""
    return (x.reshape(-1, x.shape[-1]) @ matrix).reshape(*x.shape[:-1], matrix.shape[-1])
