"""No graph at all, the control: `MLP`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.scores import Scores
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class MLPConfig(PeerConfig):
    """Settings of `MLP`."""

    search: ClassVar = {"hidden_channels": WIDTHS, "dropout": DROPOUTS}


class MLP(Body):
    r"""Two linear layers, node by node, which never look at an edge.

    .. math::
        Y = \mathrm{ReLU}(X W_1) W_2

    At the graph level readout and head follow: whatever a method gains over this, it has from the
    graph.
    """

    config: MLPConfig

    def __init__(self, config: MLPConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        del graph
        scores: Tensor = self.scores(x)
        return scores


PEER = Peer(
    "mlp",
    "MLP",
    MLP,
    MLPConfig,
    formula="Y = s(X W1) W2",
    reference="control without a graph",
    scaling="O(N d^2)",
)
