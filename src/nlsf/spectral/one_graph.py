"""What every way to project the signals of one graph on bands has in common: `OneGraph`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.decomposition import Decomposition


class OneGraph(ABC):
    """The projections of the signals of one graph on B bands.

    Attributes:
        n_bands: B, with the complement.
    """

    n_bands: int

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """N."""

    @abstractmethod
    def decompose(self, x: Tensor, *, check_finite: bool = True) -> Decomposition:
        """The signal (..., N, d) as analysis and synthesis need it."""

    @property
    def sizes(self) -> Tensor:
        """The number of nodes as a tensor that divides (..., B, d); 1 for an empty graph."""
        return torch.tensor(max(self.num_nodes, 1))

    def restore(self, y: Tensor) -> Tensor:
        """The signal in the layout in which it came."""
        return y

    def project(self, x: Tensor | Decomposition, j: int) -> Tensor:
        """The projection of the signal on band j, counted from 0: same shape as the signal."""
        if not 0 <= j < self.n_bands:
            raise BandError(
                f"There is no band {j}: the bands are numbered 0 to {self.n_bands - 1}."
            )
        return self._decomposed(x).part(j)

    def projections(self, x: Tensor | Decomposition) -> Iterator[Tensor]:
        """The projections on all bands, one at a time: only one is in memory."""
        parts = self._decomposed(x)
        return (parts.part(j) for j in range(self.n_bands))

    def _decomposed(self, x: Tensor | Decomposition) -> Decomposition:
        return self.decompose(x) if isinstance(x, Tensor) else x
