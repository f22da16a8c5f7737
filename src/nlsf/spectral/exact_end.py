"""The leading eigenpairs beside a polynomial: `ExactEnd`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nlsf.spectral.bands import Bands
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.norms import energy
from nlsf.spectral.thin import thin_product


@dataclass(frozen=True, eq=False)
class ExactEnd:
    r"""The low end of a spectrum by its eigenvectors V, each in one band as a whole.

    Attributes:
        vectors: (N, k), whole eigenspaces.
        member: (k, B), 1 where the vector belongs to the band; a row of zeros for a vector whose
            band is left out.
        frequencies: (k,), float64.
    """

    vectors: Tensor
    member: Tensor
    frequencies: Tensor

    @classmethod
    def of(cls, spectrum: Spectrum, bands: Bands, n_bands: int) -> ExactEnd:
        """Sorts the eigenpairs of a partial spectrum into the first ``n_bands`` bands."""
        member = torch.nn.functional.one_hot(bands.assign(spectrum), bands.n_bands + 1)
        real = spectrum.vectors.dtype.to_real()
        return cls(spectrum.vectors, member[:, :n_bands].to(real), spectrum.frequencies)

    def to(self, dtype: torch.dtype, device: torch.device | str | None) -> ExactEnd:
        """The same in another precision or on another device."""
        return replace(
            self,
            vectors=self.vectors.to(dtype=dtype, device=device),
            member=self.member.to(dtype=dtype.to_real(), device=device),
            frequencies=self.frequencies.to(device=device),
        )

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The coefficients (..., k, d) of a signal (..., N, d), and what they leave of it."""
        coefficients = thin_product(self.vectors.mH, x)
        return coefficients, x - thin_product(self.vectors, coefficients)

    def energies(self, coefficients: Tensor) -> Tensor:
        """(..., B, d), the energy of the coefficients in each band."""
        return self.member.mT @ energy(coefficients)

    def weighted(self, coefficients: Tensor, gain: Tensor) -> Tensor:
        """(..., N, d), the signal with a gain (..., B, d) on every band."""
        gained = coefficients * (self.member.to(gain.dtype) @ gain)
        return thin_product(self.vectors, gained)

    def mixed(self, coefficients: Tensor, r: Tensor) -> Tensor:
        """(..., N, d'), the signal with a matrix (..., B, d, d') on every band."""
        mine = coefficients.unsqueeze(-3) * self.member.mT.unsqueeze(-1)  # (..., B, k, d)
        return thin_product(self.vectors, (mine @ r.to(mine.dtype)).sum(-3))
