"""Personalised PageRank after a network: `APPNP`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from nlsf.errors import ModelError
from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.scores import Scores
from nlsf.nn.baselines.search import DROPOUTS, WIDTHS
from nlsf.spectral.sparse_signal import SparseSignal


@dataclass(frozen=True)
class APPNPConfig(PeerConfig):
    """Settings of `APPNP`.

    Attributes:
        K: steps of the power iteration.
        alpha: probability to return to the start.
    """

    K: int = 10
    alpha: float = 0.1

    search: ClassVar = {
        "alpha": (0.1, 0.2, 0.5, 0.9),
        "hidden_channels": WIDTHS,
        "dropout": DROPOUTS,
    }

    def __post_init__(self) -> None:
        if self.K < 1 or not 0 < self.alpha <= 1:
            raise ModelError(f"APPNP needs K >= 1 and 0 < alpha <= 1, not {self.K}, {self.alpha}.")


class APPNP(Body):
    r"""Predict, then propagate (Gasteiger, Bojchevski, Guennemann, ICLR 2019).

    .. math::
        Z^{(k+1)} = (1 - \alpha) \tilde P Z^{(k)} + \alpha H, \qquad Z^{(0)} = H = \mathrm{MLP}(X)

    with :math:`\tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}`: a fixed low-pass polynomial.
    Edges have no dropout.
    """

    config: APPNPConfig

    def __init__(self, config: APPNPConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The propagated scores."""
        P, a = graph.matrix("gcn"), self.config.alpha
        h: Tensor = self.scores(x)
        z = h
        for _ in range(self.config.K):
            z = (1 - a) * (P @ z) + a * h
        return z


PEER = Peer(
    "appnp",
    "APPNP",
    APPNP,
    APPNPConfig,
    formula="Z' = (1 - a) P~ Z + a MLP(X)",
    reference="Gasteiger, Bojchevski, Guennemann, ICLR 2019",
    scaling="O(K E c + N d^2)",
)
