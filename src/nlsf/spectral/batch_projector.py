"""Projections on bands for many graphs at once: `BatchProjector`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nlsf.spectral.bands import Bands
from nlsf.spectral.column_decomposition import ColumnDecomposition
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.node_ranges import padded_places
from nlsf.spectral.projector import band_frequencies, fitting, on_graphs
from nlsf.spectral.segment_sum import segment_sum


@dataclass(frozen=True, eq=False)
class GraphPart:
    """What one graph brings to a `BatchProjector`.

    Attributes:
        spectrum: its spectrum.
        vectors: (N, k), the eigenvectors of its explicit bands.
        band: (k,), the band of each.
        dimension: (B,), of each band.
        frequencies: (B,), the mean frequency of each band.
    """

    spectrum: Spectrum
    vectors: Tensor
    band: Tensor
    dimension: Tensor
    frequencies: Tensor

    @classmethod
    def of(cls, spectrum: Spectrum, bands: Bands, complement: bool) -> GraphPart:
        """Sorts the eigenpairs of a graph into bands."""
        bands.demand().check(spectrum)
        n_bands, rest = bands.n_bands + int(complement), _implicit(bands, complement)
        assigned = bands.assign(spectrum)
        dimension = torch.bincount(assigned, minlength=bands.n_bands + 1)
        if rest is not None:
            dimension[rest] += spectrum.num_nodes - spectrum.num_pairs
        mean = band_frequencies(spectrum, assigned, rest, bands.n_bands + 1)
        explicit = (assigned < n_bands) & (assigned != (-1 if rest is None else rest))
        columns = explicit.nonzero().squeeze(-1)
        vectors = spectrum.vectors[:, columns]
        return cls(spectrum, vectors, assigned[columns], dimension[:n_bands], mean[:n_bands])


class BatchProjector:
    r"""The projections of G graphs, padded to one size, so that a batch costs one product.

    It does what `Projector` does for one graph, with a leading dimension for the graphs. Signals
    come and go as in PyTorch Geometric, all nodes of all graphs in one (N_1 + ... + N_G, d).

    The implicit band is the same for all graphs: the complement, or the last band where the bands
    cover everything.

    Args:
        spectra: one a graph, as many eigenpairs of each as the bands need.
        bands: the partition, the same family for all.
        complement: as in `Projector`.
        dtype: of the signals, where there is no spectrum to tell.
    """

    def __init__(
        self,
        spectra: Sequence[Spectrum],
        bands: Bands,
        *,
        complement: bool = True,
        dtype: torch.dtype | None = None,
    ) -> None:
        rest = _implicit(bands, complement)
        parts = [GraphPart.of(spectrum, bands, complement) for spectrum in spectra]
        self._assemble(parts, bands, complement, rest, dtype)

    @classmethod
    def of_parts(
        cls, parts: Sequence[GraphPart], bands: Bands, *, complement: bool = True
    ) -> BatchProjector:
        """The projector of graphs whose parts are at hand: for batches drawn again and again."""
        batch = cls.__new__(cls)
        batch._assemble(parts, bands, complement, _implicit(bands, complement), None)
        return batch

    def _assemble(
        self,
        parts: Sequence[GraphPart],
        bands: Bands,
        complement: bool,
        rest: int | None,
        dtype: torch.dtype | None,
    ) -> None:
        self.spectra = tuple(part.spectrum for part in parts)
        self.bands = bands
        self.complement = complement
        self.n_bands = bands.n_bands + int(complement)
        self.rest = rest
        none = torch.zeros(0, self.n_bands, dtype=torch.float64)
        self.dimension = torch.stack([p.dimension for p in parts]) if parts else none
        self.frequencies = torch.stack([p.frequencies for p in parts]) if parts else none
        self.nodes = torch.tensor([p.vectors.shape[0] for p in parts], dtype=torch.int64)
        vectors = [p.vectors for p in parts]
        self.vectors = _padded(vectors) if parts else torch.zeros(0, 0, 0, dtype=dtype)
        # Columns that pad have zero vectors, so it does not matter which band they count for.
        self.band = torch.zeros(self.vectors.shape[0], self.vectors.shape[2], dtype=torch.int64)
        for g, part in enumerate(parts):
            self.band[g, : len(part.band)] = part.band
        device = self.vectors.device
        self.band, self.nodes = self.band.to(device), self.nodes.to(device)
        self.dimension = self.dimension.to(device)
        self.frequencies = self.frequencies.to(device)
        index = torch.tensor([rest] if rest is not None else [], dtype=torch.int64)
        self.rest_index = index.to(device)
        self.place = padded_places(self.nodes, self.vectors.shape[1])

    @property
    def num_graphs(self) -> int:
        """G."""
        return len(self.spectra)

    @property
    def num_nodes(self) -> int:
        """The nodes of all graphs together."""
        return int(self.nodes.sum())

    @property
    def sizes(self) -> Tensor:
        """(G, 1, 1), the nodes of each graph; 1 for an empty one."""
        return self.nodes.clamp(min=1)[:, None, None]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the vectors."""
        return self.vectors.dtype

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> BatchProjector:
        """The same projections in another precision or on another device."""
        spectra = [s.to(dtype=dtype, device=device) for s in self.spectra]
        return BatchProjector(spectra, self.bands, complement=self.complement)

    def decompose(self, x: Tensor, *, check_finite: bool = True) -> ColumnDecomposition:
        """The coefficients (G, k, d) and the remainder (G, n, d), both padded with zeros.

        Args:
            x: (N_1 + ... + N_G, d).
            check_finite: look for NaN and infinity first.
        """
        x = on_graphs(x, self.num_graphs, self.num_nodes)
        x = fitting(x, self.dtype, check_finite=check_finite)
        graphs, width, _ = self.vectors.shape
        padded = x.new_zeros(graphs * width, x.shape[1]).index_copy(0, self.place, x)
        padded = padded.reshape(graphs, width, x.shape[1])
        coefficients = self.vectors.mH @ padded
        remainder = None
        if self.rest is not None:
            remainder = padded - self.vectors @ coefficients
            # Exactly zero, not a rounding error, where the band is empty.
            remainder = remainder * (self.dimension[:, self.rest] > 0)[:, None, None]
        return ColumnDecomposition(self, padded, coefficients, remainder)

    def band_sums(self, columns: Tensor) -> Tensor:
        """Sums over the columns of each band: (G, k, d) to (G, B, d)."""
        return segment_sum(columns, self.band, self.n_bands)

    def spread(self, per_band: Tensor) -> Tensor:
        """Gives every column the number of its band: (G, B, d) to (G, k, d)."""
        index = self.band[:, :, None].expand(-1, -1, per_band.shape[-1])
        return per_band.gather(1, index)

    def mix(self, coefficients: Tensor, per_band: Tensor) -> Tensor:
        """Multiplies the columns of each band by its matrix: (G, k, d), (G, B, d, m)."""
        shape = (*coefficients.shape[:2], per_band.shape[-1])
        mixed = coefficients.new_zeros(shape)
        for j in range(self.n_bands):
            if j != self.rest:
                mine = coefficients * (self.band == j)[:, :, None]
                mixed = mixed + mine @ per_band[:, j]
        return mixed

    def part(self, parts: ColumnDecomposition, j: int) -> Tensor:
        """The projection on band j in the padded layout: (G, n, d)."""
        if j == self.rest:
            return parts.remainder
        return self.vectors @ (parts.coefficients * (self.band == j)[:, :, None])

    def restore(self, y: Tensor) -> Tensor:
        """From the padded (G, n, d) to all nodes in one (N_1 + ... + N_G, d)."""
        return y.flatten(0, 1)[self.place]

    def __repr__(self) -> str:
        return f"BatchProjector({self.bands}, num_graphs={self.num_graphs})"


def _implicit(bands: Bands, complement: bool) -> int | None:
    """The band that is what the others leave, the same for all graphs."""
    if bands.covers_all:
        return bands.n_bands - 1
    return bands.n_bands if complement else None


def _padded(matrices: list[Tensor]) -> Tensor:
    """Matrices of different shapes in one tensor (G, n, k), zeros where there is nothing."""
    rows, columns = (max(m.shape[i] for m in matrices) for i in (0, 1))
    stacked = matrices[0].new_zeros(len(matrices), rows, columns)
    for g, matrix in enumerate(matrices):
        stacked[g, : matrix.shape[0], : matrix.shape[1]] = matrix
    return stacked
