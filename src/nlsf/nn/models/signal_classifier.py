"""A model for many signals on one graph: `SignalClassifier`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.mixing_nlsf import MixingNLSF
from nlsf.nn.models.coarsening import Pyramid, halved
from nlsf.nn.models.head import Head
from nlsf.nn.psi import ResponseName
from nlsf.nn.response import Sharing
from nlsf.nn.spectra import Memo, content_digest
from nlsf.spectral import Bands, UniformBands
from nlsf.spectral.projector import on_nodes

_MAX_HALVINGS = 16
_pyramids = Memo(4)


@dataclass(frozen=True)
class SignalClassifierConfig:
    """Everything that defines a `SignalClassifier`.

    Attributes:
        in_channels: values of a signal at a node.
        out_channels: classes, or targets of a regression.
        num_nodes: of the graph.
        widths: outputs of each filter, one filter a level.
        bands: of all filters.
        response: form of their response; ``"constant"`` makes them linear.
        sharing: of the response.
        a: exponent of the norms in the filters.
        hops: degree of the polynomial that the maps of the filters are.
        halvings: how often the graph is halved after a filter.
        head: widths of the last network, which sees all channels of all nodes.
        dropout: before the head and in it.
        standardize: batch normalisation of channels, and in the head.
    """

    in_channels: int
    out_channels: int
    num_nodes: int
    widths: tuple[int, ...] = (24, 48)
    bands: Bands = field(default_factory=lambda: UniformBands(23))
    response: ResponseName = "diagonal"
    sharing: Sharing = "shared"
    a: float = 0.0
    hops: int = 8
    halvings: int = 2
    head: tuple[int, ...] = (256,)
    dropout: float = 0.3
    standardize: bool = True

    search: ClassVar[dict[str, tuple[Any, ...]]] = {
        "widths": ((16, 32), (24, 48), (32, 64)),
        "a": (0.0, 0.5, 1.0),
        "hops": (3, 5, 8),
        "dropout": (0.0, 0.3, 0.5),
    }

    def __post_init__(self) -> None:
        if not self.widths:
            raise ModelError("widths must name the width of at least one filter.")
        if not 1 <= self.halvings <= _MAX_HALVINGS:
            raise ModelError(f"halvings must be 1 to {_MAX_HALVINGS}, not {self.halvings}.")


class SignalClassifier(nn.Module):
    """Filters with pooling in between, then a network that sees every node.

    Each level filters, adds a bias and applies ReLU; then one linear map of the values of all
    nodes of a cluster, with batch normalisation and ReLU, makes a node of the next level. It is the
    architecture of Defferrard et al., NeurIPS 2016, with nonlinear filters, and with that map in
    the place of their maximum: a filter cannot tell left from right on a grid, the map can, since
    it knows the nodes of a cluster by their order. It and the head, which has weights for every
    place, make the model belong to one graph.

    Args:
        config: a `SignalClassifierConfig`, or leave it out and pass its fields by name.

    Shapes:
        - x: (..., N, in_channels)
        - output: (..., out_channels): logits, or targets of a regression
    """

    def __init__(self, config: SignalClassifierConfig | None = None, **fields: Any) -> None:
        super().__init__()
        self.config = c = SignalClassifierConfig(**fields) if config is None else config
        sizes = zip((c.in_channels, *c.widths), c.widths, strict=False)
        self.filters = nn.ModuleList(
            MixingNLSF(
                before,
                after,
                c.bands,
                c.response,
                c.hops,
                c.a,
                sharing=c.sharing,
            )
            for before, after in sizes
        )
        self.biases = nn.ParameterList(torch.zeros(width) for width in c.widths)
        self.maps = nn.ModuleList(
            nn.Linear(2**c.halvings * width, width, bias=not c.standardize) for width in c.widths
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width) if c.standardize else nn.Identity() for width in c.widths
        )
        self.dropout = Dropout(c.dropout)
        places = halved(c.num_nodes, len(c.widths) * c.halvings)
        self.head = Head(
            [places * c.widths[-1], *c.head, c.out_channels],
            dropout=c.dropout,
            standardize=c.standardize,
        )

    def reset_parameters(self) -> None:
        """Draws new parameters and forgets the running statistics."""
        for bias in self.biases:
            nn.init.zeros_(bias)
        for part in (*self.filters, *self.maps, *self.norms, self.head):
            if not isinstance(part, nn.Identity):
                part.reset_parameters()

    def pyramid(
        self,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        *,
        cache: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> Pyramid:
        """The graph at all levels; compute it once.

        Args:
            edge_index: (2, E), undirected.
            edge_weight: (E,).
            cache: keep spectra on disk.
            dtype: of the signals.
        """
        c = self.config
        return Pyramid.of(
            edge_index,
            edge_weight,
            c.num_nodes,
            bands=c.bands,
            levels=len(c.widths),
            halvings=c.halvings,
            cache=cache,
            dtype=dtype,
        )

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        spectrum: Pyramid | None = None,
    ) -> Tensor:
        """The outputs of every signal.

        Args:
            x: the signals.
            edge_index: (2, E), undirected; its pyramid is computed once and remembered.
            edge_weight: (E,).
            spectrum: instead of ``edge_index``: what `pyramid` gave.
        """
        if spectrum is None:
            if edge_index is None:
                raise ModelError("The model needs the graph: pass edge_index, or spectrum.")
            spectrum = self._remembered(edge_index, edge_weight, x.dtype)
        x = on_nodes(x, self.config.num_nodes)[..., spectrum.order, :]
        parts = zip(self.filters, self.biases, self.maps, self.norms, strict=True)
        for (layer, bias, join, norm), projector in zip(parts, spectrum.projectors, strict=True):
            y = join(spectrum.gather((layer(x, spectrum=projector) + bias).relu()))
            x = norm(y.flatten(0, -2)).reshape(y.shape).relu()
        out: Tensor = self.head(self.dropout(x.flatten(-2)))
        return out

    def _remembered(
        self, edge_index: Tensor, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> Pyramid:
        c = self.config
        weight = None if edge_weight is None else content_digest(edge_weight)
        shape = (c.num_nodes, c.bands, len(c.widths), c.halvings, dtype)
        found: Pyramid = _pyramids.get(
            (content_digest(edge_index), weight, *shape),
            lambda: self.pyramid(edge_index, edge_weight, cache=False, dtype=dtype),
        )
        return found
