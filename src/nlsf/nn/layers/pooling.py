"""From nodes to graphs: `Readout`, and the pooling filter `PoolingNLSF` that ends in one.

The filter is a node-level filter, an activation, a readout and a network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.node import NodeNLSF
from nlsf.nn.layers.spectra import SpectrumArgument
from nlsf.nn.layers.spectral_layer import require_real
from nlsf.nn.networks import GroupedMLP, NodeBatchNorm, activation_of
from nlsf.spectral import Bands, View
from nlsf.spectral.kernels.dense import energy, power
from nlsf.spectral.kernels.segments import segment_sum
from nlsf.spectral.kernels.transforms import is_vmapped
from nlsf.spectral.lens import FixedNodes
from nlsf.spectral.operators.shift import Normalization

ReadoutName: TypeAlias = Literal["mean", "sum", "max", "lp", "rms"]


class Readout(nn.Module):
    r"""Mean, sum, maximum or norm over the nodes of each graph, channel by channel.

    - ``lp``: :math:`(\sum_n |y_n|^p)^{1/p}`, or with 1/N before the sum
    - ``rms``: :math:`(\frac{1}{N} \sum_n |y_n|^2)^{1/2}`

    Args:
        name: which of them.
        p: of ``"lp"``, at least 1.
        normalize: of ``"lp"``: divide the sum by the number of nodes.

    Shapes:
        - y: (N, d) with ``batch`` (N,) of G graphs, or (..., N, d)
        - output: (G, d), or (..., d); (1, d) for (N, d) without ``batch``
    """

    def __init__(self, name: ReadoutName = "mean", p: float = 2.0, normalize: bool = False) -> None:
        super().__init__()
        if name not in ("mean", "sum", "max", "lp", "rms"):
            raise ModelError(f"readout must be mean, sum, max, lp or rms, not {name!r}.")
        if not p >= 1:
            raise ModelError(f"The p of a readout must be at least 1, not {p!r}.")
        self.name: ReadoutName = name
        self.p = 2.0 if name == "rms" else p
        self.normalize = normalize or name == "rms"

    def forward(self, y: Tensor, batch: Tensor | None = None, num_graphs: int = 1) -> Tensor:
        """One vector a graph."""
        if self.name in ("mean", "sum", "max"):
            return _reduce(y, self.name, batch, num_graphs)
        if self.p == math.inf:
            return _reduce(y.abs(), "max", batch, num_graphs)
        how = "mean" if self.normalize else "sum"
        if self.p == 2:
            return power(_reduce(energy(y), how, batch, num_graphs), 0.5)
        size = y.abs()
        # Divided by the largest of its graph first, no power overflows, and none is lost.
        largest = _reduce(size.detach(), "max", batch, num_graphs)
        unit = largest.masked_fill(largest == 0, 1.0)
        if batch is None:
            size = size / unit.reshape(*size.shape[:-2], 1, size.shape[-1])
        else:
            size = size / unit.index_select(-2, batch)
        return power(_reduce(size.pow(self.p), how, batch, num_graphs), 1 / self.p) * unit

    def __repr__(self) -> str:
        norm = f", p={self.p}, normalize={self.normalize}" if self.name in ("lp", "rms") else ""
        return f"{type(self).__name__}({self.name!r}{norm})"


def _reduce(y: Tensor, how: str, batch: Tensor | None, num_graphs: int) -> Tensor:
    if batch is not None:
        return _reduce_graphs(y, how, batch, num_graphs)
    reduced: Tensor
    if y.shape[-2] == 0:
        reduced = y.new_zeros(*y.shape[:-2], y.shape[-1])
    else:
        reduced = y.amax(-2) if how == "max" else y.sum(-2) if how == "sum" else y.mean(-2)
    return reduced.unsqueeze(0) if reduced.ndim == 1 else reduced


def _reduce_graphs(y: Tensor, how: str, batch: Tensor, num_graphs: int) -> Tensor:
    """One vector a graph, 0 where it has no nodes; nothing in place, for `torch.func.vmap`."""
    if how == "max":
        none = y.new_zeros(*y.shape[:-2], num_graphs, y.shape[-1])
        index = batch[:, None].expand_as(y)
        return none.scatter_reduce(-2, index, y, "amax", include_self=False)
    total = segment_sum(y, batch, num_graphs)
    if how == "sum":
        return total
    ones = y.new_ones(len(batch), 1)
    return total / segment_sum(ones, batch, num_graphs).clamp(min=1)


class PoolingNLSF(nn.Module):
    r"""A graph-level filter by way of the nodes (Sec. 3.4).

    .. math::
        \Theta^P(\Delta, X) = \mathrm{MLP}\bigl(\mathrm{readout}(\rho(\Theta(\Delta, X)))\bigr)

    It separates graphs that `GraphNLSF` cannot when a norm inside is not L_2 (App. D.2.4); for
    p = 2 both are equally expressive. It is invariant to permutations of the nodes; the activation
    and readouts other than L_2 norms break the invariance to functional shifts.

    Args:
        in_channels: d.
        out_channels: outputs a graph.
        bands: the partition of the spectrum.
        normalization: which Laplacian to build of ``edge_index``.
        hidden_channels: channels of the node-level filter.
        readout: ``"mean"``, ``"sum"``, ``"max"``, ``"lp"`` or ``"rms"``, or a `Readout`.
        p: of the readout ``"lp"``.
        activation: after the filter; ``None`` for none, which keeps the functional symmetry.
        hidden: width of the last network.
        depth: its number of linear layers; 0 for none, the readout itself is the output.
        dropout: its dropout.
        psi: options of the filter's `Response`: ``sharing``, ``hidden``, ``depth``, ...
        batch_norm: batch normalisation of the filter's channels over all nodes of a batch, before
            the activation, and of the readout over its graphs.
        node_options: options of the `NodeNLSF`: ``response``, ``complement``, ``a``, ...

    Shapes:
        - x: (N, in_channels), or (..., N, in_channels) for many signals on one graph
        - output: (G, out_channels), or (..., out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bands: Bands | None = None,
        normalization: Normalization = "sym",
        *,
        hidden_channels: int = 64,
        readout: ReadoutName | Readout = "mean",
        p: float = 2.0,
        activation: str | None = "relu",
        hidden: int = 64,
        depth: int = 2,
        dropout: float = 0.0,
        psi: Mapping[str, Any] | None = None,
        batch_norm: bool = False,
        **node_options: Any,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        if depth == 0:
            hidden_channels = out_channels
        self.node = NodeNLSF(
            in_channels, hidden_channels, bands, normalization, **node_options, **(psi or {})
        )
        self.node_norm = NodeBatchNorm(hidden_channels) if batch_norm else None
        self.activation = nn.Identity() if activation is None else activation_of(activation)
        self.readout = readout if isinstance(readout, Readout) else Readout(readout, p)
        # What follows scales and shifts it anyway.
        self.readout_norm = nn.BatchNorm1d(hidden_channels, affine=False) if batch_norm else None
        self.network: GroupedMLP | None = None
        if depth > 0:
            self.network = GroupedMLP(
                1, hidden_channels, out_channels, hidden=hidden, depth=depth, dropout=dropout
            )

    def reset_parameters(self) -> None:
        """Back to the start."""
        self.node.reset_parameters()
        for part in (self.node_norm, self.readout_norm, self.network):
            if part is not None:
                part.reset_parameters()

    def view(self, *arguments: Any, spectrum: SpectrumArgument = None) -> View:
        """The signal seen through the filter's bands."""
        return self.node.view(*arguments, spectrum=spectrum)

    def norms(self, view: View) -> Tensor:
        """The invariant norms that the filter's response sees."""
        return self.node.norms(view)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: SpectrumArgument = None,
    ) -> Tensor:
        """The outputs of every graph; arguments as in `NodeNLSF.forward`."""
        return self.respond(self.view(x, edge_index, edge_weight, batch, spectrum=spectrum))

    def respond(self, view: View) -> Tensor:
        """The same for a view that is there already."""
        graph, graphs = view.graph_of_nodes, view.num_graphs
        y = self.node.respond(view)
        if graph is None:
            return self._last(self.readout(self._activated(y)))
        # Nodes that pad, inside of a vmap only, belong to one graph more.
        padded = is_vmapped(y)
        y = self._activated(y, graph < graphs if padded else None)
        return self._last(self.readout(y, graph, graphs + padded)[:graphs])

    def prepare(self, x: Tensor, *graph: Any, spectrum: SpectrumArgument = None) -> FixedNodes:
        """The fast path: the nodes of many graphs, projected; arguments as in ``forward``."""
        lens = self.node.lens(x, *graph, spectrum=spectrum)
        if lens.nodes is None:
            raise ModelError("The fast path of the pooling level is for many graphs: pass batch.")
        return lens.fix_nodes(x, self.node.norm_p, self.node.norm_per_node)

    def of_prepared(self, prepared: FixedNodes) -> FixedNodes:
        """The view that `respond` takes, of what `prepare` gave."""
        return prepared

    def _activated(self, y: Tensor, inside: Tensor | None = None) -> Tensor:
        """The nodes after the activation; ``inside`` says which of them are no padding."""
        y = require_real(y)
        if self.node_norm is not None:
            y = self.node_norm(y.flatten(0, -2), inside).reshape(y.shape)
        activated: Tensor = self.activation(y)
        return activated

    def _last(self, pooled: Tensor) -> Tensor:
        """From the readout to the output."""
        if self.readout_norm is not None:
            pooled = self.readout_norm(pooled.flatten(0, -2)).reshape(pooled.shape)
        return pooled if self.network is None else self.network(pooled)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, node={self.node}, "
            f"readout={self.readout})"
        )

    def _repr_html_(self) -> str:
        return self.node._repr_html_()
