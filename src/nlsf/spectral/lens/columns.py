"""Exact bands by eigenvectors, of one graph or of many: `ColumnLens`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Any, Self

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands import Bands
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.eigen.eigensolve import batched_eigh, partial_eigh
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.kernels.dense import shared_product
from nlsf.spectral.kernels.segments import segment_sum
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.lens.column_view import ColumnView, FixedRows
from nlsf.spectral.lens.lens import Lens, OneGraph
from nlsf.spectral.operators.shift import ShiftOperator


class ColumnLens(Lens, bands=Bands):
    r"""The projections :math:`P_1, \dots, P_B` of spectra on bands, as one thin matrix a graph.

    Instead of B matrices of N x N it keeps the eigenvectors V (N x k) and a band number for each
    column. At most one band is *implicit*, namely what the columns leave of the identity:

    .. math::
        P_j = V_j V_j^*, \qquad P_{rest} = I - \sum_{j \ne rest} P_j .

    The implicit band is the complement where the spectrum is partial, or the last band where the
    bands cover everything. One graph whose spectrum is complete leaves its largest band implicit:
    the projections sum to the identity exactly, and fewer columns are multiplied. Many graphs are
    padded to one size, so that a batch costs one product; the same band is implicit in all.

    Attributes:
        spectra: of each graph.
        rest: the implicit band, if there is one.
        vectors: (N, k), or (G, n, k) for many graphs, the columns, grouped by band.
        band: (k,), or (G, k), of each column.
        rest_index: (1,), the implicit band as an index; (0,) without one.
    """

    def __init__(
        self,
        spectra: Sequence[Spectrum],
        bands: Bands,
        complement: bool,
        rest: int | None,
        vectors: Tensor,
        band: Tensor,
        dimension: Tensor,
        frequencies: Tensor,
    ) -> None:
        self.spectra, self.bands, self.complement = tuple(spectra), bands, complement
        self.num_nodes = sum(spectrum.num_nodes for spectrum in self.spectra)
        self.n_bands = bands.n_bands + int(complement)
        self.rest, self.vectors, self.band = rest, vectors, band
        self.dimension, self.frequencies = dimension, frequencies
        index = [] if rest is None else [rest]
        self.rest_index = torch.tensor(index, dtype=torch.int64, device=vectors.device)

    @classmethod
    def on_graph(
        cls, graph: OneGraph, bands: Bands, complement: bool, cache: CacheArgument = None
    ) -> Self:
        """The lens of one graph; of an operator, as many eigenpairs are found as it needs."""
        if isinstance(graph, ShiftOperator):
            graph = needed_spectrum(graph, bands, complement, cache)
        spectrum = _spectrum_of(graph)
        assigned, dimension = _assigned(spectrum, bands)
        rest = _left_out(bands, complement)
        missing = spectrum.num_nodes - spectrum.num_pairs
        if not missing:
            largest = complement or dimension[bands.n_bands] == 0
            rest = int(dimension.argmax()) if largest else None
        if rest is not None and dimension[rest] + missing == 0:
            rest = None
        return cls._sorted(spectrum, bands, complement, rest, assigned, dimension)

    @classmethod
    def on_each(cls, graphs: Sequence[OneGraph], bands: Bands, complement: bool) -> Sequence[Self]:
        """One lens a graph, all with the same implicit band."""
        shifts = [graph for graph in graphs if isinstance(graph, ShiftOperator)]
        every = graphs
        if shifts and len(shifts) == len(graphs):
            every = batched_eigh(shifts, bands=bands)
        rest = _left_out(bands, complement)

        lenses = []
        for graph in every:
            if isinstance(graph, cls) and graph.rest == rest:
                lenses.append(graph)
            else:
                spectrum = _spectrum_of(graph)
                found = _assigned(spectrum, bands)
                lenses.append(cls._sorted(spectrum, bands, complement, rest, *found))
        return lenses

    @classmethod
    def _sorted(
        cls,
        spectrum: Spectrum,
        bands: Bands,
        complement: bool,
        rest: int | None,
        assigned: Tensor,
        dimension: Tensor,
    ) -> Self:
        """Keeps the columns of the explicit bands, those of one band side by side."""
        n_bands = bands.n_bands + int(complement)
        if rest is not None:
            dimension[rest] += spectrum.num_nodes - spectrum.num_pairs
        explicit = (assigned < n_bands) & (assigned != (-1 if rest is None else rest))
        columns = explicit.nonzero().squeeze(-1)
        columns = columns[torch.sort(assigned[columns], stable=True).indices]
        mean = _mean_frequencies(spectrum, assigned, rest, bands.n_bands + 1)
        return cls(
            [spectrum],
            bands,
            complement,
            rest,
            spectrum.vectors[:, columns].contiguous(),
            assigned[columns],
            dimension[:n_bands],
            mean[:n_bands],
        )

    @classmethod
    def packed(
        cls, lenses: Sequence[Any], bands: Bands, complement: bool, dtype: torch.dtype | None
    ) -> Self:
        """One lens of many graphs, padded with zeros."""
        n_bands = bands.n_bands + int(complement)
        none = torch.zeros(0, n_bands, dtype=torch.float64)
        vectors = _padded([one.vectors for one in lenses], torch.zeros(0, 0, 0, dtype=dtype))
        # Columns that pad have zero vectors, so it does not matter which band they count for.
        band = torch.zeros(vectors.shape[0], vectors.shape[2], dtype=torch.int64)
        for g, one in enumerate(lenses):
            band[g, : len(one.band)] = one.band
        lens = cls(
            [one.spectra[0] for one in lenses],
            bands,
            complement,
            _left_out(bands, complement),
            vectors,
            band.to(vectors.device),
            torch.stack([one.dimension for one in lenses]) if lenses else none,
            torch.stack([one.frequencies for one in lenses]) if lenses else none,
        )
        lens._pack([one.num_nodes for one in lenses], vectors.device)
        return lens

    @property
    def spectrum(self) -> Spectrum:
        """That of the one graph."""
        if self.nodes is not None:
            raise BandError("A lens on many graphs has one spectrum a graph: ask for lens.spectra.")
        return self.spectra[0]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the vectors."""
        return self.vectors.dtype

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Self:
        """The same projections, of the same rows, in another precision or on another device."""
        if dtype in (None, self.dtype) and device in (None, self.vectors.device):
            return self
        moved = copy.copy(self)
        moved.spectra = tuple(one.to(dtype=dtype, device=device) for one in self.spectra)
        if dtype is not None and self.dtype.is_complex and not dtype.is_complex:
            dtype = dtype.to_complex()
        moved.vectors = self.vectors.to(dtype=dtype, device=device)
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name != "vectors":
                setattr(moved, name, value.to(device=device))
        if "balance" in vars(self):
            moved.balance = self.balance.to(moved.vectors.real)
        return moved

    def rows(self, index: Tensor) -> Self:
        """A lens that synthesises only these nodes; it cannot see signals itself."""
        some = copy.copy(self)
        some.vectors = self.vectors[index]
        return some

    def view(self, x: Tensor) -> ColumnView:
        """The coefficients in the columns, by one thin product."""
        if self.nodes is None:
            return ColumnView(self, x, shared_product(self.vectors.mH, x))
        padded = self.pad(x)
        coefficients = self.vectors.mH @ padded
        remainder = None
        if self.rest is not None:
            remainder = padded - self.vectors @ coefficients
            # Exactly zero, not a rounding error, where the band is empty.
            remainder = remainder * (self.dimension[:, self.rest] > 0)[:, None, None]
        return ColumnView(self, padded, coefficients, remainder)

    def fix_rows(
        self, x: Tensor, rows: Tensor, *, sparse: SparseSignal | None = None, **options: Any
    ) -> FixedRows:
        """A signal that does not change, at some nodes; of the options none is needed here."""
        return FixedRows.of(self.view(self.fitting(x)), rows, sparse)

    @cached_property
    def balance(self) -> Tensor:
        """(B, k), what the energy of each column of one graph adds to that of each band."""
        with torch.inference_mode(False):  # a training may need it later
            balance = torch.nn.functional.one_hot(self.band, self.n_bands).T.to(self.vectors.real)
            if self.rest is not None:
                balance[self.rest] = -1.0  # the implicit band has what the columns leave
        return balance

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The columns of each band of one graph, one slice a band; empty for the implicit one."""
        ends = torch.bincount(self.band, minlength=self.n_bands).cumsum(0).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    def band_sums(self, columns: Tensor) -> Tensor:
        """Sums over the columns of each band: (..., k, d) to (..., B, d)."""
        if self.nodes is not None:
            return segment_sum(columns, self.band, self.n_bands)
        shape = (*columns.shape[:-2], self.n_bands, columns.shape[-1])
        return columns.new_zeros(shape).index_add(-2, self.band, columns)

    def spread(self, per_band: Tensor) -> Tensor:
        """Gives every column the number of its band: (..., B, d) to (..., k, d)."""
        if self.nodes is None:
            return per_band.index_select(-2, self.band)
        index = self.band[:, :, None].expand(-1, -1, per_band.shape[-1])
        return per_band.gather(1, index)

    def mix(self, coefficients: Tensor, per_band: Tensor) -> Tensor:
        """Multiplies the columns of each band by its matrix: (..., k, d), (..., B, d, m)."""
        if self.nodes is None:
            parts = [
                coefficients[..., s, :] @ per_band[..., j, :, :] for j, s in enumerate(self.slices)
            ]
            return torch.cat(parts, dim=-2)
        mixed = coefficients.new_zeros(*coefficients.shape[:2], per_band.shape[-1])
        for j in range(self.n_bands):
            if j != self.rest:
                mixed = mixed + self._of_band(coefficients, j) @ per_band[:, j]
        return mixed

    def synthesized(self, coefficients: Tensor, j: int) -> Tensor:
        """What the columns of band j make of their coefficients."""
        if self.nodes is None:
            return self.vectors[:, self.slices[j]] @ coefficients[..., self.slices[j], :]
        return self.vectors @ self._of_band(coefficients, j)

    def _of_band(self, coefficients: Tensor, j: int) -> Tensor:
        """The coefficients (G, k, d) of one band, zeros in the place of the others."""
        return coefficients * (self.band == j)[:, :, None]

    def __repr__(self) -> str:
        many = f"num_graphs={self.num_graphs}"
        one = f"num_nodes={self.num_nodes}, dimension={self.dimension.tolist()}"
        return (
            f"Lens({self.bands}, complement={self.complement}, "
            f"{one if self.nodes is None else many})"
        )


def needed_spectrum(
    shift: ShiftOperator, bands: Bands, complement: bool, cache: CacheArgument = None
) -> Spectrum:
    """What the bands need of the spectrum; all of it where that makes the lens smaller.

    Bands that reach far up may need nearly every pair, dyadic ones on L for example, whose highest
    eigenvalues are few and far apart. With the last pairs too, not the last band is implicit but
    the largest one, and training multiplies only the columns of the others.
    """
    spectrum = partial_eigh(shift, bands=bands, cache=cache)
    if all_pairs_pay(spectrum, bands, complement):
        return partial_eigh(shift, cache=cache)
    return spectrum


def all_pairs_pay(spectrum: Spectrum, bands: Bands, complement: bool) -> bool:
    """Whether the missing pairs of a spectrum would make the lens smaller."""
    leaves_nothing_out = complement or bands.covers_all
    return leaves_nothing_out and spectrum.num_nodes / 2 < spectrum.num_pairs < spectrum.num_nodes


def _spectrum_of(graph: OneGraph) -> Spectrum:
    if isinstance(graph, ColumnLens):
        return graph.spectrum
    if not isinstance(graph, Spectrum):
        raise BandError(
            f"A lens is made of operators, of spectra, or of what Lens.each gave, and of one kind "
            f"at a time; this is a {type(graph).__name__}."
        )
    return graph


def _assigned(spectrum: Spectrum, bands: Bands) -> tuple[Tensor, Tensor]:
    """The band of each eigenpair, and how many each band has; those left out come last."""
    bands.demand().check(spectrum)
    assigned = bands.assign(spectrum)
    return assigned, torch.bincount(assigned, minlength=bands.n_bands + 1)


def _left_out(bands: Bands, complement: bool) -> int | None:
    """The band that holds what a partial spectrum leaves out."""
    if bands.covers_all:
        return bands.n_bands - 1
    return bands.n_bands if complement else None


def _mean_frequencies(spectrum: Spectrum, assigned: Tensor, rest: int | None, size: int) -> Tensor:
    """The mean frequency of each band, (size,); 0 for an empty one.

    What a partial spectrum leaves out counts for the implicit band; the trace tells its mean.
    """
    total = spectrum.frequencies.new_zeros(size).index_add(0, assigned, spectrum.frequencies)
    count = torch.bincount(assigned, minlength=size).to(total)
    missing = spectrum.num_nodes - spectrum.num_pairs
    if missing and rest is not None:
        total[rest] += abs(
            spectrum.trace - float(spectrum.values.sum()) - missing * spectrum.origin
        )
        count[rest] += missing
    return total / count.clamp(min=1)


def _padded(matrices: list[Tensor], none: Tensor) -> Tensor:
    """Matrices of different shapes in one tensor (G, n, k), zeros where there is nothing."""
    if not matrices:
        return none
    rows, columns = (max(m.shape[i] for m in matrices) for i in (0, 1))
    dtype = reduce(torch.promote_types, (m.dtype for m in matrices))
    stacked = matrices[0].new_zeros(len(matrices), rows, columns, dtype=dtype)
    for g, matrix in enumerate(matrices):
        stacked[g, : matrix.shape[0], : matrix.shape[1]] = matrix
    return stacked
