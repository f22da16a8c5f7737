"""A model for graphs: filters and a head: `GraphClassifier`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.attention import LaplacianAttention, Score, pair_of
from nlsf.nn.layers.graph import GraphNLSF
from nlsf.nn.layers.node import NodeNLSF
from nlsf.nn.layers.pooling import PoolingNLSF, ReadoutName
from nlsf.nn.layers.spectra import check_signal
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.models.parts import Operator, check_operators, normalization_of
from nlsf.nn.networks import Head
from nlsf.nn.plans.plan import Examples, Plan, PlanOptions, Signals
from nlsf.nn.plans.spectral import PreparedSet, SpectralBatches, bands_key, usual_plan
from nlsf.nn.responses.psi import Psi, ResponseName, Start
from nlsf.nn.responses.response import Sharing
from nlsf.spectral import Bands, DyadicBands, IndexBands
from nlsf.spectral.lens import FixedNodes, FixedNorms

_CHUNK = 256
"""Graphs that are padded to one size at a time, while they are prepared."""

_PROJECTIONS = 500_000_000
"""Numbers (nodes times bands times channels) that the projections of a data set may take: 2 GB in
single precision. With more, eigenvectors are multiplied in every step, in about twice the time."""


@dataclass(frozen=True)
class GraphClassifierConfig:
    """Everything that defines a `GraphClassifier`.

    Attributes:
        in_channels: features of a node.
        out_channels: classes, or targets of a regression.
        hidden_channels: outputs of each filter.
        level: ``"graph"`` (Phi) or ``"pooling"``.
        branches: ``"attention"`` between an index and a value branch, or only one of them.
        index_bands: bands of the index branch.
        value_bands: bands of the value branch.
        index_operator: what the index branch reads, ``"L"`` or ``"N"``.
        value_operator: what the value branch reads.
        complement: whether what the bands leave out is filtered too, or dropped (*lead*).
        score: the attention's scores.
        channels: linear map of the features before the norms of Phi; ``None`` for none.
        standardize: batch normalisation of the norms of Phi, and in the head.
        node_norm: batch normalisation at the pooling level: of the nodes before the activation, and
            of the readout, where it replaces a linear map.
        readout: of the pooling level, with ``p``.
        p: of the readout ``"lp"``.
        norm: the p of the norm in the filters.
        response: form of the response of the pooling level; ``sharing``, ``a`` and ``start`` too.
        head: widths of the last network (the paper's: 256, 128, 64).
        dropout: in the head.
    """

    in_channels: int
    out_channels: int
    hidden_channels: int = 64
    level: Literal["graph", "pooling"] = "graph"
    branches: Literal["attention", "index", "value"] = "attention"
    index_bands: Bands = field(default_factory=lambda: IndexBands(8))
    value_bands: Bands = field(default_factory=DyadicBands)
    index_operator: Operator = "L"
    value_operator: Operator = "N"
    complement: bool = True
    score: Score = "scalar"
    channels: int | None = 32
    standardize: bool = True
    node_norm: bool = False
    readout: ReadoutName = "mean"
    p: float = 2.0
    norm: float = 2.0
    response: ResponseName = "diagonal"
    sharing: Sharing = "shared"
    a: float = 0.0
    start: Start = field(default_factory=Start)
    head: tuple[int, ...] = (256, 128, 64)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.level not in ("graph", "pooling"):
            raise ModelError(f"level must be 'graph' or 'pooling', not {self.level!r}.")
        if self.branches not in ("attention", "index", "value"):
            raise ModelError(
                f"branches must be 'attention', 'index' or 'value', not {self.branches!r}."
            )
        check_operators(self.index_operator, self.value_operator)


class GraphClassifier(nn.Module):
    """Graph-level or pooling filters and a head, for one output vector a graph.

    Args:
        config: a `GraphClassifierConfig`, or leave it out and pass its fields by name.

    Shapes:
        - x: (N, in_channels), all nodes of all graphs, or (..., N, in_channels), many signals on
          one graph
        - output: (G, out_channels), or (..., out_channels): logits, or targets of a regression
    """

    def __init__(self, config: GraphClassifierConfig | None = None, **fields: Any) -> None:
        super().__init__()
        self.config = c = GraphClassifierConfig(**fields) if config is None else config
        branches = []
        if c.branches != "value":
            branches.append(_branch(c, c.index_bands, c.index_operator))
        if c.branches != "index":
            branches.append(_branch(c, c.value_bands, c.value_operator))
        self.filter: LaplacianAttention | GraphNLSF | PoolingNLSF = branches[0]
        if c.branches == "attention":
            self.filter = LaplacianAttention(branches[0], branches[1], c.score)
        sizes = [self.filter.out_channels, *c.head, c.out_channels]
        self.head = Head(sizes, dropout=c.dropout, batch_norm=c.standardize)

    def reset_parameters(self) -> None:
        """Draws new parameters."""
        self.filter.reset_parameters()
        self.head.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: Any = None,
    ) -> Tensor:
        """The outputs of every graph.

        Args:
            x: features.
            edge_index: (2, E).
            edge_weight: (E,).
            batch: (N,), the graph of each node.
            spectrum: instead of ``edge_index``; with attention a pair, of the index branch
                and of the value branch.
        """
        options = {} if spectrum is None else {"spectrum": spectrum}
        out: Tensor = self.head(self.filter(x, edge_index, edge_weight, batch, **options))
        return out

    def plan(
        self, dataset: Examples, rows: Tensor | None = None, **options: Unpack[PlanOptions]
    ) -> Plan:
        """Prepared graphs where `prepare` allows it, else batches; arguments as in `plan_of`."""
        plan = usual_plan(self, dataset, **options)
        pooling = self.config.level == "pooling"
        if not self.can_prepare:
            return plan
        if isinstance(plan, Signals) and not pooling:
            return PreparedSet(self.prepare(plan.signals, **plan.graph))
        if not isinstance(plan, SpectralBatches):
            return plan
        numbers = dataset.num_features * sum(branch.n_bands for branch in plan.branches)
        if pooling and numbers * sum(map(len, plan.features)) > _PROJECTIONS:
            return plan
        options["progress"]("Preparing the graphs")
        chunks = []
        for some in torch.arange(len(plan.features)).split(_CHUNK):
            x, graph = plan.batch(some)
            chunks.append(self.prepare(x, **graph))
        joined: list[Any] = [type(parts[0]).cat(parts) for parts in zip(*chunks, strict=True)]
        return PreparedSet(joined, at_once=64 if pooling else PreparedSet.at_once)

    @property
    def plan_key(self) -> Hashable:
        """What of the settings `plan` depends on."""
        return self.can_prepare, self.config.level, bands_key(self)

    @property
    def can_prepare(self) -> bool:
        """Whether the fast path of `prepare` is open to this model."""
        c = self.config
        if c.level == "graph":
            bands = (layer.bands for layer in self.modules() if isinstance(layer, SpectralLayer))
            return c.norm == 2 and all(one.exact for one in bands)
        return all(part.form == "diagonal" for part in self.modules() if isinstance(part, Psi))

    def prepare(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: Any = None,
    ) -> tuple[FixedNorms | FixedNodes, ...]:
        """Prepares the fast path, where a training step does not see the graphs again.

        `forward_prepared` then gives the same numbers as ``forward``, at the speed of an MLP; it
        takes mini-batches, ``[p[index] for p in prepared]``. Arguments as in ``forward``, for many
        graphs, or at the graph level for many signals (S, N, in_channels) on one graph.
        """
        c = self.config
        if not self.can_prepare:
            raise ModelError(
                "The fast path needs level='graph' with norm=2 and bands that are not polynomial, "
                "or level='pooling' with a response of the diagonal form (not 'full')."
            )
        check_signal(x, c.in_channels, values=False)
        given = pair_of(spectrum) if c.branches == "attention" else (spectrum,)
        pairs = zip(self._branches(), given, strict=True)
        return tuple(b.prepare(x, edge_index, edge_weight, batch, spectrum=s) for b, s in pairs)

    def forward_prepared(self, prepared: Sequence[Any]) -> Tensor:
        """The outputs (G, out_channels) of prepared graphs, or of a batch of them."""
        branches: list[Any] = self._branches()
        views = [branch.of_prepared(one) for branch, one in zip(branches, prepared, strict=True)]
        outputs = [branch.respond(view) for branch, view in zip(branches, views, strict=True)]
        y: Tensor = outputs[0]
        if isinstance(self.filter, LaplacianAttention):
            norms = [branch.norms(view) for branch, view in zip(branches, views, strict=True)]
            y = self.filter.combine(self.filter.weights(norms), outputs)
        out: Tensor = self.head(y)
        return out

    def _branches(self) -> list[GraphNLSF | PoolingNLSF]:
        layer = self.filter
        branches = [layer.first, layer.second] if isinstance(layer, LaplacianAttention) else [layer]
        return [branch for branch in branches if not isinstance(branch, NodeNLSF)]


def _branch(c: GraphClassifierConfig, bands: Bands, operator: Operator) -> GraphNLSF | PoolingNLSF:
    normalization = normalization_of(operator)
    if c.level == "graph":
        return GraphNLSF(
            c.in_channels,
            c.hidden_channels,
            bands,
            normalization,
            complement=c.complement,
            norm_p=c.norm,
            channels=c.channels,
            batch_norm=c.standardize,
        )
    return PoolingNLSF(
        c.in_channels,
        c.hidden_channels,
        bands,
        normalization,
        hidden_channels=c.hidden_channels,
        readout=c.readout,
        p=c.p,
        depth=0 if c.node_norm else 1,
        batch_norm=c.node_norm,
        complement=c.complement,
        norm_p=c.norm,
        response=c.response,
        sharing=c.sharing,
        a=c.a,
        start=c.start,
    )
