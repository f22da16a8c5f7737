"""Attention over neighbours, beside the node itself: `GATSep`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from nlsf.nn.baselines.base import Peer
from nlsf.nn.baselines.residual import AttentionConfig, FeedForward, ResidualBody


@dataclass(frozen=True)
class GATSepConfig(AttentionConfig):
    """Settings of `GATSep`."""


class GATSepLayer(nn.Module):
    """A network of the node and, apart from it, the attended neighbours.

    Args:
        config: the settings.
    """

    def __init__(self, config: GATSepConfig) -> None:
        super().__init__()
        d, each = config.hidden_channels, config.head_channels
        self.conv = GATConv(d, each, heads=config.heads, add_self_loops=False, bias=False)
        self.network = FeedForward(d + each * config.heads, d, config.dropout)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """From (N, hidden_channels) to the same."""
        y: Tensor = self.network(torch.cat([h, self.conv(h, edge_index)], dim=-1))
        return y


class GATSep(ResidualBody):
    r"""Graph attention with ego and neighbours apart (Platonov et al., ICLR 2023).

    .. math::
        h_i' = h_i + \mathrm{MLP}\Bigl[ n_i \,\Big\Vert \sum_{j \in N(i)} \alpha_{ij} W n_j \Bigr],
        \qquad n_i = \mathrm{LayerNorm}(h_i)

    with the scores :math:`\alpha` of GAT over the neighbours alone, without the node itself:
    PyTorch Geometric's ``GATConv``. The authors' code has :math:`W n_i` in the place of
    :math:`n_i`, which the first map of the MLP makes up for. The weights of edges play no role.
    """

    config: GATSepConfig

    def __init__(self, config: GATSepConfig) -> None:
        super().__init__(config, (GATSepLayer(config) for _ in range(config.num_layers)))


PEER = Peer(
    "gat-sep",
    "GAT-sep",
    GATSep,
    GATSepConfig,
    formula="h_i' = h_i + MLP[h_i | sum_j alpha_ij W h_j]",
    reference="Platonov, Kuznedelev, Diskin, Babenko, Prokhorenkova, ICLR 2023",
    scaling="O(E d + N d^2)",
)
