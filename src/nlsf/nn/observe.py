"""What happens inside a model's filters while it is applied: `observe`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.nn.layers.attention import LaplacianAttention
from nlsf.nn.layers.graph import GraphNLSF
from nlsf.nn.layers.node import NodeNLSF
from nlsf.nn.layers.pooling import PoolingNLSF

Filter = NodeNLSF | GraphNLSF


@dataclass(eq=False)
class Observation:
    """What one filter saw and said.

    Attributes:
        layer: the filter.
        norms: (B, d), the norm of each channel in each band; (G, B, d) for graphs or signals.
        gains_before: (B,) or (G, B), those before training; ``None`` for a graph-level filter.
        gains_after: (B, d) or (G, B, d), those of the model now; ``None`` for a graph-level
            filter, and for the full form, which is not one number a band and channel.
    """

    layer: Filter
    norms: Tensor
    gains_before: Tensor | None = None
    gains_after: Tensor | None = None

    @property
    def linear_start(self) -> bool:
        """Whether the filter was a linear one before training, with a gain in every band."""
        layer = self.layer
        if not isinstance(layer, NodeNLSF) or self.gains_before is None:
            return False
        return layer.start.name != "random" and bool((self.gains_before > 0).all())

    @property
    def exponent(self) -> float:
        """The power of its norm by which each band is divided first; 0 for none."""
        return self.layer.a if isinstance(self.layer, NodeNLSF) else 0.0


@dataclass(eq=False)
class Observations:
    """What all filters of a model saw.

    Attributes:
        filters: in the order in which they are computed: layer by layer, branch by branch.
        alpha: the weight of the first branch of each attention: (), or one a graph.
        signal: what came into the first filter.
    """

    filters: list[Observation] = field(default_factory=list)
    alpha: list[Tensor] = field(default_factory=list)
    signal: Tensor | None = None

    @classmethod
    def joined(cls, parts: list[Observations]) -> Observations:
        """The observations of many batches of graphs or signals as one.

        The signal is that of the first batch.
        """
        if len(parts) < 2:
            return parts[0] if parts else cls()
        filters = []
        for many in zip(*(part.filters for part in parts), strict=True):
            first = many[0]
            filters.append(
                Observation(
                    first.layer,
                    torch.cat([one.norms for one in many]),
                    _cat([one.gains_before for one in many]),
                    _cat([one.gains_after for one in many]),
                )
            )
        # A scalar weight is the same for all batches; one a graph goes on from batch to batch.
        alpha = [
            torch.cat(many) if many[0].ndim else many[0]
            for many in zip(*(part.alpha for part in parts), strict=True)
        ]
        return cls(filters, alpha, parts[0].signal)


@contextmanager
def observe(model: nn.Module) -> Iterator[Observations]:
    """Notes what the filters of a model do in the one call that is made inside."""
    seen = Observations()
    handles: list[Any] = []
    first = True
    for part in model.modules():
        if isinstance(part, LaplacianAttention):
            handles.append(part.register_forward_hook(_alpha(seen)))
        if isinstance(part, LaplacianAttention | NodeNLSF | GraphNLSF | PoolingNLSF) and first:
            handles.append(part.register_forward_pre_hook(_signal(seen)))
            first = False
        if isinstance(part, NodeNLSF):
            handles.append(part.response.register_forward_hook(_response(seen, part)))
        if isinstance(part, GraphNLSF):
            handles.append(part.standard.register_forward_hook(_norms(seen, part)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _alpha(seen: Observations) -> Any:
    def hook(part: LaplacianAttention, inputs: Any, output: Tensor) -> None:
        if part.alpha is not None:
            seen.alpha.append(part.alpha.clone())

    return hook


def _signal(seen: Observations) -> Any:
    def hook(part: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.signal = inputs[0].detach()

    return hook


def _response(seen: Observations, layer: NodeNLSF) -> Any:
    def hook(part: nn.Module, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        norms, start = (one.detach() for one in inputs)
        gains = output.detach() if layer.response.form == "diagonal" else None
        seen.filters.append(Observation(layer, norms, start, gains))

    return hook


def _norms(seen: Observations, layer: GraphNLSF) -> Any:
    def hook(part: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        norms = inputs[0].detach().unflatten(-1, (layer.n_bands, layer.channels))
        seen.filters.append(Observation(layer, norms))

    return hook


def _cat(tensors: list[Tensor | None]) -> Tensor | None:
    """All of them, one below the other; what does not depend on the batch once."""
    known = [tensor for tensor in tensors if tensor is not None]
    if not known or known[0].ndim == 1:
        return known[0] if known else None
    return torch.cat(known)
