"""A signal in the columns of eigenvectors: `ColumnDecomposition`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nlsf.spectral.decomposition import Decomposition
from nlsf.spectral.norms import energy
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
        *,
        prepared: bool = False,
    ) -> None:
        self.projector = projector
        if signal is not None:
            self.signal = signal
        self.coefficients = coefficients
        self.rest_energy = rest_energy
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
        energies = self.projector.band_sums(energy(self.coefficients))
        if self.projector.rest is None:
            return energies
        rest = self._rest_energy(energies.sum(-2, keepdim=True))
        return energies.index_add(-2, self.projector.rest_index, rest)

    def _rest_energy(self, explicit: Tensor) -> Tensor:
        """The implicit band's energy (..., 1, d): by Pythagoras where that is accurate.

        The difference of two nearly equal energies has no digits left. Where less than a thousandth
        is left to the implicit band, its norm is computed from the remainder (docs/decisions.md).
        """
        if self.rest_energy is not None:
            return self.rest_energy
        if self.known_remainder is None:
            # One pass, where squares and their sum would be two.
            total = torch.linalg.vector_norm(self.signal, dim=-2, keepdim=True).square()
            rest: Tensor = total - explicit
            if holds_everywhere(rest > PYTHAGORAS * total):
                return rest
        return energy(self.remainder).sum(-2, keepdim=True)

    def weighted(self, gain: Tensor) -> Tensor:
        """The diagonal synthesis with gains (..., B, d): (..., N, d), by one thin product."""
        projector = self.projector
        gain = gain.to(self.coefficients.dtype)
        if projector.rest is None:
            gained = self.coefficients * projector.spread(gain)
            return projector.restore(thin_product(projector.vectors, gained))
        rest = gain[..., projector.rest, None, :]
        if self.known_remainder is None:  # the rest is X minus the columns: fold it into them
            gained = self.coefficients * (projector.spread(gain) - rest)
            y = thin_product(projector.vectors, gained)
            return projector.restore(torch.addcmul(y, self.signal, rest))
        y = thin_product(projector.vectors, self.coefficients * projector.spread(gain))
        return projector.restore(torch.addcmul(y, self.remainder, rest))

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
