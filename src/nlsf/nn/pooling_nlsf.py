"""The pooling filter: node-level filter, activation, readout, network: `PoolingNLSF`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.activation import activation_of
from nlsf.nn.grouped_mlp import GroupedMLP
from nlsf.nn.node_nlsf import NodeNLSF
from nlsf.nn.readout import Readout, ReadoutName
from nlsf.nn.spectra import ManyGraphs, SpectrumArgument
from nlsf.nn.spectral_layer import graph_of_nodes, require_real
from nlsf.spectral import Decomposition
from nlsf.spectral.prepared_nodes import NodeBatch, PreparedNodes


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
        **node_options: Any,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        if depth == 0:
            hidden_channels = out_channels
        self.node = NodeNLSF(in_channels, hidden_channels, **node_options, **(psi or {}))
        self.activation = nn.Identity() if activation is None else activation_of(activation)
        self.readout = readout if isinstance(readout, Readout) else Readout(readout, p)
        self.network: GroupedMLP | None = None
        if depth > 0:
            self.network = GroupedMLP(
                1, hidden_channels, out_channels, hidden=hidden, depth=depth, dropout=dropout
            )

    def reset_parameters(self) -> None:
        """Back to the start."""
        self.node.reset_parameters()
        if self.network is not None:
            self.network.reset_parameters()

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
        y = self.activation(require_real(self.node.respond(parts)))
        projector = parts.projector
        graphs = projector.num_graphs if isinstance(projector, ManyGraphs) else 1
        pooled: Tensor = self.readout(y, graph_of_nodes(projector), graphs)
        return pooled if self.network is None else self.network(pooled)

    def prepare(self, x: Tensor, *graph: Any, spectrum: SpectrumArgument = None) -> PreparedNodes:
        """The fast path: the nodes of many graphs, projected; arguments as in ``forward``."""
        projector = self.node.projector(x, *graph, spectrum=spectrum)
        if not isinstance(projector, ManyGraphs):
            raise ModelError("The fast path of the pooling level is for many graphs: pass batch.")
        return PreparedNodes.of(x, projector, self.node.norm, self.node.normalize)

    def respond_prepared(self, batch: NodeBatch) -> tuple[Tensor, Tensor]:
        """The norms and the outputs (R, out_channels) of prepared graphs."""
        graphs = batch.norms.shape[0]
        y = self.activation(require_real(self.node.respond_nodes(batch)))
        pooled: Tensor = self.readout(y, batch.graph, graphs + 1)[:graphs]
        return batch.norms, pooled if self.network is None else self.network(pooled)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, node={self.node}, "
            f"readout={self.readout})"
        )
