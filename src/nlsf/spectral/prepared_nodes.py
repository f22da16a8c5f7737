"""The nodes of many graphs prepared for training: `PreparedNodes`, `NodeBatch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.batch_projector import BatchProjector
from nlsf.spectral.node_ranges import nodes_of_graphs
from nlsf.spectral.polynomial_batch import PolynomialBatchProjector
from nlsf.spectral.transform import analyze


class NodeBatch(NamedTuple):
    """Some prepared graphs; with leading dimensions, one batch of R graphs a model.

    Attributes:
        projections: (..., n, B, d), :math:`P_j X` at the nodes of these graphs.
        graph: (..., n), the graph of each node, 0 to R - 1; R for nodes that pad.
        norms: (..., R, B, d), the norms of the projections.
        frequencies: (..., R, B), the mean frequency of each band.
    """

    projections: Tensor
    graph: Tensor
    norms: Tensor
    frequencies: Tensor


@dataclass(frozen=True, eq=False)
class PreparedNodes:
    r"""Fixed signals on many graphs, projected on all bands once and for all.

    A filter on the signal itself is then a sum of given signals with weights that depend on given
    norms,

    .. math::
        Y = \sum_j \frac{R_j(c)}{c_j^a + e} \odot P_j X, \qquad c_j = \|P_j X\|_p,

    so that a training step multiplies no eigenvectors, and graphs need no padding to one size.

    Attributes:
        projections: (N_1 + ... + N_G, B, d).
        norms: (G, B, d).
        frequencies: (G, B).
        nodes: (G,), the number of nodes of each graph.
    """

    projections: Tensor
    norms: Tensor
    frequencies: Tensor
    nodes: Tensor

    @classmethod
    def of(
        cls,
        x: Tensor,
        projector: BatchProjector | PolynomialBatchProjector,
        p: float = 2.0,
        normalize: bool = False,
    ) -> PreparedNodes:
        """Prepares the signals (N_1 + ... + N_G, d) of all graphs; p and normalize as in `analyze`.

        Args:
            x: the signals.
            projector: of these graphs.
            p: of the norms.
            normalize: of the norms.
        """
        parts = projector.decompose(x)
        bands = [projector.restore(parts.part(j)) for j in range(projector.n_bands)]
        norms = analyze(parts, p=p, normalize=normalize)
        return cls(torch.stack(bands, dim=1), norms, projector.frequencies, projector.nodes)

    @classmethod
    def cat(cls, parts: Sequence[PreparedNodes]) -> PreparedNodes:
        """All graphs of several, one after the other."""
        if len({part.norms.shape[1] for part in parts}) != 1:
            raise SignalError("Prepared nodes are put together from at least one, of equal bands.")
        names = ("projections", "norms", "frequencies", "nodes")
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: Tensor) -> NodeBatch:
        """Some of the graphs: (R,), or (M, R) for M models that look at R graphs each.

        The models' batches are padded to the number of nodes of the largest.
        """
        node, graph = nodes_of_graphs(self.nodes, index if index.ndim == 2 else index[None])
        if index.ndim == 1:
            node, graph = node[0], graph[0]
        # Whole rows are copied: a third of the time of projections[node].
        rows = self.projections.flatten(1).index_select(0, node.flatten())
        projections = rows.reshape(*node.shape, *self.projections.shape[1:])
        return NodeBatch(projections, graph, self.norms[index], self.frequencies[index])
