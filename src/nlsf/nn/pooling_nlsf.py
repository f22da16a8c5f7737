"""The pooling filter: node-level filter, activation, readout, network: `PoolingNLSF`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.activation import activation_of
from nlsf.nn.grouped_mlp import GroupedMLP
from nlsf.nn.node_batch_norm import NodeBatchNorm
from nlsf.nn.node_nlsf import NodeNLSF
from nlsf.nn.readout import Readout, ReadoutName
from nlsf.nn.spectra import ManyGraphs, SpectrumArgument
from nlsf.nn.spectral_layer import graph_of_nodes, require_real
from nlsf.spectral import Decomposition
from nlsf.spectral.prepared_nodes import NodeBatch, PreparedNodes
from nlsf.spectral.vmapped import is_vmapped


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
        hidden_channels: channels of the node-level filter.
        readout: ``"mean"``, ``"sum"``, ``"max"``, ``"lp"`` or ``"rms"``, or a `Readout`.
        p: of the readout ``"lp"``.
        activation: after the filter; ``None`` for none, which keeps the functional symmetry.
        hidden: width of the last network.
        depth: its number of linear layers; 0 for none, the readout itself is the output.
        dropout: its dropout.
        psi: options of the filter's `Response`: ``sharing``, ``hidden``, ``depth``, ...
        standardize: batch normalisation of the filter's channels over all nodes of a batch, before
            the activation, and of the readout over its graphs.
        node_options: options of the `NodeNLSF`: ``bands``, ``normalization``, ``response``, ...

    Shapes:
        - x: (N, in_channels), or (..., N, in_channels) for many signals on one graph
        - output: (G, out_channels), or (..., out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        readout: ReadoutName | Readout = "mean",
        p: float = 2.0,
        activation: str | None = "relu",
        hidden: int = 64,
        depth: int = 2,
        dropout: float = 0.0,
        psi: Mapping[str, Any] | None = None,
        standardize: bool = False,
        **node_options: Any,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        if depth == 0:
            hidden_channels = out_channels
        self.node = NodeNLSF(in_channels, hidden_channels, **node_options, **(psi or {}))
        self.node_norm = NodeBatchNorm(hidden_channels) if standardize else None
        self.activation = nn.Identity() if activation is None else activation_of(activation)
        self.readout = readout if isinstance(readout, Readout) else Readout(readout, p)
        # What follows scales and shifts it anyway.
        self.readout_norm = nn.BatchNorm1d(hidden_channels, affine=False) if standardize else None
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

    def decompose(self, *arguments: Any, spectrum: SpectrumArgument = None) -> Decomposition:
        """The signal seen through the filter's bands."""
        return self.node.decompose(*arguments, spectrum=spectrum)

    def analyze(self, parts: Decomposition) -> Tensor:
        """The invariant norms that the filter's response sees."""
        return self.node.analyze(parts)

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
        return self.respond(self.decompose(x, edge_index, edge_weight, batch, spectrum=spectrum))

    def respond(self, parts: Decomposition) -> Tensor:
        """The same for a signal that is decomposed already."""
        y = self._activated(self.node.respond(parts))
        projector = parts.projector
        graphs = projector.num_graphs if isinstance(projector, ManyGraphs) else 1
        return self._last(self.readout(y, graph_of_nodes(projector), graphs))

    def prepare(self, x: Tensor, *graph: Any, spectrum: SpectrumArgument = None) -> PreparedNodes:
        """The fast path: the nodes of many graphs, projected; arguments as in ``forward``."""
        projector = self.node.projector(x, *graph, spectrum=spectrum)
        if not isinstance(projector, ManyGraphs):
            raise ModelError("The fast path of the pooling level is for many graphs: pass batch.")
        return PreparedNodes.of(x, projector, self.node.norm, self.node.normalize)

    def respond_prepared(self, batch: NodeBatch) -> tuple[Tensor, Tensor]:
        """The norms and the outputs (R, out_channels) of prepared graphs."""
        graphs = batch.norms.shape[0]
        y = self._activated(self.node.respond_nodes(batch), batch.graph < graphs)
        return batch.norms, self._last(self.readout(y, batch.graph, graphs + 1)[:graphs])

    def _activated(self, y: Tensor, inside: Tensor | None = None) -> Tensor:
        """The nodes after the activation; there is padding among them inside of a vmap only."""
        y = require_real(y)
        if self.node_norm is not None:
            padded = inside if is_vmapped(y) else None
            y = self.node_norm(y.flatten(0, -2), padded).reshape(y.shape)
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
