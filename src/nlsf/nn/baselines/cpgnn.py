"""Beliefs that a learned matrix of compatible classes carries along edges: `CPGNN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class CPGNNConfig(PeerConfig):
    """Settings of `CPGNN`.

    Attributes:
        rounds: how many times beliefs are passed on.
    """

    rounds: int = 2

    search: ClassVar = {"rounds": (1, 2), "hidden_channels": WIDTHS, "dropout": DROPOUTS}


class CPGNN(Body):
    r"""CPGNN with a multilayer perceptron as its prior (Zhu et al., AAAI 2021).

    .. math::
        B_0 = \mathrm{softmax}(\mathrm{MLP}(X)) - \tfrac{1}{C}, \qquad
        B_k = B_0 + A B_{k-1} \bar H

    with one row and one column of :math:`\bar H` a class: how much more, or less, than by chance a
    class is next to another.

    The training is simpler than the paper's, which trains the prior first, estimates
    :math:`\bar H` from its beliefs and the training labels, and goes on with two further losses:
    that of the prior itself, and the sums of the rows of :math:`\bar H`. Here there is no
    training before and no loss of the prior: everything learns from the loss of :math:`B_K` alone,
    :math:`\bar H` starts as :math:`I - 1/C`, classes next to their own, and its rows always have
    the sum 0.
    """

    config: CPGNNConfig

    def __init__(self, config: CPGNNConfig) -> None:
        super().__init__(config)
        self.input_dropout = Dropout(config.input_dropout)
        self.encoder = FeatureLinear(config.in_channels, config.hidden_channels)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)
        self.coefficients = nn.Parameter(torch.eye(config.out_channels))

    def compatibility(self) -> Tensor:
        r"""The matrix :math:`\bar H` (C, C), whose rows have the sum 0."""
        return self.coefficients - self.coefficients.mean(-1, keepdim=True)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """Prior and all rounds."""
        A, H = graph.matrix("adjacency"), self.compatibility()
        h = self.dropout(self.encoder(dropped(x, self.input_dropout)).relu())
        prior: Tensor = self.last(h).softmax(-1) - 1 / self.config.out_channels
        beliefs = prior
        for _ in range(self.config.rounds):
            beliefs = prior + A @ (beliefs @ H)
        return beliefs


PEER = Peer(
    "cpgnn",
    "CPGNN",
    CPGNN,
    CPGNNConfig,
    formula="B' = B0 + A B H, B0 = softmax(MLP(X)) - 1/C",
    reference="Zhu et al., AAAI 2021",
    scaling="O(K E C + N d^2), K rounds, C classes",
    levels=("node",),
)
