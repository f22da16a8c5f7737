"""Transformer layers on the edges of a graph: `GT`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import TransformerConv
from torch_geometric.utils import add_remaining_self_loops

from nlsf.nn.baselines.base import Peer
from nlsf.nn.baselines.residual import AttentionConfig, FeedForward, ResidualBody
from nlsf.nn.dropout import Dropout


@dataclass(frozen=True)
class GTConfig(AttentionConfig):
    """Settings of `GT`."""


class GraphAttention(nn.Module):
    """Scaled dot products between nodes that an edge joins, then a linear map.

    Args:
        config: the settings.
        separate: whether the node is put beside its attended neighbours, and not among them.
    """

    def __init__(self, config: AttentionConfig, separate: bool) -> None:
        super().__init__()
        self.separate = separate
        d, each = config.hidden_channels, config.head_channels
        self.conv = TransformerConv(d, each, heads=config.heads, bias=False, root_weight=False)
        # PyTorch Geometric makes these parameters also where it does not use them.
        self.conv.lin_skip = None
        for part in (self.conv.lin_query, self.conv.lin_key, self.conv.lin_value):
            part.bias = None  # older versions have them whatever one asks for
        self.lin = nn.Linear(each * config.heads + (d if separate else 0), d)
        self.dropout = Dropout(config.dropout)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """From (N, hidden_channels) to the same."""
        if self.separate:
            near = torch.cat([h, self.conv(h, edge_index)], dim=-1)
        else:
            near = self.conv(h, add_remaining_self_loops(edge_index, num_nodes=len(h))[0])
        y: Tensor = self.dropout(self.lin(near))
        return y


def transformer_parts(config: AttentionConfig, separate: bool) -> Iterator[nn.Module]:
    """Attention and network of every layer, in turn."""
    d = config.hidden_channels
    for _ in range(config.num_layers):
        yield GraphAttention(config, separate)
        yield FeedForward(d, d, config.dropout)


class GT(ResidualBody):
    r"""Graph transformer (Shi et al., IJCAI 2021; as in Platonov et al., ICLR 2023).

    .. math::
        g_i = h_i + W_O \sum_{j \in N(i) \cup i} \alpha_{ij} V n_j, \quad
        \alpha_{ij} = \mathrm{softmax}_j \frac{(Q n_i)^\top K n_j}{\sqrt m}, \quad
        h_i' = g_i + \mathrm{MLP}(\mathrm{LayerNorm}(g_i))

    with :math:`n_i = \mathrm{LayerNorm}(h_i)` and heads of m channels, side by side. The attention
    is PyTorch Geometric's ``TransformerConv``, here without biases in Q, K and V. The weights of
    edges play no role.
    """

    config: GTConfig

    def __init__(self, config: GTConfig) -> None:
        super().__init__(config, transformer_parts(config, separate=False))


PEER = Peer(
    "gt",
    "GT",
    GT,
    GTConfig,
    formula="h_i' = h_i + W sum_j softmax_j((Q h_i)^T K h_j / sqrt(m)) V h_j, then h + MLP(h)",
    reference="Shi et al., IJCAI 2021",
    scaling="O(E d + N d^2)",
)
