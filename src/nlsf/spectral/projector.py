"""Projections on bands, without ever forming them: `Projector`."""

from __future__ import annotations

import copy
from functools import cached_property

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.bands import Bands
from nlsf.spectral.column_decomposition import ColumnDecomposition
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.one_graph import OneGraph
from nlsf.spectral.thin import thin_product


class Projector(OneGraph):
    r"""The projections :math:`P_1, \dots, P_B` of a spectrum on bands, as one thin matrix.

    Instead of B matrices of N x N it keeps the eigenvectors V (N x k) and a band number for each
    column. At most one band is *implicit*, namely what the columns leave of the identity:

    .. math::
        P_j = V_j V_j^*, \qquad P_{rest} = I - \sum_{j \ne rest} P_j .

    The implicit band is the complement where the spectrum is partial, the last band where the bands
    cover everything, and otherwise the largest band, whose columns are dropped: the projections
    sum to the identity exactly, and fewer columns are multiplied.

    Args:
        spectrum: eigenpairs, as many as the bands need; see `partial_eigh`.
        bands: the partition.
        complement: whether what the bands leave out is a last band (the paper's J + 1-th), or is
            ignored (its *leading* variants, App. C.2).

    Raises:
        BandError: if the spectrum lacks eigenpairs that the bands need.

    Example:
        >>> import torch
        >>> from nlsf.spectral import UniformBands, laplacian, partial_eigh
        >>> ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
        >>> spectrum = partial_eigh(laplacian(ring, symmetrize="sum"))
        >>> P = Projector(spectrum, UniformBands(S=3))
        >>> x = torch.randn(6, 2, dtype=torch.float64)
        >>> torch.allclose(sum(P.projections(x)), x)
        True
    """

    def __init__(self, spectrum: Spectrum, bands: Bands, *, complement: bool = True) -> None:
        bands.demand().check(spectrum)
        assigned = bands.assign(spectrum)
        n_bands = bands.n_bands + int(complement)
        dimension = torch.bincount(assigned, minlength=bands.n_bands + 1)
        missing = spectrum.num_nodes - spectrum.num_pairs

        if missing and bands.covers_all:
            rest: int | None = bands.n_bands - 1
        elif missing:
            rest = bands.n_bands if complement else None
        elif complement or dimension[bands.n_bands] == 0:
            rest = int(dimension.argmax())
        else:
            rest = None
        if rest is not None:
            dimension[rest] += missing
            if dimension[rest] == 0:
                rest = None

        kept = (assigned < n_bands) & (assigned != (-1 if rest is None else rest))
        columns = kept.nonzero().squeeze(-1)
        columns = columns[torch.sort(assigned[columns], stable=True).indices]
        self.spectrum = spectrum
        self.bands = bands
        self.complement = complement
        self.n_bands = n_bands
        self.rest = rest
        self.dimension = dimension[:n_bands]
        self.frequencies = band_frequencies(spectrum, assigned, rest, bands.n_bands + 1)[:n_bands]
        self.band = assigned[columns]
        self.vectors = spectrum.vectors[:, columns].contiguous()  # (N, k), grouped by band
        self.rest_index = torch.tensor([rest] if rest is not None else [], dtype=torch.int64)
        self.rest_index = self.rest_index.to(self.vectors.device)
        # (B, k): what the energy of each column adds to that of each band.
        self.balance = torch.nn.functional.one_hot(self.band, n_bands).T.to(self.vectors.real)
        if rest is not None:
            self.balance[rest] = -1.0  # the implicit band has what the columns leave

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.spectrum.num_nodes

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the vectors."""
        return self.spectrum.vectors.dtype

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Projector:
        """The same projections, of the same rows, in another precision or on another device."""
        moved = copy.copy(self)
        moved.spectrum = self.spectrum.to(dtype=dtype, device=device)
        moved.vectors = self.vectors.to(moved.spectrum.vectors)
        moved.balance = self.balance.to(moved.vectors.real)
        for name in ("dimension", "frequencies", "band", "rest_index"):
            setattr(moved, name, getattr(self, name).to(device=device))
        return moved

    def rows(self, index: Tensor) -> Projector:
        """A projector that synthesises only these nodes; it cannot decompose signals itself."""
        some = copy.copy(self)
        some.vectors = self.vectors[index]
        return some

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The columns of each band, one slice a band; empty for the implicit one."""
        ends = torch.bincount(self.band, minlength=self.n_bands).cumsum(0).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    def decompose(self, x: Tensor, *, check_finite: bool = True) -> ColumnDecomposition:
        """The coefficients in the explicit columns: one thin product.

        Args:
            x: (..., N, d), leading dimensions for many signals on the one graph. A real signal on a
                complex operator becomes complex.
            check_finite: look for NaN and infinity first.

        Raises:
            SignalError: wrong shape or dtype, or a value that is not finite.
        """
        x = fitting(on_nodes(x, self.num_nodes), self.dtype, check_finite=check_finite)
        return ColumnDecomposition(self, x, thin_product(self.vectors.mH, x))

    def band_sums(self, columns: Tensor) -> Tensor:
        """Sums over the columns of each band: (..., k, d) to (..., B, d)."""
        shape = (*columns.shape[:-2], self.n_bands, columns.shape[-1])
        return columns.new_zeros(shape).index_add(-2, self.band, columns)

    def spread(self, per_band: Tensor) -> Tensor:
        """Gives every column the number of its band: (..., B, d) to (..., k, d)."""
        return per_band.index_select(-2, self.band)

    def mix(self, coefficients: Tensor, per_band: Tensor) -> Tensor:
        """Multiplies the columns of each band by its matrix: (..., k, d), (..., B, d, m)."""
        parts = [
            coefficients[..., s, :] @ per_band[..., j, :, :] for j, s in enumerate(self.slices)
        ]
        return torch.cat(parts, dim=-2)

    def part(self, parts: ColumnDecomposition, j: int) -> Tensor:
        """The projection on band j of a signal that is decomposed already."""
        if j == self.rest:
            return parts.remainder
        return self.vectors[:, self.slices[j]] @ parts.coefficients[..., self.slices[j], :]

    def __repr__(self) -> str:
        return (
            f"Projector({self.bands}, complement={self.complement}, num_nodes={self.num_nodes}, "
            f"dimension={self.dimension.tolist()})"
        )


