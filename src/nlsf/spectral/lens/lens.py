"""The contract of every way to see graphs through bands: `Lens`."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import torch
from torch import Tensor

from nlsf.errors import BandError, SignalError
from nlsf.spectral.bands import Bands
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.kernels.segments import padded_places
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.lens.column_view import FixedRows
from nlsf.spectral.lens.polynomial_view import FixedBands
from nlsf.spectral.lens.view import FixedNodes, View
from nlsf.spectral.operators.shift import ShiftOperator

OneGraph: TypeAlias = "ShiftOperator | Spectrum | Lens"
"""What a lens is made of: an operator, its spectrum, or a lens that `Lens.each` gave."""


class Lens(ABC):
    r"""One graph, or many, seen through B bands.

    `Lens.of` makes one. Calling it with a signal gives a `View`: the norms of the signal in every
    band, and what a filter makes of its projections

    .. math::
        P_1 X, \dots, P_B X, \qquad \sum_j P_j = I \text{ with the complement.}

    A lens on many graphs takes and gives signals as PyTorch Geometric has them, all nodes of all
    graphs in one (N_1 + ... + N_G, d).

    A new kind of lens says which family of bands it is for: ``class MyLens(Lens, bands=MyBands)``.

    Attributes:
        bands: the partition of the spectrum.
        complement: whether what the bands leave out is a last band (the paper's J + 1-th), or is
            ignored (its *leading* variants, App. C.2).
        n_bands: B, with the complement.
        num_nodes: N, of all graphs together.
        dimension: (B,), or (G, B) for many graphs, of each band; an estimate where there are no
            eigenvectors.
        frequencies: (B,), or (G, B), the mean frequency of each band; 0 for an empty one.
        nodes: (G,), the number of nodes of each graph; ``None`` for a lens on one graph.
        graph_of_nodes: (N_1 + ... + N_G,), the graph of each node; ``None`` for one graph.

    Example:
        >>> import torch
        >>> from nlsf.spectral import UniformBands, laplacian
        >>> ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
        >>> lens = Lens.of(laplacian(ring, symmetrize="sum"), UniformBands(S=3))
        >>> x = torch.randn(6, 2, dtype=torch.float64)
        >>> torch.allclose(sum(lens(x).parts()), x)
        True
    """

    kinds: ClassVar[dict[type[Bands], type[Lens]]] = {}

    bands: Bands
    complement: bool
    n_bands: int
    num_nodes: int
    dimension: Tensor
    frequencies: Tensor
    nodes: Tensor | None = None
    graph_of_nodes: Tensor | None = None

    def __init_subclass__(cls, bands: type[Bands] | None = None) -> None:
        super().__init_subclass__()
        if bands is not None:
            Lens.kinds[bands] = cls

    @staticmethod
    def of(
        graphs: OneGraph | Iterable[OneGraph],
        bands: Bands,
        *,
        complement: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        cache: CacheArgument = None,
    ) -> Lens:
        """The lens of one graph, or of many at once.

        Args:
            graphs: an operator or a spectrum; or one a graph, or the lenses that `each` gave.
            bands: the partition. They decide how the projections are computed: by eigenvectors, or
                for `PolynomialBands` by polynomials of the operator, which must then be given.
            complement: whether what the bands leave out is a last band, or is ignored.
            dtype: of the signals; that of the operators or spectra by default.
            device: of the signals.
            cache: keep the eigenpairs of one graph on disk, as in `partial_eigh`.

        Raises:
            BandError: if a spectrum lacks eigenpairs that the bands need, or if polynomial bands
                are asked of a spectrum.
        """
        kind = Lens._kind(bands)
        if isinstance(graphs, ShiftOperator | Spectrum | Lens):
            return kind.on_graph(graphs, bands, complement, cache).to(dtype, device)
        every = Lens.each(graphs, bands, complement=complement)
        return kind.packed(every, bands, complement, dtype).to(dtype, device)

    @staticmethod
    def each(
        graphs: Iterable[OneGraph],
        bands: Bands,
        *,
        complement: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> list[Lens]:
        """One lens a graph, of which `of` puts any choice together: for batches that change."""
        items = list(graphs)
        for one in items:
            if not isinstance(one, Lens):
                continue
            if (one.bands, one.complement) != (bands, complement):
                raise BandError(
                    f"A lens has {one.bands} (complement={one.complement}), and those of one batch "
                    f"must have {bands} (complement={complement})."
                )
            if one.nodes is not None:
                raise BandError(
                    f"A batch is made of one lens a graph, and one here sees {one.num_graphs} "
                    "graphs: pass what Lens.each gave."
                )
        every = Lens._kind(bands).on_each(items, bands, complement)
        return [one.to(dtype, device) for one in every]

    @staticmethod
    def _kind(bands: Bands) -> type[Lens]:
        return next(Lens.kinds[family] for family in type(bands).__mro__ if family in Lens.kinds)

    @classmethod
    def on_graph(
        cls, graph: OneGraph, bands: Bands, complement: bool, cache: CacheArgument = None
    ) -> Lens:
        """The lens of one graph; what `of` calls for the bands of this kind."""
        raise BandError(f"{cls.__name__} is not made of a graph and bands.")

    @classmethod
    def on_each(cls, graphs: Sequence[OneGraph], bands: Bands, complement: bool) -> Sequence[Lens]:
        """One lens a graph, which `packed` can put together."""
        return [cls.on_graph(graph, bands, complement) for graph in graphs]

    @classmethod
    def packed(
        cls, lenses: Sequence[Any], bands: Bands, complement: bool, dtype: torch.dtype | None
    ) -> Lens:
        """One lens of many graphs; ``dtype`` is that of the signals where there is no graph."""
        raise BandError(f"{bands} are for one graph, not for many.")

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The dtype of the signals that it takes."""

    @abstractmethod
    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Self:
        """The same projections in another precision or on another device."""

    @abstractmethod
    def view(self, x: Tensor) -> View:
        """The view of a signal that fits."""

    def fix_rows(
        self,
        x: Tensor,
        rows: Tensor,
        *,
        sparse: SparseSignal | None = None,
        memory: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> FixedRows | FixedBands:
        """A signal on one graph that does not change, at nodes that training asks for.

        The view that it gives has an index of these nodes, ``fixed[index]``, also inside of a
        `torch.func.vmap`, and a linear map of the channels, ``fixed.map(weight)``.

        Args:
            x: (N, F).
            rows: (R,), the nodes.
            sparse: the same signal, where its products are cheaper in another form.
            memory: bytes that the projections on polynomial bands may take while they are computed.
            folder: where they are kept if they are larger; in memory by default.
            progress: is told what is being computed.
        """
        raise BandError(f"Rows are fixed on one graph, with a lens that can; this is {self}.")

    def fix_nodes(self, x: Tensor, p: float = 2.0, normalize: bool = False) -> FixedNodes:
        """Signals of many graphs that do not change, with norms as `View.norms` gives them."""
        return FixedNodes.of(self(x), p, normalize)

    def __call__(self, x: Tensor, *, check_finite: bool = True) -> View:
        """The signal, seen through the bands.

        Args:
            x: (..., N, d), leading dimensions for many signals on one graph; of many graphs
                (N_1 + ... + N_G, d). A real signal on a complex operator becomes complex.
            check_finite: look for NaN and infinity first.

        Raises:
            SignalError: wrong shape or dtype, or a value that is not finite.
        """
        return self.view(self.fitting(x, check_finite=check_finite))

    def fitting(self, x: Tensor, *, check_finite: bool = True) -> Tensor:
        """The signal, made complex where the operator is; raises if it does not fit."""
        if self.nodes is None:
            if x.ndim < 2 or x.shape[-2] != self.num_nodes:
                on_nodes(x, self.num_nodes)
        elif x.ndim != 2 or x.shape[0] != self.num_nodes:
            raise SignalError(
                f"The signal of these {self.num_graphs} graphs must have the shape "
                f"({self.num_nodes}, channels), not {tuple(x.shape)}."
            )
        if self.dtype.is_complex and x.is_floating_point():
            x = x.to(x.dtype.to_complex())
        if x.dtype != self.dtype:
            raise SignalError(
                f"The signal is {x.dtype}, the lens {self.dtype}: use lens.to(x.dtype), or "
                "convert the signal."
            )
        # A sum is not finite if a summand is not, and takes a tenth of the time.
        if check_finite and not torch.isfinite(x.sum()) and not torch.isfinite(x).all():
            where = (~torch.isfinite(x)).nonzero()[0].tolist()
            raise SignalError(f"The signal has the value {x[tuple(where)].item()} at {where}.")
        return x

    @property
    def spectrum(self) -> Spectrum:
        """That of the one graph, where bands are made of eigenvectors."""
        raise BandError(f"There are no eigenvectors in {self}.")

    @property
    def slices(self) -> tuple[slice, ...]:
        """The columns of each band on one graph, where bands have columns."""
        return ()

    @property
    def num_graphs(self) -> int:
        """G; 1 for a lens on one graph."""
        return 1 if self.nodes is None else len(self.nodes)

    @property
    def sizes(self) -> Tensor:
        """The numbers of nodes, in a shape that divides (..., B, d); 1 for an empty graph."""
        if self.nodes is None:
            return torch.tensor(max(self.num_nodes, 1))
        return self.nodes.clamp(min=1)[:, None, None]

    def pad(self, x: Tensor) -> Tensor:
        """The nodes of many graphs as (G, n, d), zeros behind those of smaller graphs."""
        padded = x.new_zeros(self.num_graphs * self._width, x.shape[1])
        padded = padded.index_copy(0, self._place, x)
        return padded.reshape(self.num_graphs, self._width, x.shape[1])

    def restore(self, y: Tensor) -> Tensor:
        """From the padded layout to that of the signal; there is no padding on one graph."""
        return y if self.nodes is None else y.flatten(0, 1)[self._place]

    def _pack(self, nodes: Sequence[int], device: torch.device) -> None:
        """Notes the number of nodes of each graph, and where each node stands in `pad`."""
        self.nodes = torch.tensor(nodes, dtype=torch.int64, device=device)
        self.graph_of_nodes = torch.repeat_interleave(self.nodes)
        self._width = max(nodes, default=0)
        self._place = padded_places(self.nodes, self._width)


def on_nodes(x: Tensor, num_nodes: int) -> Tensor:
    """The signal itself; raises unless its shape is (..., num_nodes, channels)."""
    if x.ndim < 2 or x.shape[-2] != num_nodes:
        raise SignalError(
            f"The signal must have the shape (..., {num_nodes}, channels), not {tuple(x.shape)}."
        )
    return x
