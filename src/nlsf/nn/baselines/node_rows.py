"""What methods share that have a row of parameters a node: `NodeRowsConfig`, `rows_of`."""

from __future__ import annotations

from dataclasses import dataclass

from nlsf.errors import ModelError
from nlsf.nn.baselines.base import PeerConfig
from nlsf.nn.baselines.neighbourhood import MatrixKind, Neighbourhood
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class NodeRowsConfig(PeerConfig):
    """Settings of methods that read a node's row of the adjacency matrix as features.

    Attributes:
        num_nodes: of the graph, which is fixed; the data decide it.
    """

    num_nodes: int = 0


def rows_of(
    graph: Neighbourhood, config: NodeRowsConfig, kind: MatrixKind = "adjacency"
) -> SparseSignal:
    """A matrix (N, N) of the graph as features, if it is of the size that the model is for."""
    if graph.num_nodes != config.num_nodes:
        raise ModelError(
            f"This model has parameters for each of {config.num_nodes} nodes, and cannot be "
            f"applied to a graph of {graph.num_nodes}."
        )
    return graph.matrix(kind)
