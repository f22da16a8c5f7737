"""Two kernels, and a gate that chooses between them on every edge: `GBKGNN`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.edge_sum import edge_sum
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.nn.sparse_signal import SparseSignal


@dataclass(frozen=True)
class GBKGNNConfig(PeerConfig):
    """Settings of `GBKGNN`.

    Attributes:
        num_layers: how many convolutions.
    """

    num_layers: int = 2

    search: ClassVar = {"hidden_channels": (16, 64), "num_layers": (1, 2, 3)}


class GBKLayer(nn.Module):
    """One convolution of `GBKGNN`.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = FeatureLinear(in_channels, out_channels)
        self.similar = FeatureLinear(in_channels, out_channels, bias=False)
        self.different = FeatureLinear(in_channels, out_channels, bias=False)
        # The parts of the gate that meet h_i and h_j; a bias counts once.
        self.receiver = FeatureLinear(in_channels, 1)
        self.sender = FeatureLinear(in_channels, 1, bias=False)

    def forward(self, h: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """From (N, in_channels) to (N, out_channels)."""
        row, column = graph.edge_index
        gate = (self.receiver(h)[row] + self.sender(h)[column]).squeeze(-1).sigmoid()
        share = graph.edge_weight / graph.degree[row]
        # a W_s + (1 - a) W_d is W_d + a (W_s - W_d): one sum with learned weights, not two.
        other = self.different(h)
        mixed = edge_sum(gate * share, self.similar(h) - other, graph)
        y: Tensor = self.own(h) + graph.matrix("row") @ other + mixed
        return y


class GBKGNN(Body):
    r"""Gated bi-kernel network (Du et al., WWW 2022, equations 4 and 5).

    .. math::
        h_i' = \sigma\Bigl( W_f h_i + \frac{1}{|N(i)|} \sum_{j \in N(i)}
            \alpha_{ij} W_s h_j + (1 - \alpha_{ij}) W_d h_j \Bigr), \qquad
        \alpha_{ij} = \mathrm{sigmoid}\bigl( w_g^\top [h_i \Vert h_j] \bigr)

    The paper also trains the gate to tell whether two training nodes have the same class; here it
    learns from the loss of the task alone.
    """

    together = False
    config: GBKGNNConfig

    def __init__(self, config: GBKGNNConfig) -> None:
        super().__init__(config)
        inner = [config.hidden_channels] * (config.num_layers - 1)
        sizes = [config.in_channels, *inner, config.out_channels]
        self.input_dropout = Dropout(config.input_dropout)
        self.layers = nn.ModuleList(GBKLayer(a, b) for a, b in pairwise(sizes))
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in inner)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        h: Tensor = self.layers[0](dropped(x, self.input_dropout), graph)
        for layer, dropout in zip(self.layers[1:], self.dropouts, strict=True):
            h = layer(dropout(h.relu()), graph)
        return h


PEER = Peer(
    "gbkgnn",
    "GBK-GNN",
    GBKGNN,
    GBKGNNConfig,
    formula="h_i' = s(W_f h_i + mean_j (a_ij W_s h_j + (1 - a_ij) W_d h_j))",
    reference="Du et al., WWW 2022",
    scaling="O(E d + N d^2)",
)