def band_frequencies(spectrum: Spectrum, assigned: Tensor, rest: int | None, size: int) -> Tensor:
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


def on_nodes(x: Tensor, num_nodes: int) -> Tensor:
    """The signal itself; raises unless its shape is (..., num_nodes, channels)."""
    if x.ndim < 2 or x.shape[-2] != num_nodes:
        raise SignalError(
            f"The signal must have the shape (..., {num_nodes}, channels), not {tuple(x.shape)}."
        )
    return x


def on_graphs(x: Tensor, num_graphs: int, num_nodes: int) -> Tensor:
    """The signal itself; raises unless it has one row for every node of all graphs together."""
    if x.ndim != 2 or x.shape[0] != num_nodes:
        raise SignalError(
            f"The signal of these {num_graphs} graphs must have the shape "
            f"({num_nodes}, channels), not {tuple(x.shape)}."
        )
    return x


def fitting(x: Tensor, dtype: torch.dtype, *, check_finite: bool) -> Tensor:
    """The signal, made complex where the projector is; raises if its dtype or values do not fit."""
    if dtype.is_complex and x.is_floating_point():
        x = x.to(x.dtype.to_complex())
    if x.dtype != dtype:
        raise SignalError(
            f"The signal is {x.dtype}, the projector {dtype}: use projector.to(x.dtype), or "
            "convert the signal."
        )
    # A sum is not finite if a summand is not, and takes a tenth of the time.
    if check_finite and not torch.isfinite(x.sum()) and not torch.isfinite(x).all():
        where = (~torch.isfinite(x)).nonzero()[0].tolist()
        raise SignalError(f"The signal has the value {x[tuple(where)].item()} at {where}.")
    return x
