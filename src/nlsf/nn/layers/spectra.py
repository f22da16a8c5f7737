"""The spectra that a layer needs, computed once for a graph and remembered."""

from __future__ import annotations

import hashlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor

from nlsf.errors import ModelError, NotSymmetricError
from nlsf.nn.layers.inputs import check_batch, check_graph
from nlsf.spectral import (
    Bands,
    BatchProjector,
    PolynomialBands,
    PolynomialBatchProjector,
    PolynomialProjector,
    Projector,
    Spectrum,
    batched_eigh,
    laplacian,
    partial_eigh,
)
from nlsf.spectral.operators.graph_input import TensorMemo, split_batch
from nlsf.spectral.operators.shift import Normalization, ShiftOperator
from nlsf.store.memory import forget_all

ManyGraphs: TypeAlias = BatchProjector | PolynomialBatchProjector
"""The projector of a batch of graphs."""

AnyProjector: TypeAlias = Projector | PolynomialProjector | ManyGraphs
"""The projector of a layer's call."""

SpectrumArgument: TypeAlias = Spectrum | Sequence[Spectrum] | AnyProjector | None
"""A spectrum, one a graph, or a projector that is already there."""


class Memo:
    """The most recent results, by key; the oldest is forgotten first.

    Attributes:
        every: all memos that there are.
    """

    every: ClassVar[weakref.WeakSet[Memo]] = weakref.WeakSet()

    def __init__(self, size: int) -> None:
        self.every.add(self)
        self.size = size
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What is remembered under the key, computed if it is not."""
        if key in self.entries:
            self.entries.move_to_end(key)
        else:
            # Tensors born in inference mode would be of no use to a training step later.
            with torch.inference_mode(False):
                self.entries[key] = compute()
            while len(self.entries) > self.size:
                self.entries.popitem(last=False)
        return self.entries[key]

    def clear(self) -> None:
        """Forgets everything."""
        self.entries.clear()


_spectra = Memo(64)
_projectors = Memo(16)
_digests = TensorMemo()


def forget_spectra() -> None:
    """Frees all spectra, and whatever else layers and models remember of graphs."""
    for memo in Memo.every:
        memo.clear()
    forget_all()


def projector_for(x: Tensor, bands: Bands, complement: bool, **graph: Any) -> AnyProjector:
    """The projector of a layer's call; the arguments are those of `_projector_for`."""
    # A compiler cannot trace an eigensolver, and need not: it runs once. As a decorator this would
    # import the compiler, which costs as much as PyTorch without it.
    if torch.compiler.is_compiling():
        found: AnyProjector = torch.compiler.disable(_projector_for)(x, bands, complement, **graph)
        return found
    return _projector_for(x, bands, complement, **graph)


def _projector_for(
    x: Tensor,
    bands: Bands,
    complement: bool,
    *,
    spectrum: SpectrumArgument = None,
    edge_index: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    normalization: Normalization = "sym",
    self_loops: bool = False,
) -> AnyProjector:
    """The projector of a layer's call, in the dtype and on the device of the signal.

    Args:
        x: the signal, (N, d), or (..., N, d) on a single graph.
        bands: the layer's bands.
        complement: whether the complement is one of them.
        spectrum: a spectrum, one a graph, or a projector; or
        edge_index: the graph (2, E), with
        edge_weight: its weights (E,), and
        batch: the graph of each node (N,), for several graphs.
        normalization: which Laplacian to build of ``edge_index``.
        self_loops: as in `laplacian`.
    """
    check_batch(x, batch)
    if edge_index is not None:
        edge_index, edge_weight = check_graph(x, edge_index, edge_weight)
    if batch is not None and isinstance(spectrum, Spectrum | Projector | PolynomialProjector):
        raise ModelError("spectrum is that of one graph: pass one a graph, or leave out batch.")
    if isinstance(spectrum, AnyProjector):
        if spectrum.bands != bands or spectrum.complement != complement:
            raise ModelError(
                f"The projector has {spectrum.bands} (complement={spectrum.complement}), the layer "
                f"{bands} (complement={complement})."
            )
        return spectrum
    if spectrum is None and edge_index is None:
        raise ModelError("A layer needs a graph: pass edge_index, or spectrum=.")
    if isinstance(bands, PolynomialBands):
        if spectrum is not None or edge_index is None:
            raise ModelError(
                "Polynomial bands read the graph, not eigenvectors: pass edge_index, or a "
                "PolynomialProjector (PolynomialBatchProjector for many graphs) as spectrum=."
            )
        graph = (edge_index, edge_weight, batch, normalization, self_loops)
        return _polynomial(x, bands, complement, *graph)
    if spectrum is None:
        assert edge_index is not None
        spectrum = _spectrum(x, bands, edge_index, edge_weight, batch, normalization, self_loops)
    many = not isinstance(spectrum, Spectrum)
    items = tuple(spectrum) if not isinstance(spectrum, Spectrum) else (spectrum,)
    real = x.real.dtype if x.is_complex() else x.dtype
    # The entry holds the spectra, so that their ids cannot be given to others while it lives.
    key = (*map(id, items), many, bands, complement, real, x.device)

    def build() -> tuple[Any, Projector | BatchProjector]:
        moved = [s.to(dtype=real, device=x.device) for s in items]
        if many:
            return items, BatchProjector(moved, bands, complement=complement, dtype=real)
        return items, Projector(moved[0], bands, complement=complement)

    projector: Projector | BatchProjector = _projectors.get(key, build)[1]
    return projector


