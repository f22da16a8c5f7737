"""What a layer is called with, checked: `check_signal`, `check_graph`.

A check of the values of a tensor is made once, until somebody writes to the tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nlsf.errors import GraphError, SignalError
from nlsf.spectral.kernels.transforms import is_vmapped
from nlsf.spectral.operators.graph_input import TensorMemo, edge_list

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
    if batch.shape != (nodes,) or batch.is_floating_point():
        raise GraphError(
            f"batch must hold the number of the graph of each of the {nodes} nodes, so {nodes} "
            f"integers; it has the shape {tuple(batch.shape)} and is of {batch.dtype}."
        )
