"""Several filters in a row, with residuals and a normalisation that keeps the symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.attention import LaplacianAttention, pair_of
from nlsf.nn.layers.node import NodeNLSF
from nlsf.nn.layers.spectral_layer import leave_values_unchecked
from nlsf.spectral import Lens, Spectrum
from nlsf.spectral.kernels.dense import energy, power
from nlsf.spectral.kernels.segments import segment_sum


class InvariantNorm(nn.Module):
    r"""Divides each channel by its root mean square over the nodes of its graph.

    .. math::
        y_c = w_c \, x_c \, / \, \bigl( \|x_c\|_2 / \sqrt{N} + e \bigr)

    The scale is a norm, which unitary maps do not change: the layer commutes with all of them.

    Args:
        channels: number of channels.
        eps: the e of the formula.
    """

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def reset_parameters(self) -> None:
        """Weights of 1."""
        nn.init.ones_(self.weight)

    def forward(self, x: Tensor, batch: Tensor | None = None) -> Tensor:
        """The normalised signal: (..., N, d), or (N, d) with ``batch``."""
        squares = energy(x)
        if batch is None:
            mean = squares.mean(-2, keepdim=True) if x.shape[-2] else squares.sum(-2, keepdim=True)
        else:
            graphs = int(batch.max()) + 1 if len(batch) else 0
            count = torch.bincount(batch, minlength=graphs).clamp(min=1)
            mean = (segment_sum(squares, batch, graphs) / count.unsqueeze(-1))[batch]
        return self.weight * x / (power(mean, 0.5) + self.eps)


class NLSFStack(nn.Module):
    """1 to 10 node-level filters in a row: filter, normalise, add what came in.

    Args:
        layers: `NodeNLSF` or `LaplacianAttention` layers, each taking what the one before gives.
        residual: add the input of a layer to its output, where the channels agree; with attention,
            whose branches stand side by side, half of it to each of them.
        invariant_norm: normalise the output of every layer but the last with `InvariantNorm`.

    Shapes:
        - x: (N, d), or (..., N, d) on one graph
    """

    def __init__(
        self,
        layers: Sequence[NodeNLSF | LaplacianAttention],
        residual: bool = True,
        invariant_norm: bool = True,
    ) -> None:
        super().__init__()
        if not 1 <= len(layers) <= 10:
            raise ModelError(f"A stack has 1 to 10 layers, not {len(layers)}.")
        self.layers = nn.ModuleList(layers)
        leave_values_unchecked(self.layers[1:])
        self.residual = residual
        inner = [layer.out_channels for layer in layers[:-1]]
        self.norms = nn.ModuleList(
            InvariantNorm(channels) if invariant_norm else nn.Identity() for channels in inner
        )
        self.out_channels = layers[-1].out_channels

    def reset_parameters(self) -> None:
        """Back to the start."""
        for part in (*self.layers, *self.norms):
            if not isinstance(part, nn.Identity):
                part.reset_parameters()

    def forward(self, x: Tensor, *graph: Any, **options: Any) -> Tensor:
        """All layers; arguments as in those of `NodeNLSF` or `LaplacianAttention`."""
        batch = graph[2] if len(graph) > 2 else options.get("batch")
        if batch is None:
            batch = self._graph_of_nodes(options.get("spectrum"))
        for i, layer in enumerate(self.layers):
            y = layer(x, *graph, **options)
            if self.residual:
                y = _with_input(layer, y, x)
            if i < len(self.norms):
                norm = self.norms[i]
                y = norm(y, batch) if isinstance(norm, InvariantNorm) else y
            x = y
        return x

    def _graph_of_nodes(self, spectrum: Any) -> Tensor | None:
        """The graph of each node, where several graphs come as spectra or as their lens."""
        if isinstance(self.layers[0], LaplacianAttention):
            spectrum, _ = pair_of(spectrum)
        if spectrum is None or isinstance(spectrum, Spectrum):
            return None
        if isinstance(spectrum, Lens):
            return spectrum.graph_of_nodes
        items = tuple(spectrum)
        nodes = torch.tensor([s.num_nodes for s in items], dtype=torch.int64)
        return torch.repeat_interleave(nodes).to(items[0].vectors.device if items else "cpu")


def _with_input(layer: nn.Module, y: Tensor, x: Tensor) -> Tensor:
    """The output of a layer plus its input; two branches share it, as they do at the start."""
    if isinstance(layer, LaplacianAttention):
        widths = (layer.first.out_channels, layer.second.out_channels)
        return y + torch.cat([x, x], dim=-1) / 2 if widths == (x.shape[-1],) * 2 else y
    return y + x if y.shape == x.shape else y
