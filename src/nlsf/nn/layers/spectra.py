"""The lens that a layer needs, made once for a graph and remembered."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from nlsf.errors import ModelError, NotSymmetricError
from nlsf.nn.layers.inputs import check_batch, check_graph
from nlsf.spectral import (
    Bands,
    Lens,
    Spectrum,
    batched_eigh,
    laplacian,
    partial_eigh,
)
from nlsf.spectral.operators.graph_input import TensorMemo, split_batch
from nlsf.spectral.operators.shift import Normalization, ShiftOperator
from nlsf.store.memory import Memory, forget_all

SpectrumArgument: TypeAlias = Spectrum | Sequence[Spectrum] | Lens | None
"""A spectrum, one a graph, or a lens that is already there."""

_Result = TypeVar("_Result")

_spectra, _lenses = Memory(), Memory()
_digests = TensorMemo()


def forget_spectra() -> None:
    """Frees all spectra, and whatever else layers and models remember of graphs."""
    forget_all()


def lens_for(x: Tensor, bands: Bands, complement: bool, **graph: Any) -> Lens:
    """The lens of a layer's call; the arguments are those of `_lens_for`."""
    # A compiler cannot trace an eigensolver, and need not: it runs once. As a decorator this would
    # import the compiler, which costs as much as PyTorch without it.
    if torch.compiler.is_compiling():
        found: Lens = torch.compiler.disable(_lens_for)(x, bands, complement, **graph)
        return found
    return _lens_for(x, bands, complement, **graph)


def _lens_for(
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
) -> Lens:
    """The lens of a layer's call, in the dtype and on the device of the signal.

    Args:
        x: the signal, (N, d), or (..., N, d) on a single graph.
        bands: the layer's bands.
        complement: whether the complement is one of them.
        spectrum: a spectrum, one a graph, or a lens; or
        edge_index: the graph (2, E), with
        edge_weight: its weights (E,), and
        batch: the graph of each node (N,), for several graphs.
        normalization: which Laplacian to build of ``edge_index``.
        self_loops: as in `laplacian`.
    """
    check_batch(x, batch)
    if edge_index is not None:
        edge_index, edge_weight = check_graph(x, edge_index, edge_weight)
    if isinstance(spectrum, Spectrum | Lens):
        one = isinstance(spectrum, Spectrum) or spectrum.nodes is None
        if batch is not None and one:
            raise ModelError("spectrum is that of one graph: pass one a graph, or leave out batch.")
    if isinstance(spectrum, Lens):
        if spectrum.bands != bands or spectrum.complement != complement:
            raise ModelError(
                f"The lens has {spectrum.bands} (complement={spectrum.complement}), the layer "
                f"{bands} (complement={complement}): make it with these."
            )
        return spectrum
    real = x.real.dtype if x.is_complex() else x.dtype
    options: dict[str, Any] = {"complement": complement, "dtype": real, "device": x.device}
    if spectrum is not None:
        if not bands.exact:
            raise ModelError(
                "Polynomial bands read the graph, not eigenvectors: pass edge_index, or "
                "spectrum=Lens.of(shift, bands), with a list of operators for many graphs."
            )
        return _of_spectra(spectrum, bands, options)
    if edge_index is None:
        raise ModelError("A layer needs a graph: pass edge_index, or spectrum=.")
    place = (
        content_digest(edge_index),
        None if edge_weight is None else content_digest(edge_weight),
        None if batch is None else content_digest(batch),
        x.shape[-2],
        normalization,
        self_loops,
    )

    def shifts() -> ShiftOperator | list[ShiftOperator]:
        if batch is None:
            return _laplacian(edge_index, edge_weight, x.shape[-2], normalization, self_loops)
        graphs = split_batch(edge_index, edge_weight, batch)
        return [_laplacian(*graph, normalization, self_loops) for graph in graphs]

    def solved() -> Spectrum | list[Spectrum]:
        graphs = shifts()
        if isinstance(graphs, list):
            return batched_eigh(graphs, bands=bands)
        return partial_eigh(graphs, bands=bands)

    if not bands.exact:
        key = (place, bands, *options.values())
        return remembered(_lenses, key, lambda: Lens.of(shifts(), bands, **options))
    return _of_spectra(remembered(_spectra, (place, bands.demand()), solved), bands, options)


def _of_spectra(
    spectra: Spectrum | Sequence[Spectrum], bands: Bands, options: dict[str, Any]
) -> Lens:
    """The lens of spectra that are there, made once for the same ones."""
    many = not isinstance(spectra, Spectrum)
    items = tuple(spectra) if not isinstance(spectra, Spectrum) else (spectra,)
    key = (*map(id, items), many, bands, *options.values())
    # The result holds the spectra, so that their ids cannot be given to others while it is kept.
    _, lens = remembered(
        _lenses, key, lambda: (items, Lens.of(items if many else items[0], bands, **options))
    )
    return lens


def remembered(memory: Memory, key: Hashable, compute: Callable[[], _Result]) -> _Result:
    """What a memory keeps under a key, computed if nothing is; of use to any later step."""

    def normally() -> _Result:
        # Tensors born in inference mode would be of no use to a training step later.
        with torch.inference_mode(False):
            return compute()

    return memory.get(key, normally)


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
