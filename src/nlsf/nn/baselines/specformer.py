"""A transformer on eigenvalues: `Specformer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from nlsf.errors import ModelError
from nlsf.nn.baselines.base import Body, Peer, PeerConfig
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.scores import Scores
from nlsf.nn.dropout import Dropout
from nlsf.nn.spectra import Memo, content_digest
from nlsf.spectral import Spectrum, laplacian, partial_eigh
from nlsf.spectral.sparse_signal import SparseSignal

_MAX_NODES = 6_000
_SCALE = 100.0
"""Stretches the eigenvalues, so that close ones have encodings that differ."""

_spectra = Memo(4)


@dataclass(frozen=True)
class SpecformerConfig(PeerConfig):
    """Settings of `Specformer`; ``hidden_channels`` is also the width of the transformer.

    Attributes:
        num_heads: of the attention, and as many learned filters; must divide the width.
        num_layers: how often the filters are applied.
        transformer_dropout: dropout inside of the transformer.
        filter_dropout: dropout on the filtered signals.
    """

    hidden_channels: int = 32
    input_dropout: float = 0.6
    dropout: float = 0.6
    num_heads: int = 2
    num_layers: int = 2
    transformer_dropout: float = 0.2
    filter_dropout: float = 0.2

    search: ClassVar = {
        "num_heads": (1, 2, 4),
        "num_layers": (1, 2),
        "hidden_channels": (32,),
        "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "transformer_dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
        "filter_dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    }

    def __post_init__(self) -> None:
        if self.hidden_channels % self.num_heads:
            raise ModelError(
                f"num_heads must divide hidden_channels: {self.num_heads} does not divide "
                f"{self.hidden_channels}."
            )


class Specformer(Body):
    r"""Filters whose gains a transformer reads off the whole spectrum (Bo et al., ICLR 2023).

    .. math::
        (\lambda'_1, \dots, \lambda'_M) = \mathrm{Decoder}(\mathrm{Transformer}(\rho(\lambda))),
        \qquad
        H' = w_0 \odot H + \sum_{m=1}^{M} w_m \odot V \mathrm{diag}(\lambda'_m) V^T H

    for the eigenpairs of N, :math:`H = \mathrm{MLP}(X)` at first, and channel weights w that start
    as ones. The transformer runs over the distinct eigenvalues, each with the weight of its
    multiplicity: the same attention, and equal eigenvalues keep equal gains. It needs all
    eigenpairs, so the graph may have at most 6,000 nodes.
    """

    config: SpecformerConfig
    together = False

    def __init__(self, config: SpecformerConfig) -> None:
        super().__init__(config)
        self.scores = Scores(config)
        self.scores_dropout = Dropout(config.dropout)
        self.coefficients = EigenvalueTransformer(config)
        shape = (config.num_heads + 1, 1, config.out_channels)
        self.weights = nn.ParameterList(torch.ones(shape) for _ in range(config.num_layers))
        self.dropouts = nn.ModuleList(
            Dropout(config.filter_dropout) for _ in range(config.num_layers)
        )

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The filtered scores."""
        spectrum = spectrum_of(graph)
        V = spectrum.vectors
        values = spectrum.eigenspace_frequencies.to(V.dtype)
        gains = self.coefficients(values, spectrum.multiplicities.to(V.dtype))
        gains = gains[:, spectrum.eigenspaces].unsqueeze(-1)
        h: Tensor = self.scores_dropout(self.scores(x))
        for weight, dropout in zip(self.weights, self.dropouts, strict=True):
            # All heads side by side are one product.
            heads = (V @ (gains * (V.T @ h)).movedim(0, 1).flatten(1)).unflatten(
                1, (-1, h.shape[1])
            )
            terms = torch.cat([h.unsqueeze(0), heads.movedim(1, 0)])
            h = (dropout(terms) * weight).sum(0)
        return h


class EigenvalueTransformer(nn.Module):
    r"""From eigenvalues to new ones: encoding, one transformer block, a decoder of M heads.

    .. math::
        \rho(\lambda)_{2i} = \sin(100 \lambda / 10000^{2i/d}), \qquad
        \rho(\lambda)_{2i+1} = \cos(100 \lambda / 10000^{2i/d})

    Args:
        config: gives width, heads and dropout.
    """

    frequencies: Tensor

    def __init__(self, config: SpecformerConfig) -> None:
        super().__init__()
        d, p = config.hidden_channels, config.transformer_dropout
        self.num_heads = config.num_heads
        powers = torch.arange(0, d, 2) / d
        self.register_buffer("frequencies", _SCALE * 10_000.0**-powers, persistent=False)
        self.encode = nn.Linear(1 + 2 * len(powers), d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        # A bias of keys would change nothing: it cancels in the softmax.
        self.query = nn.Linear(d, d)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.mix = nn.Linear(d, d)
        self.feed = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))
        self.dropouts = nn.ModuleList(Dropout(p) for _ in range(2))
        self.decode = nn.Linear(d, config.num_heads)

    def forward(self, values: Tensor, multiplicities: Tensor) -> Tensor:
        """The new eigenvalues (M, k) of distinct ones (k,) with their multiplicities (k,)."""
        angles = values.unsqueeze(1) * self.frequencies
        z = self.encode(torch.cat([values.unsqueeze(1), angles.sin(), angles.cos()], dim=1))
        z = z + self.dropouts[0](self._attend(self.norms[0](z), multiplicities))
        z = z + self.dropouts[1](self.feed(self.norms[1](z)))
        new: Tensor = self.decode(z).T
        return new

    def _attend(self, z: Tensor, multiplicities: Tensor) -> Tensor:
        """Attention between all eigenvalues: m equal keys are one with log m added to its score."""
        q, k, v = (
            f(z).unflatten(1, (self.num_heads, -1)).movedim(1, 0)
            for f in (self.query, self.key, self.value)
        )
        weight = multiplicities.log().expand(1, 1, len(z), len(z))
        heads = scaled_dot_product_attention(q[None], k[None], v[None], weight)[0]
        mixed: Tensor = self.mix(heads.movedim(0, 1).flatten(1))
        return mixed


def spectrum_of(graph: Neighbourhood) -> Spectrum:
    """All eigenpairs of N in the dtype of the graph, remembered.

    Raises:
        ModelError: if the graph has more than 6,000 nodes.
    """
    if graph.num_nodes > _MAX_NODES:
        raise ModelError(
            f"A Specformer needs all eigenpairs, and so at most {_MAX_NODES:,} nodes, not "
            f"{graph.num_nodes:,}: choose another model."
        )
    edges, weights, size = graph.edge_index, graph.edge_weight, graph.num_nodes
    key = (content_digest(edges), content_digest(weights), size, graph.dtype)

    def compute() -> Spectrum:
        return partial_eigh(laplacian(edges, weights, size, "sym")).to(dtype=graph.dtype)

    found: Spectrum = _spectra.get(key, compute)
    return found


PEER = Peer(
    "specformer",
    "Specformer",
    Specformer,
    SpecformerConfig,
    formula="H' = w_0 H + sum_m w_m V diag(Transformer(lam)_m) V^T H",
    reference="Bo, Shi, Wang, Liao, ICLR 2023",
    scaling="O(N^2 d) and N^3 once",
    levels=("node",),
    training={"psi_lr": 1e-3},
)
