"""What shows if a graph helps at all: `MLP`, residual networks, and `majority`.

`ResNet` does not see the graph, `ResNetSGC` sees smoothed features, `ResNetAdj` also the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.data.dataset import Dataset, Lesson
from nlsf.nn.dropout import Dropout
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import (
    DROPOUTS,
    WIDTHS,
    FilteredScores,
    NodeRowsConfig,
    Peer,
    PeerConfig,
    Solver,
    SolverConfig,
    rows_of,
)
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral.kernels.sparse_signal import SparseSignal


class MLP(FilteredScores):
    r"""Two linear layers, node by node, which never look at an edge.

    .. math::
        Y = \mathrm{ReLU}(X W_1) W_2

    At the graph level readout and head follow: whatever a method gains over this, it has from the
    graph.
    """

    name, title = "mlp", "MLP"
    formula = "Y = s(X W1) W2"
    reference = "control without a graph"
    scaling = "O(N d^2)"

    def filtered(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """The scores as they are."""
        del graph
        return h


@dataclass(frozen=True)
class ResNetConfig(PeerConfig):
    """Settings of `ResNet`.

    Attributes:
        num_layers: residual layers.
    """

    num_layers: int = 2

    search: ClassVar = {
        "num_layers": (1, 2, 3, 4, 5),
        "hidden_channels": (*WIDTHS, 512),
        "dropout": DROPOUTS,
    }


class ResidualLayer(nn.Module):
    """Adds to its input what two linear maps make of it: the layer of the residual networks.

    Args:
        width: of input and output.
        dropout: after both maps.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
        self.first_dropout, self.last_dropout = Dropout(dropout), Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        """The sum."""
        inner = nn.functional.gelu(self.first_dropout(self.first(self.norm(h))))
        y: Tensor = h + self.last_dropout(self.last(inner))
        return y


class ResNet(Peer):
    r"""A residual network on the features alone (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma(X W), \qquad
        H^{(l+1)} = H^{(l)} + \sigma\bigl( \mathrm{LN}(H^{(l)}) W_1 \bigr) W_2, \qquad
        Y = \mathrm{LN}(H^{(L)}) W_3

    with GELU for :math:`\sigma`. The other methods of that paper have layers of this shape, which
    makes it their control.
    """

    name, title = "resnet", "ResNet"
    formula = "H' = H + s(LN(H) W1) W2"
    reference = "Platonov et al., ICLR 2023"
    scaling = "O(N d^2)"
    config: ResNetConfig

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        width = config.hidden_channels
        self.first = FeatureLinear(config.in_channels, width)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(
            ResidualLayer(width, config.dropout) for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """All layers."""
        start = self.embedding(dropped(x, self.input_dropout), graph)
        h = nn.functional.gelu(self.dropout(start))
        for layer in self.layers:
            h = layer(h)
        y: Tensor = self.last(self.norm(h))
        return y

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map in front, (N, hidden_channels)."""
        del graph
        h: Tensor = self.first(x)
        return h


@dataclass(frozen=True)
class ResNetSGCConfig(ResNetConfig):
    """Settings of `ResNetSGC`.

    Attributes:
        K: products with the adjacency matrix.
    """

    K: int = 5

    search: ClassVar = ResNetConfig.search


class ResNetSGC(ResNet):
    r"""`ResNet` with smoothed features beside those of the node (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma\bigl( [X, \tilde P^K X] W \bigr), \qquad
        \tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}
    """

    name, title = "resnet-sgc", "ResNet+SGC"
    formula = "H0 = s([X, P~^K X] W), then ResNet"
    reference = "Platonov et al., ICLR 2023"
    scaling = "O(K E d + N d^2)"
    config: ResNetSGCConfig

    def __init__(self, config: ResNetSGCConfig) -> None:
        super().__init__(config)
        self.smooth = FeatureLinear(config.in_channels, config.hidden_channels, bias=False)

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map of both kinds of features."""
        P = graph.matrix("gcn")
        smooth = self.smooth(x)  # first, for it has fewer channels than the features
        for _ in range(self.config.K):
            smooth = P @ smooth
        h: Tensor = self.first(x) + smooth
        return h


@dataclass(frozen=True)
class ResNetAdjConfig(ResNetConfig, NodeRowsConfig):
    """Settings of `ResNetAdj`."""

    search: ClassVar = ResNetConfig.search


class ResNetAdj(ResNet):
    r"""`ResNet` with rows of the adjacency matrix as further features (Platonov et al., ICLR 2023).

    .. math::
        H^{(0)} = \sigma\bigl( [X, A] W \bigr)

    Every node is a feature, so that the weights belong to one graph.
    """

    name, title = "resnet-adj", "ResNet+adj"
    formula = "H0 = s([X, A] W), then ResNet"
    reference = "Platonov et al., ICLR 2023"
    scaling = "O(E d + N d^2)"
    for_levels = ("node",)
    config: ResNetAdjConfig

    def __init__(self, config: ResNetAdjConfig) -> None:
        super().__init__(config)
        self.of_edges = FeatureLinear(config.num_nodes, config.hidden_channels, bias=False)

    def embedding(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The linear map of features and edges."""
        h: Tensor = self.first(x) + self.of_edges(rows_of(graph, self.config))
        return h


def majority(dataset: Dataset, lesson: Lesson, settings: SolverConfig, seed: int) -> Tensor:
    r"""The same output for every example.

    For classes :math:`\log \frac{n_c + 1}{n + C}`, where :math:`n_c` of the :math:`n` training
    examples have class c: the most frequent class has the largest one, and no class has minus
    infinity. For a regression, the mean of the training targets.

    Args:
        dataset: how many examples there are.
        lesson: its training labels are used, those of validation are not.
        settings: the number of classes.
        seed: is not used.
    """
    y = lesson.train_y
    if y.is_floating_point():
        row = y.mean(0)
    else:
        classes = settings.out_channels
        counts = torch.bincount(y, minlength=classes)
        row = ((counts + 1.0) / (len(y) + classes)).log()
    return row.repeat(dataset.num_examples, 1)


MAJORITY = Solver(
    "majority",
    "control: the most frequent training class, or the mean target",
    ("node", "graph", "signal"),
    SolverConfig,
    majority,
)
