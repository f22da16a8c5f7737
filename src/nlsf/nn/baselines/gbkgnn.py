"""Two kernels, and a gate that chooses between them on every edge: `GBKGNN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from nlsf.nn.baselines.base import Peer, PeerConfig
from nlsf.nn.baselines.convolutions import Convolutions
from nlsf.nn.baselines.edge_sum import edge_sum
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, LAYERS, WIDTHS
from nlsf.nn.feature_linear import FeatureLinear
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class GBKGNNConfig(PeerConfig):
    """Settings of `GBKGNN`.

    Attributes:
        num_layers: how many convolutions.
    """

    num_layers: int = 2

    search: ClassVar = {"hidden_channels": WIDTHS, "dropout": DROPOUTS, "num_layers": LAYERS}


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


class GBKGNN(Convolutions):
    r"""Gated bi-kernel network (Du et al., WWW 2022).

    .. math::
        h_i' = \sigma\Bigl( W_f h_i + \frac{1}{|N(i)|} \sum_{j \in N(i)}
            \alpha_{ij} W_s h_j + (1 - \alpha_{ij}) W_d h_j \Bigr), \qquad
        \alpha_{ij} = \mathrm{sigmoid}\bigl( w_g^\top [h_i \Vert h_j] \bigr)

    The paper also trains the gate to tell whether two training nodes have the same class; here it
    learns from the loss of the task alone. The authors' code differs from the formula: it has
    :math:`h_i` in the place of :math:`h_j` behind :math:`W_d`, a leaky ReLU inside of the sigmoid,
    and for even widths the two kernels side by side, each of half the width.
    """

    together = False
    config: GBKGNNConfig

    def __init__(self, config: GBKGNNConfig) -> None:
        super().__init__(config, config.num_layers, GBKLayer)


PEER = Peer(
    "gbkgnn",
    "GBK-GNN",
    GBKGNN,
    GBKGNNConfig,
    formula="h_i' = s(W_f h_i + mean_j (a_ij W_s h_j + (1 - a_ij) W_d h_j))",
    reference="Du et al., WWW 2022",
    scaling="O(E d + N d^2)",
)
