"""Bands as polynomials of the operator, of one graph or of many: `PolynomialLens`."""

from __future__ import annotations

import copy
import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands import Bands, PolynomialBands
from nlsf.spectral.bands.polynomial import band_leakage, band_series, product_traces
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.eigen.eigensolve import partial_eigh
from nlsf.spectral.kernels.chebyshev import ScaledOperator, chebyshev_traces
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.lens.lens import Lens, OneGraph
from nlsf.spectral.lens.polynomial_view import ExactEnd, FixedBands, PolynomialView
from nlsf.spectral.lens.streamed import MEMORY
from nlsf.spectral.operators.shift import ShiftOperator


class PolynomialLens(Lens, bands=PolynomialBands):
    r"""The projections on `PolynomialBands`, without an eigenvector.

    .. math::
        P_j = \sum_{k=0}^{K} b_{jk} T_k(\tilde\Delta), \qquad \sum_j P_j = I

    and, where the bands ask for leading eigenpairs V,
    :math:`V_j V_j^* + p_j(\Delta) (I - V V^*)`.

    The terms :math:`T_k(\tilde\Delta) X` come from one recurrence of K sparse products, shared by
    all bands and channels; memory is that of K + 1 signals. The :math:`P_j` overlap near their
    edges, so they are no projections in the strict sense (`leakage` says by how much). They commute
    with all functional shifts of the operator (Def. 1), and so do filters on them, at any order;
    not with the larger group of exact bands (Def. 2), whose shifts mix eigenspaces.

    Many graphs are one graph of as many components, whose operator is block by block on the axis
    [-1, 1] of its own graph: one recurrence for all, and nothing is padded but for norms that are
    not L_2.

    Attributes:
        operator: :math:`\tilde\Delta`.
        series: (B, K + 1), or (G, B, K + 1), the coefficients :math:`b_{jk}`.
        end: the leading eigenpairs, if the bands ask for some.
        dimension: (B,), or (G, B), float64, :math:`\mathrm{tr} P_j`. The three traces are exact for
            a graph of up to 512 nodes, and otherwise estimated with at most 32 random vectors.
        frequencies: (B,), or (G, B), :math:`\mathrm{tr} (P_j \Delta) / \mathrm{tr} P_j`.
        leakage: (B,), or (G, B), :math:`\mathrm{tr} (P_j (I - P_j)) / N`, which is 0 for a
            projection and at most 1/4: the share of the spectrum that the band shares with others.
    """

    bands: PolynomialBands
    operator: ScaledOperator
    series: Tensor
    leakage: Tensor
    end: ExactEnd | None = None

    def __init__(self, bands: PolynomialBands, complement: bool) -> None:
        self.bands, self.complement = bands, complement
        self.n_bands = bands.n_bands + int(complement)

    @classmethod
    def on_graph(
        cls, graph: OneGraph, bands: Bands, complement: bool, cache: CacheArgument = None
    ) -> Self:
        """The lens of one operator."""
        if isinstance(graph, cls):
            if (graph.bands, graph.complement) != (bands, complement):
                raise BandError(
                    f"The lens has {graph.bands} (complement={graph.complement}), and no others "
                    f"can be made of it: give the ShiftOperator for {bands} "
                    f"(complement={complement})."
                )
            return graph
        if not isinstance(graph, ShiftOperator):
            raise BandError(
                "Polynomial bands read the operator, not its eigenpairs: give the ShiftOperator, "
                f"not a {type(graph).__name__}."
            )
        assert isinstance(bands, PolynomialBands)
        lens = cls(bands, complement)
        lens.operator, lens.num_nodes = ScaledOperator.of(graph), graph.num_nodes
        width, gap = lens.operator.bandwidth, lens.operator.gap
        limits = bands.base.limits(width)
        assert limits is not None  # the bands have refused any other base
        lens.series = band_series(limits, width, bands.order, gap=gap)[: lens.n_bands]
        if bands.pairs:
            spectrum = partial_eigh(graph, bands.pairs, cache=cache)
            lens.end = ExactEnd.of(spectrum, bands.base, lens.n_bands)
        lens.dimension, lens.frequencies, lens.leakage = lens._traces()
        return lens

    @classmethod
    def on_each(cls, graphs: Sequence[OneGraph], bands: Bands, complement: bool) -> Sequence[Self]:
        """One lens a graph; their leading eigenpairs could not be put together."""
        if isinstance(bands, PolynomialBands) and bands.pairs:
            raise BandError(
                f"Leading eigenpairs (pairs={bands.pairs}) are for one graph: leave them out for "
                "many, or use the base of the bands."
            )
        return [cls.on_graph(graph, bands, complement) for graph in graphs]

    @classmethod
    def packed(
        cls, lenses: Sequence[Any], bands: Bands, complement: bool, dtype: torch.dtype | None
    ) -> Self:
        """One lens of many graphs, block by block."""
        assert isinstance(bands, PolynomialBands)
        lens = cls(bands, complement)
        lens.operator = _blocks([one.operator for one in lenses], dtype or torch.float64)
        lens.num_nodes = lens.operator.num_nodes
        lens._pack([one.num_nodes for one in lenses], lens.operator.matrix.device)

        def stacked(name: str, *shape: int) -> Tensor:
            if lenses:
                return torch.stack([getattr(one, name) for one in lenses])
            return torch.zeros(0, *shape, dtype=torch.float64)

        lens.series = stacked("series", lens.n_bands, bands.order + 1).to(lens.dtype.to_real())
        lens.dimension = stacked("dimension", lens.n_bands)
        lens.frequencies = stacked("frequencies", lens.n_bands)
        lens.leakage = stacked("leakage", lens.n_bands)
        return lens

    def _traces(self) -> tuple[Tensor, Tensor, Tensor]:
        operator, series = self.operator, self.series
        traces = chebyshev_traces(operator, self.bands.order)
        if self.end is not None:
            place = (self.end.frequencies - operator.centre) / operator.half
            every = torch.arange(len(traces), dtype=torch.float64)
            traces = traces - torch.cos(every * place.clamp(-1, 1).arccos()[:, None]).sum(0)
        products = product_traces(traces, self.bands.order)
        leakage = band_leakage(series, products, self.num_nodes)
        dimension = series @ products[:, 0]
        frequency = operator.centre * dimension + operator.half * (series @ products[:, 1])
        if self.end is not None:
            dimension = dimension + self.end.member.sum(0)
            frequency = frequency + self.end.frequencies @ self.end.member
        # A dimension that is a rounding error has no mean frequency.
        some = dimension > 1e-9 * self.num_nodes
        frequency = torch.where(some, frequency / torch.where(some, dimension, 1.0), 0.0)
        frequency = frequency.clamp(0.0, max(operator.bandwidth, 0.0))
        return dimension.clamp(min=0.0), frequency, leakage

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the operator."""
        return self.operator.matrix.dtype

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Self:
        """The same projections in another precision or on another device.

        A real dtype asked of a complex operator sets the precision of its parts.
        """
        if dtype is not None and self.dtype.is_complex and not dtype.is_complex:
            dtype = dtype.to_complex()
        moved = copy.copy(self)
        moved.operator = self.operator.to(dtype=dtype, device=device)
        if self.end is not None:
            moved.end = self.end.to(moved.dtype, device)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(moved, name, value.to(device=device))
        moved.series = moved.series.to(dtype=moved.dtype.to_real())
        return moved

    def view(self, x: Tensor) -> PolynomialView:
        """The Chebyshev terms, by K sparse products."""
        return PolynomialView(self, x)

    def fix_rows(
        self,
        x: Tensor,
        rows: Tensor,
        *,
        sparse: SparseSignal | None = None,
        memory: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> FixedBands:
        """A signal that does not change, at some nodes, projected in blocks of channels."""
        room = MEMORY if memory is None else memory
        return FixedBands.of(x, self, rows, memory=room, folder=folder, progress=progress)

    def per_term(self, per_band: Tensor) -> Tensor:
        """Numbers of bands (..., B, m) as numbers of Chebyshev terms (..., K + 1, m)."""
        return self.series.mT.to(per_band.dtype) @ per_band

    def __repr__(self) -> str:
        if self.nodes is not None:
            what = f"num_graphs={self.num_graphs}"
        else:
            dimension = ", ".join(f"{d:.4g}" for d in self.dimension.tolist())
            what = f"num_nodes={self.num_nodes}, dimension=[{dimension}]"
        return f"Lens({self.bands}, complement={self.complement}, {what})"


def _blocks(operators: Sequence[ScaledOperator], dtype: torch.dtype) -> ScaledOperator:
    """One operator with these blocks; its own axis is [-1, 1] already."""
    matrices = [one.matrix for one in operators]
    entries = itertools.accumulate((m.values().numel() for m in matrices), initial=0)
    nodes = itertools.accumulate((m.shape[0] for m in matrices), initial=0)
    if not matrices:
        matrices = [torch.zeros(0, 0, dtype=dtype).to_sparse_csr()]
    ends = [m.crow_indices()[1:] + at for m, at in zip(matrices, entries, strict=False)]
    columns = [m.col_indices() + at for m, at in zip(matrices, nodes, strict=False)]
    first = torch.zeros_like(matrices[0].crow_indices()[:1])
    size = sum(m.shape[0] for m in matrices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "CSR support is in beta"
        matrix = torch.sparse_csr_tensor(
            torch.cat([first, *ends]),
            torch.cat(columns),
            torch.cat([m.values() for m in matrices]),
            size=(size, size),
        )
    return ScaledOperator(matrix, bandwidth=2.0, centre=1.0, half=1.0, gap=0.0)
