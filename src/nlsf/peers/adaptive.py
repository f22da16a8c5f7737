"""Filters that fit their basis to the graph or the signal: `OptBasisGNN`, `Specformer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.spectra import content_digest, remembered
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers.base import DROPOUTS, Peer, PeerConfig, Scores
from nlsf.peers.matrices import Neighbourhood
from nlsf.peers.polynomials import combined
from nlsf.spectral import Spectrum, laplacian, partial_eigh
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.store.memory import Memory


@dataclass(frozen=True)
class OptBasisGNNConfig(PeerConfig):
    """Settings of `OptBasisGNN`.

    Attributes:
        K: the degree of the polynomials. Few labels need few degrees: see docs/baselines.md.
        basis_dropout: dropout between the first linear map and the filter.
    """

    input_dropout: float = 0.8
    K: int = 2
    basis_dropout: float = 0.8

    search: ClassVar = {
        "K": (2, 4, 6, 8, 10, 12, 14, 16, 18, 20),
        "hidden_channels": (64,),
        "input_dropout": DROPOUTS,
        "dropout": DROPOUTS,
        "basis_dropout": DROPOUTS,
    }


class OptBasisGNN(Peer):
    r"""A polynomial in the basis that is orthonormal for its signal (Guo and Wei, ICML 2023).

    With :math:`h = \mathrm{ReLU}(X W_1 + b_1)_{:, c}`, channel by channel, and :math:`\hat P` the
    symmetric normalised adjacency without loops:

    .. math::
        v_0 = \frac{h}{\|h\|}, \qquad
        \beta_{k+1} v_{k+1} = \hat P v_k - \langle \hat P v_k, v_k \rangle v_k
            - \langle \hat P v_k, v_{k-1} \rangle v_{k-1}, \qquad \|v_{k+1}\| = 1, \\
        Y = \Bigl[ \sum_{k=0}^{K} \alpha_{k, c} v_k \Bigr]_c W_2 + b_2

    These are the Lanczos vectors of the signal. The filter starts as a multiple of the identity. A
    basis that is exhausted goes on with zeros. The inner products run over all nodes: it is for one
    graph, not for a batch.
    """

    name, title = "optbasisgnn", "OptBasisGNN"
    formula = "Y = [sum_k alpha_kc v_k(P^, h_c)]_c W2 + b2, v_k orthonormal"
    reference = "Guo and Wei, ICML 2023"
    scaling = "O(K E d + N d^2)"
    for_levels = ("node",)
    preset: ClassVar = {"lr": 0.04, "psi_lr": 0.1, "weight_decay": 5e-3}
    config: OptBasisGNNConfig

    def __init__(self, config: OptBasisGNNConfig) -> None:
        super().__init__(config)
        self.first = FeatureLinear(config.in_channels, config.hidden_channels)
        self.basis_dropout = Dropout(config.basis_dropout)
        start = torch.zeros(config.K + 1, config.hidden_channels)
        start[0] = 1
        self.coefficients = nn.Parameter(start)
        self.dropout = Dropout(config.dropout)
        self.last = nn.Linear(config.hidden_channels, config.out_channels)

    def forward(self, x: Tensor | SparseSignal, graph: Neighbourhood) -> Tensor:
        """The scores."""
        h = self.basis_dropout(self.first(dropped(x, self.input_dropout)).relu())
        vectors = orthonormal_basis(graph.matrix("sym"), h, self.config.K)
        scores: Tensor = self.last(self.dropout(combined(self.coefficients, vectors)))
        return scores


def orthonormal_basis(P: SparseSignal, h: Tensor, K: int) -> list[Tensor]:
    """The vectors of `OptBasisGNN` for every channel.

    Args:
        P: (N, N), symmetric, of norm at most 1.
        h: (N, d).
        K: the degree.

    Returns:
        K + 1 tensors of shape (N, d), columns of norm 1, or 0 where the basis ends before.
    """
    last, before = _unit(h, 0.0), torch.zeros_like(h)
    vectors = [last]
    # What is shorter is rounding, and no direction.
    shortest = 1e3 * torch.finfo(h.dtype).eps
    for _ in range(K):
        rest = P @ last
        rest = rest - (rest * last).sum(0) * last
        rest = rest - (rest * before).sum(0) * before
        before, last = last, _unit(rest, shortest)
        vectors.append(last)
    return vectors


def _unit(h: Tensor, shortest: float) -> Tensor:
    """Columns of norm 1; 0, with gradient 0, for those that are not longer than ``shortest``."""
    square = h.square().sum(0)
    long = square > shortest**2
    return h * square.where(long, 1.0).rsqrt().where(long, 0.0)


_MAX_NODES = 6_000
_SCALE = 100.0
"""Stretches the eigenvalues, so that close ones have encodings that differ."""

_spectra = Memory()


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
        "dropout": DROPOUTS,
        "transformer_dropout": DROPOUTS[:6],
        "filter_dropout": DROPOUTS[:6],
    }

    def __post_init__(self) -> None:
        if self.hidden_channels % self.num_heads:
            raise ModelError(
                f"num_heads must divide hidden_channels: {self.num_heads} does not divide "
                f"{self.hidden_channels}."
            )


class Specformer(Peer):
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

    name, title = "specformer", "Specformer"
    formula = "H' = w_0 H + sum_m w_m V diag(Transformer(lam)_m) V^T H"
    reference = "Bo, Shi, Wang, Liao, ICLR 2023"
    scaling = "O(N^2 d) and N^3 once"
    for_levels = ("node",)
    preset: ClassVar = {"psi_lr": 1e-3}
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
        h: Tensor = self.scores_dropout(self.scores(dropped(x, self.input_dropout)))
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

    def solved() -> Spectrum:
        return partial_eigh(laplacian(edges, weights, size, "sym")).to(dtype=graph.dtype)

    return remembered(_spectra, key, solved)
