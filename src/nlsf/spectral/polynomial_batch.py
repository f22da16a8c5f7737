"""Projections on polynomial bands for many graphs at once: `PolynomialBatchProjector`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands import PolynomialBands
from nlsf.spectral.chebyshev import ScaledOperator
from nlsf.spectral.decomposition import Decomposition
from nlsf.spectral.node_ranges import padded_places
from nlsf.spectral.polynomial_projector import PolynomialProjector
from nlsf.spectral.projector import fitting, on_graphs
from nlsf.spectral.recurrence import chebyshev_terms


class PolynomialBatchDecomposition(Decomposition):
    r"""The signals of many graphs by their Chebyshev terms :math:`T_k X`.

    Args:
        projector: what they are decomposed with.
        x: (N_1 + ... + N_G, d), the signals.

    Attributes:
        terms: (K + 1, N_1 + ... + N_G, d).
    """

    projector: PolynomialBatchProjector

    def __init__(self, projector: PolynomialBatchProjector, x: Tensor) -> None:
        self.projector, self.x = projector, x
        self.signal = projector.pad(x)
        self.terms = chebyshev_terms(projector.operator, x, projector.bands.order)

    def energies(self) -> Tensor:
        r"""(G, B, d), :math:`\sum_k b_{jk} \langle x, T_k x \rangle` of every graph."""
        products = (self.terms.conj() * self.x).real if self.x.is_complex() else self.terms * self.x
        sums = products.new_zeros(len(products), self.projector.num_graphs, self.x.shape[1])
        moments = sums.index_add(1, self.projector.graph, products).movedim(0, 1)
        return (self.projector.series @ moments).clamp(min=0.0)

    def weighted(self, gain: Tensor) -> Tensor:
        """The diagonal synthesis with gains (G, B, d): (N_1 + ... + N_G, d)."""
        weights = self._per_term(gain).to(self.terms.dtype)
        every = zip(self.terms, weights.unbind(1), strict=True)
        y = torch.zeros_like(self.x)
        for term, weight in every:
            y = y + term * weight.index_select(0, self.projector.graph)
        return y

    def mixed(self, r: Tensor) -> Tensor:
        """The synthesis with a matrix for every band, (G, B, d, d'): (N_1 + ... + N_G, d')."""
        maps = self._per_term(r.flatten(-2)).unflatten(-1, r.shape[-2:]).to(self.terms.dtype)
        # The channels of all terms side by side: one product a graph.
        terms = self.projector.pad(self.terms.movedim(0, 1).flatten(1))
        return self.projector.restore(terms @ maps.flatten(1, 2))

    def part(self, j: int) -> Tensor:
        """The projection on band j in the padded layout: (G, n, d)."""
        gain = torch.zeros_like(self.projector.series[:, :, :1])
        gain[:, j] = 1.0
        return self.projector.pad(self.weighted(gain.expand(-1, -1, self.x.shape[1])))

    def _per_term(self, per_band: Tensor) -> Tensor:
        """Numbers of bands (G, B, m) as numbers of Chebyshev terms (G, K + 1, m)."""
        return self.projector.series.mT.to(per_band.dtype) @ per_band


class PolynomialBatchProjector:
    r"""The projections of G graphs on `PolynomialBands`, without an eigenvector.

    It does what `PolynomialProjector` does for one graph. The graphs are one graph of as many
    components, whose operator is block by block on the axis [-1, 1] of its own graph: one
    recurrence for all of them, and nothing is padded but for norms that are not L_2. Signals come
    and go as in PyTorch Geometric, all nodes of all graphs in one (N_1 + ... + N_G, d).

    Args:
        projectors: one a graph, with these bands.
        bands: the bands, without leading eigenpairs.
        complement: as in `PolynomialProjector`.
        dtype: of the signals, where there is no projector to tell.

    Attributes:
        nodes: (G,), the number of nodes of each graph.
        dimension: (G, B), and
        frequencies: (G, B), and
        leakage: (G, B), as in `PolynomialProjector`.

    Raises:
        BandError: for projectors with other bands, or bands with eigenpairs.
    """

    def __init__(
        self,
        projectors: Sequence[PolynomialProjector],
        bands: PolynomialBands,
        *,
        complement: bool = True,
        dtype: torch.dtype | None = None,
    ) -> None:
        if bands.pairs:
            raise BandError(
                f"Leading eigenpairs (pairs={bands.pairs}) are for one graph: leave them out for "
                "many, or use the base of the bands."
            )
        for one in projectors:
            if one.bands != bands or one.complement != complement:
                raise BandError(
                    f"A projector has {one.bands} (complement={one.complement}), and those of one "
                    f"batch must have {bands} (complement={complement})."
                )
        self.projectors = tuple(projectors)
        self.bands = bands
        self.complement = complement
        self.n_bands = bands.n_bands + int(complement)
        self.operator = _blocks([one.operator for one in projectors], dtype or torch.float64)
        device = self.operator.matrix.device
        self.nodes = torch.tensor([one.num_nodes for one in projectors], dtype=torch.int64)
        self.nodes = self.nodes.to(device)
        self.graph = torch.repeat_interleave(self.nodes)
        self._width = int(self.nodes.max()) if projectors else 0
        self._place = padded_places(self.nodes, self._width)

        def stacked(name: str, *shape: int) -> Tensor:
            if projectors:
                return torch.stack([getattr(one, name) for one in projectors])
            return torch.zeros(0, *shape, dtype=torch.float64)

        self.series = stacked("series", self.n_bands, bands.order + 1).to(self.dtype.to_real())
        self.dimension = stacked("dimension", self.n_bands)
        self.frequencies = stacked("frequencies", self.n_bands)
        self.leakage = stacked("leakage", self.n_bands)

    @property
    def num_graphs(self) -> int:
        """G."""
        return len(self.projectors)

    @property
    def num_nodes(self) -> int:
        """The nodes of all graphs together."""
        return self.operator.num_nodes

    @property
    def sizes(self) -> Tensor:
        """(G, 1, 1), the nodes of each graph; 1 for an empty one."""
        return self.nodes.clamp(min=1)[:, None, None]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the operators."""
        return self.operator.matrix.dtype

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> PolynomialBatchProjector:
        """The same projections in another precision or on another device."""
        moved = [one.to(dtype, device) for one in self.projectors]
        return PolynomialBatchProjector(
            moved, self.bands, complement=self.complement, dtype=dtype or self.dtype
        )

    def decompose(self, x: Tensor, *, check_finite: bool = True) -> PolynomialBatchDecomposition:
        """The Chebyshev terms of the signals of all graphs: K sparse products.

        Args:
            x: (N_1 + ... + N_G, d).
            check_finite: look for NaN and infinity first.
        """
        x = on_graphs(x, self.num_graphs, self.num_nodes)
        x = fitting(x, self.dtype, check_finite=check_finite)
        return PolynomialBatchDecomposition(self, x)

    def pad(self, x: Tensor) -> Tensor:
        """All nodes (N_1 + ... + N_G, m) as (G, n, m), zeros behind those of smaller graphs."""
        padded = x.new_zeros(self.num_graphs * self._width, x.shape[1])
        shape = (self.num_graphs, self._width, x.shape[1])
        return padded.index_copy(0, self._place, x).reshape(shape)

    def restore(self, y: Tensor) -> Tensor:
        """From the padded (G, n, m) to all nodes in one (N_1 + ... + N_G, m)."""
        return y.flatten(0, 1)[self._place]

    def __repr__(self) -> str:
        return f"PolynomialBatchProjector({self.bands}, num_graphs={self.num_graphs})"


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
