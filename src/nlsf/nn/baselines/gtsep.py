"""Transformer layers on the edges of a graph, beside the node itself: `GTSep`."""

from __future__ import annotations

from dataclasses import dataclass

from nlsf.nn.baselines.base import Peer
from nlsf.nn.baselines.gt import transformer_parts
from nlsf.nn.baselines.residual import AttentionConfig, ResidualBody


@dataclass(frozen=True)
class GTSepConfig(AttentionConfig):
    """Settings of `GTSep`."""


class GTSep(ResidualBody):
    r"""Graph transformer with ego and neighbours apart (Platonov et al., ICLR 2023).

    .. math::
        g_i = h_i + W_O \Bigl[ n_i \,\Big\Vert \sum_{j \in N(i)} \alpha_{ij} V n_j \Bigr], \qquad
        h_i' = g_i + \mathrm{MLP}(\mathrm{LayerNorm}(g_i))

    with :math:`n_i = \mathrm{LayerNorm}(h_i)` and the scores :math:`\alpha` of `GT` over the
    neighbours alone, without the node itself.
    """

    config: GTSepConfig

    def __init__(self, config: GTSepConfig) -> None:
        super().__init__(config, transformer_parts(config, separate=True))


PEER = Peer(
    "gt-sep",
    "GT-sep",
    GTSep,
    GTSepConfig,
    formula="h_i' = h_i + W [h_i | sum_j softmax_j((Q h_i)^T K h_j / sqrt(m)) V h_j], "
    "then h + MLP(h)",
    reference="Platonov, Kuznedelev, Diskin, Babenko, Prokhorenkova, ICLR 2023",
    scaling="O(E d + N d^2)",
)