def _polynomial(
    x: Tensor,
    bands: PolynomialBands,
    complement: bool,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    normalization: Normalization,
    self_loops: bool,
) -> PolynomialProjector | PolynomialBatchProjector:
    real = x.real.dtype if x.is_complex() else x.dtype
    graph = _graph_key(x, edge_index, edge_weight, batch, normalization, self_loops)

    def one(edges: Tensor, weight: Tensor | None, size: int) -> PolynomialProjector:
        shift = _laplacian(edges, weight, size, normalization, self_loops)
        return PolynomialProjector(shift, bands, complement=complement).to(real, x.device)

    def build() -> PolynomialProjector | PolynomialBatchProjector:
        if batch is None:
            return one(edge_index, edge_weight, x.shape[-2])
        graphs = [one(*each) for each in split_batch(edge_index, edge_weight, batch)]
        return PolynomialBatchProjector(graphs, bands, complement=complement, dtype=real)

    key = (graph, bands, complement, real, x.device)
    projector: PolynomialProjector | PolynomialBatchProjector = _projectors.get(key, build)
    return projector


def _graph_key(
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    normalization: Normalization,
    self_loops: bool,
) -> Hashable:
    return (
        content_digest(edge_index),
        None if edge_weight is None else content_digest(edge_weight),
        None if batch is None else content_digest(batch),
        x.shape[-2],
        normalization,
        self_loops,
    )


def _spectrum(
    x: Tensor,
    bands: Bands,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    normalization: Normalization,
    self_loops: bool,
) -> Spectrum | list[Spectrum]:
    num_nodes = x.shape[-2]
    graph = _graph_key(x, edge_index, edge_weight, batch, normalization, self_loops)
    key = (graph, bands.demand())

    def build(edges: Tensor, weight: Tensor | None, size: int) -> ShiftOperator:
        return _laplacian(edges, weight, size, normalization, self_loops)

    def compute() -> Spectrum | list[Spectrum]:
        if batch is None:
            return partial_eigh(build(edge_index, edge_weight, num_nodes), bands=bands)
        graphs = [build(*g) for g in split_batch(edge_index, edge_weight, batch)]
        return batched_eigh(graphs, bands=bands)

    found: Spectrum | list[Spectrum] = _spectra.get(key, compute)
    return found


def _laplacian(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    normalization: Normalization,
    self_loops: bool,
) -> ShiftOperator:
    """The Laplacian of a layer's graph; an error says what can be done where a layer is called."""
    try:
        return laplacian(edge_index, edge_weight, num_nodes, normalization, self_loops=self_loops)
    except NotSymmetricError as error:
        raise NotSymmetricError(
            "The graph of a layer must be undirected, and this one has edges without their "
            "reverse, or with another weight there: pass torch_geometric.utils.to_undirected("
            "edge_index), or spectrum=partial_eigh(laplacian(edge_index, symmetrize='sum'), "
            "bands=layer.bands)."
        ) from error


def content_digest(tensor: Tensor) -> bytes:
    """A hash of the content; looked up, not computed, while the same tensor is unchanged."""
    return _digests.get(tensor, lambda: _digest(tensor))


def _digest(tensor: Tensor) -> bytes:
    array = tensor.detach().cpu().contiguous().numpy()
    content = hashlib.blake2b(array.tobytes(), digest_size=16)
    content.update(repr((array.shape, array.dtype)).encode())
    return content.digest()
