"""A signal in the columns of eigenvectors: `ColumnDecomposition`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from nlsf.spectral.decomposition import Decomposition
from nlsf.spectral.norms import column_energy, energy
from nlsf.spectral.thin import thin_product
from nlsf.spectral.vmapped import holds_everywhere

if TYPE_CHECKING:
    from nlsf.spectral.batch_projector import BatchProjector
    from nlsf.spectral.projector import Projector

PYTHAGORAS = 1e-3
"""Share of the energy below which the implicit band's norm is computed, not inferred."""


class ColumnDecomposition(Decomposition):
    """A signal by its coefficients in explicit eigenvectors; at most one band is implicit.

    Args:
        projector: what it is decomposed with.
        signal: (..., N, d), the signal itself, at the nodes that the projector synthesises; may be
            ``None`` where the remainder is given.
        coefficients: (..., k, d), :math:`V^* X` for the explicit columns.
        remainder: (..., N, d), the projection on the implicit band, if it is at hand.
        rest_energy: (..., 1, d), its squared norms, if they are at hand.
        total: (..., 1, d), the squared norms of the signal on all nodes, where it is here at some.
        prepared: whether the projector synthesises some nodes only, of a signal on more.
    """

    projector: Projector | BatchProjector

    def __init__(
        self,
        projector: Projector | BatchProjector,
        signal: Tensor | None,
        coefficients: Tensor,
        remainder: Tensor | None = None,
        rest_energy: Tensor | None = None,
        total: Tensor | None = None,
        *,
        prepared: bool = False,
    ) -> None:
        self.projector = projector
        if signal is not None:
            self.signal = signal
        self.coefficients = coefficients
        self.rest_energy = rest_energy
        self.total = total
        self.known_remainder = remainder
        self.prepared = prepared

    @cached_property
    def signal(self) -> Tensor:  # type: ignore[override]
        """:math:`V V^* X` and the remainder, where the signal was not given."""
        assert self.known_remainder is not None
        return thin_product(self.projector.vectors, self.coefficients) + self.known_remainder

    @property
    def remainder(self) -> Tensor:
        """:math:`X - V V^* X`, the projection on the implicit band: computed when first asked."""
        if self.known_remainder is None:
            explicit = thin_product(self.projector.vectors, self.coefficients)
            self.known_remainder = self.signal - explicit
        return self.known_remainder

    def energies(self) -> Tensor:
        """Squared norms (..., B, d): sums of squared coefficients over the columns of each band."""
        projector, rest = self.projector, self.rest_energy
        if projector.rest is not None and rest is None:
            if self.known_remainder is None and self.inferred is not None:
                return self.inferred
            rest = column_energy(self.remainder)
        explicit = projector.band_sums(energy(self.coefficients))
        return explicit if rest is None else explicit.index_add(-2, projector.rest_index, rest)

    @cached_property
    def inferred(self) -> Tensor | None:
        """All energies (..., B, d), by Pythagoras; ``None`` where that is inaccurate.

        The implicit band has what the explicit ones leave of the signal's energy. The difference of
        two nearly equal energies has no digits left: where less than a thousandth is left, the norm
        is computed from the remainder (docs/decisions.md).
        """
        projector = self.projector
        assert projector.rest is not None
        total = column_energy(self.signal) if self.total is None else self.total
        taken = thin_product(self._balance, energy(self.coefficients))
        energies = taken.index_add(-2, projector.rest_index, total)
        rest = energies.narrow(-2, projector.rest, 1)
        return energies if holds_everywhere(rest > PYTHAGORAS * total) else None

    @property
    def _balance(self) -> Tensor:
        """(B, k); a batch has none, because its remainder is always at hand."""
        return cast("Projector", self.projector).balance

    def weighted(self, gain: Tensor) -> Tensor:
        """The diagonal synthesis with gains (..., B, d): (..., N, d), by one thin product."""
        projector = self.projector
        gain = gain.to(self.coefficients.dtype)
        y = thin_product(projector.vectors, self.coefficients * self._column_gains(gain))
        if projector.rest is not None:
            y = torch.addcmul(y, self._left, gain.narrow(-2, projector.rest, 1))
        return projector.restore(y)

    def mapped(self, gain: Tensor, weight: Tensor) -> Tensor:
        """The same and a map (d, d') after it; a narrow one goes first, through the projections."""
        if self.coefficients.ndim > 2 or weight.shape[1] >= weight.shape[0]:
            return super().mapped(gain, weight)
        projector = self.projector
        gain, weight = gain.to(self.coefficients.dtype), weight.to(self.coefficients.dtype)
        y = thin_product(projector.vectors, (self.coefficients * self._column_gains(gain)) @ weight)
        if projector.rest is not None:
            y = y + self._left @ (gain[projector.rest].unsqueeze(-1) * weight)
        return projector.restore(y)

    def _column_gains(self, gain: Tensor) -> Tensor:
        """(..., k, d), what each column is multiplied by, if `_left` has the gain of the rest."""
        if self.projector.rest is None or self.known_remainder is not None:
            return self.projector.spread(gain)
        return thin_product(self._balance.mT.to(gain), gain)

    @property
    def _left(self) -> Tensor:
        """The remainder; or the signal, where columns subtract from it what is theirs."""
        return self.signal if self.known_remainder is None else self.known_remainder

    def mixed(self, r: Tensor) -> Tensor:
        """The synthesis with a matrix for every band, (..., B, d, d'): (..., N, d')."""
        projector = self.projector
        r = r.to(self.coefficients.dtype)
        mixed = projector.mix(self.coefficients, r)
        if projector.rest is None:
            return projector.restore(thin_product(projector.vectors, mixed))
        rest = r[..., projector.rest, :, :]
        if self.known_remainder is None:
            mixed = mixed - self.coefficients @ rest
            y = thin_product(projector.vectors, mixed)
            return projector.restore(y + self.signal @ rest)
        return projector.restore(thin_product(projector.vectors, mixed) + self.remainder @ rest)

    def part(self, j: int) -> Tensor:
        """The projection on band j, in the layout of ``signal``."""
        return self.projector.part(self, j)
