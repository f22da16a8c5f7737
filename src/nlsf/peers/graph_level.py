"""Methods that make graphs of nodes by themselves: `DiffPool`, which learns clusters of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.utils import to_dense_batch

from nlsf.errors import ModelError
from nlsf.nn.layers.pooling import Readout
from nlsf.peers.base import DROPOUTS, Peer, PeerConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import SparseSignal


@dataclass(frozen=True)
class DiffPoolConfig(PeerConfig):
    """Settings of `DiffPool`.

    Attributes:
        clusters: of every pooling, one after the other.
        side_losses: the weight of the losses for links and for entropy.
    """

    clusters: tuple[int, ...] = (12, 3)
    side_losses: float = 1.0

    search: ClassVar = {
        "clusters": ((12,), (12, 3), (24, 6)),
        "hidden_channels": (32, 64, 128),
        "dropout": DROPOUTS,
        "side_losses": (0.0, 1.0),
    }

    def __post_init__(self) -> None:
        if not self.clusters or self.side_losses < 0:
            raise ModelError(
                "DiffPool needs at least one number of clusters, and side losses that are not "
                f"negative, not {self.clusters} and {self.side_losses}."
            )


class MeanConvolution(nn.Module):
    r"""A node and the mean of its neighbours, each through a linear map: GraphSAGE's layer.

    .. math::
        H' = \sigma\bigl( H W_1 + D^{-1} A H W_2 \bigr), \qquad \text{rows of unit length}

    Args:
        in_channels: of the input.
        out_channels: of the output.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.near = nn.Linear(in_channels, out_channels, bias=False)

    def forward(self, h: Tensor, mean: SparseSignal | Tensor) -> Tensor:
        """The layer, for (N, d) and a matrix, or (G, C, d) and one matrix a graph."""
        y: Tensor = self.own(h) + mean @ self.near(h)
        return nn.functional.normalize(y, dim=-1)


class Level(nn.Module):
    """The two networks of a pooling: embeddings, and scores of the clusters.

    Args:
        in_channels: of the input.
        width: of the embeddings.
        clusters: how many.
    """

    def __init__(self, in_channels: int, width: int, clusters: int) -> None:
        super().__init__()
        self.embed = nn.ModuleList(
            [MeanConvolution(in_channels, width), MeanConvolution(width, width)]
        )
        self.assign = MeanConvolution(in_channels, width)
        self.scores = nn.Linear(width, clusters)

    def forward(self, h: Tensor, mean: SparseSignal | Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (..., width), and the share of each cluster (..., clusters)."""
        shares = self.scores(self.assign(h, mean).relu()).softmax(-1)
        for layer in self.embed:
            h = layer(h, mean).relu()
        return h, shares


class DiffPool(Peer):
    r"""Hierarchical pooling that is learned (Ying et al., NeurIPS 2018).

    .. math::
        Z = \mathrm{GNN}(A, X), \quad S = \mathrm{softmax}(\mathrm{GNN}'(A, X)), \qquad
        X' = S^T Z, \quad A' = S^T A S

    The networks are those of GraphSAGE. The readouts of all levels are added up. Two side losses,
    :math:`\lVert A - S S^T \rVert^2 / n^2` and the entropy of the rows of :math:`S`, ask that
    neighbours share a cluster, and that clusters are chosen clearly; they act on the gradient, and
    do not show in the loss that is reported. Nothing of the size n x n is built.
    """

    name, title = "diffpool", "DiffPool"
    formula = "X' = S^T GNN(A, X), A' = S^T A S, S = softmax(GNN'(A, X))"
    reference = "Ying et al., NeurIPS 2018"
    scaling = "O(E (d + C) + N (d + C)^2), C clusters, each graph as large as its batch's largest"
    for_levels = ("graph",)
    config: DiffPoolConfig
    together = False
    pools = True

    def __init__(self, config: DiffPoolConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        widths = [config.in_channels] + [width] * (len(config.clusters) - 1)
        self.levels = nn.ModuleList(
            Level(d, width, count) for d, count in zip(widths, config.clusters, strict=True)
        )
        self.top = MeanConvolution(width, width)
        self.readout = Readout(config.readout)
        sizes = range(len(config.clusters) + 1)
        self.maps = nn.ModuleList(nn.Linear(width, config.out_channels) for _ in sizes)

    def forward(
        self,
        x: Tensor | SparseSignal,
        graph: Neighbourhood,
        batch: Tensor | None = None,
    ) -> Tensor:
        """The vectors (G, out_channels) of graphs."""
        h = self.input_dropout(x if isinstance(x, Tensor) else x.dense())
        if batch is None:
            batch = torch.zeros(x.shape[0], dtype=torch.int64)
        z, shares = self.levels[0](h, graph.matrix("row"))
        z, inside = to_dense_batch(z, batch)
        near, _ = to_dense_batch(graph.matrix("adjacency") @ shares, batch)
        shares, _ = to_dense_batch(shares, batch)
        squares = graph.edge_weight.square()
        weight = squares.new_zeros(len(z)).index_add(0, batch[graph.edge_index[0]], squares)
        h, A = shares.mT @ z, shares.mT @ near
        side = side_loss(shares, A, weight, inside.sum(1))
        flat = z[inside]
        out: Tensor = self.maps[0](self.readout(flat, batch, len(z)))
        for level, last in zip(self.levels[1:], self.maps[1:], strict=False):
            z, shares = level(h, row_mean(A))
            out = out + last(self.readout(z))
            finer = A
            h, A = shares.mT @ z, shares.mT @ finer @ shares
            nodes = torch.full((len(z),), z.shape[1])
            side = side + side_loss(shares, A, finer.square().sum((1, 2)), nodes)
        out = out + self.maps[-1](self.readout(self.top(h, row_mean(A)).relu()))
        pooled: Tensor = _WithLoss.apply(  # type: ignore[no-untyped-call]
            out, self.config.side_losses * side.mean()
        )
        return pooled


def row_mean(A: Tensor) -> Tensor:
    """D^-1 A of matrices (G, C, C); a row of zeros stays one."""
    return A / A.sum(-1, keepdim=True).clamp(min=1e-12)


def side_loss(shares: Tensor, pooled: Tensor, squares: Tensor, nodes: Tensor) -> Tensor:
    r"""The losses for links and entropy, (G,).

    The first is :math:`\lVert A - S S^T \rVert^2 = \lVert A \rVert^2 - 2 \mathrm{tr}(S^T A S) +
    \lVert S^T S \rVert^2`, over the number of pairs of nodes.

    Args:
        shares: S, (G, n, C), with rows of zeros where a graph has no node.
        pooled: S^T A S, (G, C, C).
        squares: the sum of the squares of A, (G,).
        nodes: how many each graph has, (G,).
    """
    trace = pooled.diagonal(dim1=1, dim2=2).sum(-1)
    links = squares - 2 * trace + (shares.mT @ shares).square().sum((1, 2))
    entropy = -torch.special.xlogy(shares, shares.clamp(min=1e-12)).sum((1, 2))
    loss: Tensor = links / nodes.square() + entropy / nodes
    return loss


class _WithLoss(torch.autograd.Function):
    """Hands on its input; in the backward pass a further loss has its part in the gradient."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, loss: Tensor) -> Tensor:
        ctx.save_for_backward(torch.ones_like(loss))
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor]:
        (one,) = ctx.saved_tensors
        return grads[0], one
