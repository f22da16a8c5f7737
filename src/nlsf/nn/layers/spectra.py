"""What a layer is called with: the signal and graph, checked, and the lens that is made of them.

A lens is made once for a graph and remembered. A check of the values of a tensor is made once,
until somebody writes to the tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from nlsf.errors import GraphError, ModelError, NotSymmetricError, SignalError
from nlsf.spectral import (
    Bands,
    Lens,
    Spectrum,
    batched_eigh,
    laplacian,
    partial_eigh,
)
from nlsf.spectral.kernels.transforms import is_vmapped
from nlsf.spectral.lens.columns import all_pairs_pay
from nlsf.spectral.operators.graph_input import TensorMemo, edge_list, split_batch
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


def lens_for(
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
    if batch is not None:
        check_batch(x, batch)
    real = x.real.dtype if x.is_complex() else x.dtype
    if spectrum is not None:
        return _of_spectra(spectrum, bands, complement, real, x.device, batch)
    if edge_index is None:
        raise ModelError("A layer needs a graph: pass edge_index, or spectrum=.")
    as_edges = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided
    if not as_edges or not isinstance(edge_weight, Tensor | None):
        edge_index, edge_weight = check_graph(x, edge_index, edge_weight)
    elif edge_weight is not None:
        check_weights(edge_weight)
    tensors = (edge_index, edge_weight, batch)
    digests = [None if one is None else content_digest(one) for one in tensors]
    graph = (*digests, x.shape[-2], normalization, self_loops)

    def build() -> Lens:
        # What is wrong with a graph is seen here: a graph that was solved once is in order.
        edges, weight = check_graph(x, edge_index, edge_weight)
        apart = [(edges, weight, x.shape[-2])]
        if batch is not None:
            apart = split_batch(edges, weight, batch)
        shifts = [_laplacian(*one, normalization, self_loops) for one in apart]
        found: Any = shifts if batch is not None else shifts[0]
        if bands.exact:
            found = _solved(found, graph, bands, complement)
        return Lens.of(found, bands, complement=complement, dtype=real, device=x.device)

    return remembered(_lenses, (graph, bands, complement, real, x.device), build)


def _of_spectra(
    spectra: Spectrum | Sequence[Spectrum] | Lens,
    bands: Bands,
    complement: bool,
    dtype: torch.dtype,
    device: torch.device,
    batch: Tensor | None,
) -> Lens:
    """The lens that is given, or that of spectra that are: made once for the same ones."""
    if isinstance(spectra, Lens):
        _check_lens(spectra, bands, complement)
    elif not bands.exact:
        raise ModelError(
            "Polynomial bands read the graph, not eigenvectors: pass edge_index, or "
            "spectrum=Lens.of(shift, bands), with a list of operators for many graphs."
        )
    if not isinstance(spectra, Spectrum | Lens | Iterable):
        raise ModelError(
            "spectrum must be a Spectrum, one a graph, or a Lens, not a "
            f"{type(spectra).__name__}: make Lens.of(shift, bands) of an operator."
        )
    one = isinstance(spectra, Spectrum) or (isinstance(spectra, Lens) and spectra.nodes is None)
    if one and batch is not None:
        raise ModelError("spectrum is that of one graph: pass one a graph, or leave out batch.")
    if isinstance(spectra, Lens):
        return _for_batch(spectra, batch)
    items = (spectra,) if isinstance(spectra, Spectrum) else tuple(spectra)
    key = (*map(id, items), one, bands, complement, dtype, device)

    def build() -> tuple[Any, Lens]:
        # The result holds the spectra, so that their ids cannot be given to others.
        found: Any = items[0] if one else items
        return items, Lens.of(found, bands, complement=complement, dtype=dtype, device=device)

    return _for_batch(remembered(_lenses, key, build)[1], batch)


def _for_batch(lens: Lens, batch: Tensor | None) -> Lens:
    """The lens itself; raises if ``batch`` divides the nodes into other graphs."""
    graph = lens.graph_of_nodes
    if batch is None or graph is None or torch.equal(graph.to(batch), batch):
        return lens
    raise ModelError(
        f"batch divides the nodes into other graphs than the {lens.num_graphs} of spectrum: "
        "pass the spectra in the order of the graphs, or leave out batch."
    )


def _check_lens(lens: Lens, bands: Bands, complement: bool) -> None:
    if lens.bands != bands or lens.complement != complement:
        raise ModelError(
            f"The lens has {lens.bands} (complement={lens.complement}), the layer {bands} "
            f"(complement={complement}): make it with these."
        )


def _solved(
    shifts: ShiftOperator | list[ShiftOperator], graph: Hashable, bands: Bands, complement: bool
) -> Spectrum | list[Spectrum]:
    """The spectra of a graph or of many, which other layers may need too."""
    key = (graph, bands.demand())
    if isinstance(shifts, list):
        return remembered(_spectra, key, lambda: batched_eigh(shifts, bands=bands))
    spectrum = remembered(_spectra, key, lambda: partial_eigh(shifts, bands=bands))
    if all_pairs_pay(spectrum, bands, complement):
        return remembered(_spectra, (graph, None), lambda: partial_eigh(shifts))
    return spectrum


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


_checked = TensorMemo()


def check_signal(x: Tensor, channels: int | None, *, values: bool = True) -> None:
    """Raises unless a layer can filter this signal.

    What other layers computed may hold NaN after a training has diverged. That is no error of the
    input, so a tensor with a history is not looked into.

    Args:
        x: the signal.
        channels: how many a node must have; ``None`` for any number.
        values: whether to look for NaN and infinity.

    Raises:
        SignalError: it is no tensor of floating point, has other channels, or a value that is not
            finite.
    """
    if not isinstance(x, Tensor):
        raise SignalError(f"The signal must be a tensor, not {type(x).__name__}.")
    if x.ndim < 2 or not (x.is_floating_point() or x.is_complex()):
        raise SignalError(
            "The signal must have the shape (..., nodes, channels) and be of floating point, not "
            f"{tuple(x.shape)} of {x.dtype}."
        )
    if channels is not None and x.shape[-1] != channels:
        raise SignalError(
            f"The signal has {x.shape[-1]} channels, the layer {channels} (in_channels)."
        )
    if not values or torch.compiler.is_compiling():
        return
    if x.grad_fn is None and not is_vmapped(x):
        _checked.get(x, lambda: _check_finite(x))


def _check_finite(x: Tensor) -> None:
    # A sum is not finite if a summand is not, and takes a tenth of the time.
    total = x.detach().sum().item()
    if total - total == 0 or torch.isfinite(x).all():
        return
    where = (~torch.isfinite(x)).nonzero()[0].tolist()
    raise SignalError(
        f"The signal has the value {x[tuple(where)].item()} at {where}: a filter would spread it "
        "over the whole graph. Replace it first, for example by x.nan_to_num()."
    )


def check_graph(x: Tensor, edge_index: Any, edge_weight: Any) -> tuple[Tensor, Tensor | None]:
    """The edges (2, E) and weights (E,) of the graph that a layer is called with.

    Args:
        x: the signal.
        edge_index: the graph in any form of `nlsf.spectral.operators.adjacency_matrix`.
        edge_weight: (E,) or ``None``.

    Raises:
        GraphError: the weights require a gradient, or the graph cannot be read.
    """
    check_weights(edge_weight)
    check_weights(edge_index)
    return edge_list(edge_index, edge_weight, x.shape[-2])


def check_weights(weights: Any) -> None:
    """Raises if the weights of edges, or a matrix that holds them, ask for a gradient."""
    if isinstance(weights, Tensor) and weights.requires_grad:
        raise GraphError(
            "The weights of the edges require a gradient, and none flows through the spectrum "
            "of a graph: pass edge_weight.detach()."
        )


def check_batch(x: Tensor, batch: Tensor) -> None:
    """Raises unless ``batch`` holds one integer a node of the signal."""
    nodes = x.shape[-2]
    if not isinstance(batch, Tensor):
        raise GraphError(f"batch must be a tensor, not {type(batch).__name__}: use torch.tensor.")
    whole = not (batch.is_floating_point() or batch.is_complex() or batch.dtype == torch.bool)
    if batch.shape != (nodes,) or not whole:
        raise GraphError(
            f"batch must hold the number of the graph of each of the {nodes} nodes, so {nodes} "
            f"integers; it has the shape {tuple(batch.shape)} and is of {batch.dtype}."
        )
