"""What analysis and synthesis ask of a projector: `BandProjector` and `Decomposition`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import torch
from torch import Tensor

from nlsf.spectral.bands import Bands
from nlsf.spectral.norms import power


class BandProjector(Protocol):
    """The projections of one or many graphs on bands, whichever way they are computed.

    Attributes:
        complement: whether what the bands leave out is a last band.
        n_bands: B, with the complement.
        dimension: (..., B), the dimension of each band; estimated where no eigenvectors are.
        frequencies: (..., B), the mean frequency of each band.
    """

    complement: bool
    n_bands: int
    dimension: Tensor
    frequencies: Tensor

    @property
    def bands(self) -> Bands:
        """The partition."""

    @property
    def num_nodes(self) -> int:
        """N, of all graphs together."""

    @property
    def sizes(self) -> Tensor:
        """The number of nodes as a tensor that divides (..., B, d)."""

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the signals that it takes."""

    def decompose(self, x: Tensor, *, check_finite: bool = True) -> Decomposition:
        """The signal (..., N, d) as analysis and synthesis need it."""

    def restore(self, y: Tensor) -> Tensor:
        """The signal in the layout in which it came."""


class Decomposition(ABC):
    """A signal seen by a projector, computed once and shared by analysis and synthesis.

    Attributes:
        projector: what it is decomposed with.
        signal: (..., N, d), the signal itself, at the nodes that the projector synthesises.
        prepared: whether only some nodes of the signal are here, so that L_2 norms are all there
            is to be known of the others.
    """

    projector: BandProjector
    signal: Tensor
    prepared: bool = False

    @abstractmethod
    def energies(self) -> Tensor:
        r"""(..., B, d), the energy :math:`\langle x, P_j x \rangle` of each channel in each band.

        For exact projections it is :math:`\|P_j x\|^2`. The energies are not negative.
        """

    def norms(self) -> Tensor:
        """(..., B, d), the roots of the energies; the gradient of a zero norm is 0."""
        return power(self.energies(), 0.5)

    @abstractmethod
    def weighted(self, gain: Tensor) -> Tensor:
        r"""The diagonal synthesis :math:`\sum_j g_j \odot P_j X`.

        Args:
            gain: (..., B, d), real or complex.

        Returns:
            (..., N, d), in the layout in which the signal came.
        """

    def mapped(self, gain: Tensor, weight: Tensor) -> Tensor:
        r"""The diagonal synthesis and a linear map after it, :math:`\sum_j (g_j \odot P_j X) W`.

        Args:
            gain: (..., B, d).
            weight: W, (d, d').

        Returns:
            (..., N, d'), in the layout in which the signal came.
        """
        y = self.weighted(gain)
        return y @ weight.to(y.dtype)

    @abstractmethod
    def mixed(self, r: Tensor) -> Tensor:
        r"""The synthesis :math:`\sum_j P_j X R_j` with a matrix for every band.

        Args:
            r: (..., B, d, d').

        Returns:
            (..., N, d'), in the layout in which the signal came.
        """

    @abstractmethod
    def part(self, j: int) -> Tensor:
        """The projection on band j, counted from 0, in the layout of ``signal``."""
