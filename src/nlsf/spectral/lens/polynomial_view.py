"""A signal by Chebyshev polynomials of its operator: `PolynomialView`, and `FixedBands`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nlsf.spectral.bands import Bands
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.kernels.dense import energy, shared_product
from nlsf.spectral.kernels.recurrence import chebyshev_filter, chebyshev_moments, chebyshev_terms
from nlsf.spectral.lens.streamed import MEMORY, StreamedProjections
from nlsf.spectral.lens.view import View


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
        coefficients = shared_product(self.vectors.mH, x)
        return coefficients, x - shared_product(self.vectors, coefficients)

    def energies(self, coefficients: Tensor) -> Tensor:
        """(..., B, d), the energy of the coefficients in each band."""
        return self.member.mT @ energy(coefficients)

    def weighted(self, coefficients: Tensor, gain: Tensor) -> Tensor:
        """(..., N, d), the signal with a gain (..., B, d) on every band."""
        gained = coefficients * (self.member.to(gain.dtype) @ gain)
        return shared_product(self.vectors, gained)

    def mixed(self, coefficients: Tensor, r: Tensor) -> Tensor:
        """(..., N, d'), the signal with a matrix (..., B, d, d') on every band."""
        mine = coefficients.unsqueeze(-3) * self.member.mT.unsqueeze(-1)  # (..., B, k, d)
        return shared_product(self.vectors, (mine @ r.to(mine.dtype)).sum(-3))


class PolynomialView(View):
    r"""Signals by their Chebyshev terms :math:`T_k X`, from which every band is a weighted sum.

    Args:
        lens: the `PolynomialLens` that they are seen through.
        x: (..., N, d), or (N_1 + ... + N_G, d) of many graphs.

    Attributes:
        signal: the same, padded for many graphs.
        coefficients: (..., k, d), in the eigenvectors of the exact end, if there is one.
        columns: (N, D), the channels of all signals side by side, without the exact end.
        terms: (K + 1, N, D), their Chebyshev terms.
    """

    def __init__(self, lens: Any, x: Tensor) -> None:
        self.lens = lens
        self.signal = x if lens.nodes is None else lens.pad(x)
        self._channels = (*x.shape[:-2], x.shape[-1])
        self.coefficients: Tensor | None = None
        if lens.end is not None:
            self.coefficients, x = lens.end.split(x)
        self.columns = _columns(x)
        self.terms = chebyshev_terms(lens.operator, self.columns, lens.bands.order)

    def energies(self) -> Tensor:
        r"""(..., B, d), :math:`\langle x, P_j x \rangle = \sum_k b_{jk} \langle x, T_k x \rangle`.

        They sum to :math:`\|x\|^2`, and are not negative because no :math:`p_j` is.
        """
        if self.lens.nodes is not None:
            of_graphs: Tensor = self.lens.series @ self._moments_of_graphs()
            return of_graphs.clamp(min=0.0)
        moments = chebyshev_moments(self.lens.operator, self.columns, self.terms)
        energies = self._signals(self.lens.series @ moments).clamp(min=0.0)
        if self.coefficients is None:
            return energies
        of_end: Tensor = self.lens.end.energies(self.coefficients)
        return energies + of_end

    def _moments_of_graphs(self) -> Tensor:
        r"""(G, K + 1, d), :math:`\langle x, T_k x \rangle` of every graph."""
        x, terms, lens = self.columns, self.terms, self.lens
        products = (terms.conj() * x).real if x.is_complex() else terms * x
        sums = products.new_zeros(len(products), lens.num_graphs, x.shape[1])
        return sums.index_add(1, lens.graph_of_nodes, products).movedim(0, 1)

    def weighted(self, gain: Tensor) -> Tensor:
        r"""The sum :math:`\sum_k (\sum_j g_j b_{jk}) \odot T_k X`: (..., N, d)."""
        if self.lens.nodes is not None:
            return self._weighted_graphs(self.lens.per_term(gain).to(self.terms.dtype))
        gain = gain.to(self.terms.dtype)
        weights = self.lens.per_term(gain)
        if gain.shape[:-2] == self.signal.shape[:-2]:
            operator, columns = self.lens.operator, self.columns
            y = self._signals(chebyshev_filter(operator, columns, _columns(weights), self.terms))
        else:
            y = (weights.unsqueeze(-2) * self._terms()).sum(-3)
        if self.coefficients is None:
            return y
        of_end: Tensor = self.lens.end.weighted(self.coefficients, gain)
        return y + of_end

    def _weighted_graphs(self, weights: Tensor) -> Tensor:
        """The sum of the terms with weights (G, K + 1, d) of each graph."""
        y = torch.zeros_like(self.columns)
        for term, weight in zip(self.terms, weights.unbind(1), strict=True):
            y = y + term * weight.index_select(0, self.lens.graph_of_nodes)
        return y

    def mixed(self, r: Tensor) -> Tensor:
        r"""The sum :math:`\sum_k T_k X (\sum_j b_{jk} R_j)`: (..., N, d')."""
        if self.lens.nodes is None:
            r = r.to(self.terms.dtype)
        maps = self.lens.per_term(r.flatten(-2)).unflatten(-1, r.shape[-2:]).to(self.terms.dtype)
        # The channels of all terms side by side: one product for all terms, or one a graph.
        if self.lens.nodes is not None:
            terms = self.lens.pad(self.terms.movedim(0, 1).flatten(1))
            return self._restored(terms @ maps.flatten(1, 2))
        y: Tensor = self._terms().movedim(-3, -2).flatten(-2) @ maps.flatten(-3, -2)
        if self.coefficients is None:
            return y
        of_end: Tensor = self.lens.end.mixed(self.coefficients, r)
        return y + of_end

    def padded_part(self, j: int) -> Tensor:
        r"""The projection :math:`\sum_k b_{jk} T_k X` on band j, in the layout of ``signal``."""
        gain = torch.zeros_like(self.lens.series[..., :1])
        gain[..., j, :] = 1.0
        if self.lens.nodes is not None:
            y: Tensor = self.lens.pad(self.weighted(gain.expand(-1, -1, self.signal.shape[-1])))
            return y
        return self.weighted(gain.expand(*self.signal.shape[:-2], -1, self.signal.shape[-1]))

    def _terms(self) -> Tensor:
        """(..., K + 1, N, d)."""
        terms: Tensor = self.terms.unflatten(-1, self._channels)
        return terms.movedim((0, 1), (-3, -2))

    def _signals(self, y: Tensor) -> Tensor:
        """(n, D) as (..., n, d)."""
        apart: Tensor = y.unflatten(-1, self._channels)
        return apart.movedim(0, -2)


def _columns(x: Tensor) -> Tensor:
    """Signals (..., n, d) as columns (n, D), the channels of all side by side."""
    return x.movedim(-2, 0).flatten(1) if x.ndim > 2 else x


@dataclass(frozen=True, eq=False)
class FixedBands(View):
    r"""A fixed signal on one graph, at some of its nodes, projected on polynomial bands.

    A linear map W of the channels commutes with the projections, so that a filter on :math:`X W` is
    one product with rows that are there already,

    .. math::
        \sum_j g_j \odot P_j (X W) = [P_1 X, \dots, P_B X] \begin{bmatrix} W \odot g_1 \\ \vdots \\
            W \odot g_B \end{bmatrix}, \qquad
        \langle X W, P_j X W \rangle = \mathrm{diag}(W^* G_j W), \quad G_j = X^* P_j X ,

    and a training step sees neither the graph nor other nodes.

    Attributes:
        lens: the bands.
        blocks: the projections (B, R, c), in blocks of channels; maybe mapped from files.
        grams: (B, F, F), the :math:`G_j`.
        index: which of the R rows; all where it is ``None``.
        weight: the map W, (F, d), or ``None``.
    """

    lens: Any
    blocks: tuple[Tensor, ...]
    grams: Tensor
    index: Tensor | None = None
    weight: Tensor | None = None

    partial = True
    sparse = None  # products with these rows are dense

    @classmethod
    def of(
        cls,
        x: Tensor,
        lens: Any,
        rows: Tensor,
        *,
        memory: int = MEMORY,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> FixedBands:
        """Prepares a signal (N, F) for these nodes; options as in `StreamedProjections`."""
        streamed = StreamedProjections(
            lens, x, rows, memory=memory, folder=folder, progress=progress
        )
        return cls(lens, tuple(streamed.blocks), streamed.grams)

    def __getitem__(self, index: Tensor) -> FixedBands:
        """Some of the prepared rows, counted from 0; the index may differ within a `vmap`."""
        return replace(self, index=index if self.index is None else self.index[index])

    def settle(self, index: Tensor) -> FixedBands:
        """The same for rows that will come in every step."""
        return self[index]

    def map(self, weight: Tensor | None = None, mapped: Tensor | None = None) -> FixedBands:
        """The view of X W at these nodes; of the signal itself by default."""
        return replace(self, weight=weight)

    @cached_property
    def rows(self) -> Tensor:
        """(R, B, F), the projections of these rows before the map, read when first asked for."""
        index = slice(None) if self.index is None else self.index
        bands = range(self.n_bands)
        each = [torch.cat([block[j][index] for block in self.blocks], dim=-1) for j in bands]
        return torch.stack(each, dim=-2)

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
        """The sum with gains (B, d): (R, d)."""
        gain = gain.to(self.rows.dtype)
        if self.weight is None:
            return (self.rows * gain).sum(-2)
        return self._product(self.weight * gain.unsqueeze(-2))

    def mixed(self, r: Tensor) -> Tensor:
        """The sum with a matrix for every band, (B, d, d'): (R, d')."""
        r = r.to(self.rows.dtype)
        return self._product(r if self.weight is None else self.weight @ r)

    def padded_part(self, j: int) -> Tensor:
        """The projection on band j: (R, d)."""
        row = self.rows[..., j, :]
        return row if self.weight is None else row @ self.weight

    def _product(self, maps: Tensor) -> Tensor:
        """The rows of all bands, each times its matrix (B, F, d), summed: (R, d)."""
        y: Tensor = self.rows.flatten(-2) @ maps.flatten(-3, -2)
        return y
