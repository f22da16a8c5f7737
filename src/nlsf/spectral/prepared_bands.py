"""A signal projected on all bands before training: `PreparedBands`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from nlsf.spectral.decomposition import Decomposition
from nlsf.spectral.polynomial_projector import PolynomialProjector
from nlsf.spectral.streamed import MEMORY, StreamedProjections


@dataclass(frozen=True, eq=False)
class PreparedBands:
    r"""A fixed signal on one graph, at some of its nodes, projected on polynomial bands.

    A linear map W of the channels commutes with the projections, so that a filter on :math:`X W` is
    one product with rows that are there already,

    .. math::
        \sum_j g_j \odot P_j (X W) = [P_1 X, \dots, P_B X] \begin{bmatrix} W \odot g_1 \\ \vdots \\
            W \odot g_B \end{bmatrix}, \qquad
        \langle X W, P_j X W \rangle = \mathrm{diag}(W^* G_j W), \quad G_j = X^* P_j X ,

    and a training step sees neither the graph nor other nodes.

    Attributes:
        projector: the bands.
        blocks: the projections (B, R, c), in blocks of channels; maybe mapped from files.
        grams: (B, F, F), the :math:`G_j`.
        index: which of the R rows; all where it is ``None``.
    """

    projector: PolynomialProjector
    blocks: tuple[Tensor, ...]
    grams: Tensor
    index: Tensor | None = None

    @classmethod
    def of(
        cls,
        x: Tensor,
        projector: PolynomialProjector,
        rows: Tensor,
        *,
        memory: int = MEMORY,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> PreparedBands:
        """Prepares a signal (N, F) for these nodes; options as in `StreamedProjections`."""
        streamed = StreamedProjections(
            projector, x, rows, memory=memory, folder=folder, progress=progress
        )
        return cls(projector, tuple(streamed.blocks), streamed.grams)

    def __getitem__(self, index: Tensor) -> PreparedBands:
        """Some of the prepared rows, counted from 0; the index may differ within a `vmap`."""
        return replace(self, index=index if self.index is None else self.index[index])

    def map(self, weight: Tensor | None = None) -> MappedBands:
        """The decomposition of X W at these nodes, whose rows are read now.

        Args:
            weight: W, (F, d); the signal itself by default.
        """

        def channels(j: int) -> Tensor:
            index = slice(None) if self.index is None else self.index
            return torch.cat([block[j][index] for block in self.blocks], dim=-1)

        rows = torch.stack([channels(j) for j in range(self.projector.n_bands)], dim=-2)
        return MappedBands(self.projector, rows, self.grams, weight)


class MappedBands(Decomposition):
    """Rows of a prepared signal, after a linear map of their channels.

    Args:
        projector: the bands.
        rows: (R, B, F), the projections before the map.
        grams: (B, F, F), of all nodes.
        weight: the map, (F, d), or ``None``.
    """

    prepared = True

    def __init__(
        self, projector: PolynomialProjector, rows: Tensor, grams: Tensor, weight: Tensor | None
    ) -> None:
        self.projector, self.rows, self.grams, self.weight = projector, rows, grams, weight

    @cached_property
    def signal(self) -> Tensor:  # type: ignore[override]
        """The sum of all bands at these nodes, (R, d): X W, if the complement is one of them."""
        rows = self.rows.sum(-2)
        return rows if self.weight is None else rows @ self.weight

    def energies(self) -> Tensor:
        """(B, d), from the Gram matrices."""
        if self.weight is None:
            energies = self.grams.diagonal(dim1=-2, dim2=-1).real
        else:
            energies = (self.weight.conj() * (self.grams @ self.weight)).real.sum(-2)
        return energies.clamp(min=0.0)

    def weighted(self, gain: Tensor) -> Tensor:
        """The diagonal synthesis with gains (B, d): (R, d)."""
        gain = gain.to(self.rows.dtype)
        if self.weight is None:
            return (self.rows * gain).sum(-2)
        return self._product(self.weight * gain.unsqueeze(-2))

    def mixed(self, r: Tensor) -> Tensor:
        """The synthesis with a matrix for every band, (B, d, d'): (R, d')."""
        r = r.to(self.rows.dtype)
        return self._product(r if self.weight is None else self.weight @ r)

    def part(self, j: int) -> Tensor:
        """The projection on band j: (R, d)."""
        row = self.rows[..., j, :]
        return row if self.weight is None else row @ self.weight

    def _product(self, maps: Tensor) -> Tensor:
        """The rows of all bands, each times its matrix (B, F, d), summed: (R, d)."""
        y: Tensor = self.rows.flatten(-2) @ maps.flatten(-3, -2)
        return y
