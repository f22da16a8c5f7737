"""The control of what the nonlinearity is worth: `LinearNLSF`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.scores import Scores
from nlsf.nn.sparse_signal import SparseSignal
from nlsf.nn.spectra import projector_for
from nlsf.nn.start import Start
from nlsf.spectral import Bands, DyadicBands, Projector
from nlsf.spectral.thin import thin_product


@dataclass(frozen=True)
class LinearNLSFConfig(PeerConfig):
    """Settings of `LinearNLSF`; the defaults are those of NLSFs on homophilous data.

    Attributes:
        bands: the bands, on N.
        self_loops: add self loops to N.
        start: the gains before training.
    """

    input_dropout: float = 0.8
    bands: Bands = field(default_factory=DyadicBands)
    self_loops: bool = True
    start: Start = field(default_factory=lambda: Start("ppr"))

    search: ClassVar = {
        "hidden_channels": (64, 128),
        "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    }


class LinearNLSF(Body):
    r"""The value branch of an NLSF with a constant response: a linear filter, band by band.

    .. math::
        Y_{:, c} = \sum_{j=1}^{B} h_0(\lambda_j) (1 + r_{j, c}) P_j \, \mathrm{MLP}(X)_{:, c}

    Instead of :math:`\Psi(\|P_1 X\|, \dots, \|P_B X\|)` there are the free numbers r, 0 at the
    start. What an NLSF gains over this, it has from looking at the signal. The spectrum of each
    graph is computed once and remembered.
    """

    config: LinearNLSFConfig

    def __init__(self, config: LinearNLSFConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)
        # The complement, that is what the bands leave out, is the last of them.
        self.coefficients = nn.Parameter(torch.zeros(config.bands.n_bands + 1, config.out_channels))

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        h: Tensor = self.scores(x)
        projector = projector_for(
            h,
            self.config.bands,
            True,
            edge_index=graph.edge_index,
            edge_weight=graph.edge_weight,
            normalization="sym",
            self_loops=self.config.self_loops,
        )
        start = self.config.start.gains(projector.frequencies).to(h.dtype)
        return filtered(projector, h, start.unsqueeze(1) * (1 + self.coefficients))


def filtered(projector: Projector, h: Tensor, gains: Tensor) -> Tensor:
    r"""The sum of projections times gains, :math:`\sum_j g_{j, c} P_j h_c`.

    Args:
        projector: the bands of one graph.
        h: (N, d).
        gains: (B, d).
    """
    columns = projector.decompose(h, check_finite=False).coefficients
    explicit = projector.spread(gains)
    if projector.rest is None:
        return thin_product(projector.vectors, explicit * columns)
    rest = gains[projector.rest]
    return rest * h + thin_product(projector.vectors, (explicit - rest) * columns)


PEER = Peer(
    "linear-nlsf",
    "Linear NLSF",
    LinearNLSF,
    LinearNLSFConfig,
    formula="Y_c = sum_j h0(lam_j) (1 + r_jc) P_j MLP(X)_c",
    reference="control: an NLSF with a constant response",
    scaling="O(N k c + N d^2) and k eigenpairs of N once",
    levels=("node",),
    training={"weight_decay": 2e-3, "psi_lr": 2e-3, "psi_weight_decay": 0.01},
)
