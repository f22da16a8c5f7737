"""A model for nodes: encoder, filters, decoder: `NodeClassifier`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.attention import LaplacianAttention, Score, pair_of
from nlsf.nn.layers.node import NodeNLSF
from nlsf.nn.layers.spectra import check_signal
from nlsf.nn.layers.spectral_layer import leave_values_unchecked, require_real, spectral_branches
from nlsf.nn.layers.stack import NLSFStack
from nlsf.nn.models.parts import Operator, check_operators, normalization_of
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.nn.plans.plan import Examples, Plan, PlanOptions, WholeGraph
from nlsf.nn.plans.spectral import LabelledRows, bands_key, maybe_sparse, usual_plan
from nlsf.nn.responses.psi import ResponseName, Start
from nlsf.nn.responses.response import Mode, Sharing
from nlsf.spectral import Bands, DyadicBands, IndexBands, View
from nlsf.spectral.eigen.cache import SpectrumCache
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.spectral.lens import FixedBands, FixedRows


@dataclass(frozen=True)
class NodeClassifierConfig:
    """Everything that defines a `NodeClassifier`.

    Attributes:
        in_channels: features of a node.
        out_channels: classes, or targets of a regression.
        hidden_channels: width between encoder and decoder; without an encoder, of the filters. A
            linear encoder of class scores has nothing hidden, and does not look at it.
        encoder: ``"mlp"`` (two layers, breaks the functional symmetry), ``"linear"`` (without bias,
            keeps it), or ``"none"``.
        place: filter the ``"hidden"`` channels or, encoded that far, the class ``"scores"``. Scores
            need no decoder: those of two branches are added.
        branches: ``"attention"`` between an index and a value branch, or only one of them.
        num_layers: filters in a row.
        index_bands: bands of the index branch.
        value_bands: bands of the value branch.
        index_operator: what the index branch reads, ``"L"`` or ``"N"``.
        value_operator: what the value branch reads. A hub makes the largest eigenvalue of L large,
            and bands are fractions of it: only many of them divide the low end (dyadic, S = 12).
        self_loops: add self loops to N; L does not see them.
        complement: whether what the bands leave out is filtered too, or dropped (*lead*).
        score: the attention's scores.
        residual: add the input of every layer to its output.
        response: form of the response; ``sharing``, ``mode``, ``relative``, ``psi_hidden``,
            ``psi_dropout``, ``a``, ``eps`` and ``start`` as in `NodeNLSF` and `Response`.
        input_dropout: dropout on the features.
        dropout: dropout on the hidden channels and before the decoder; class scores of a linear
            encoder have neither.
    """

    in_channels: int
    out_channels: int
    hidden_channels: int = 64
    encoder: Literal["mlp", "linear", "none"] = "mlp"
    place: Literal["hidden", "scores"] = "scores"
    branches: Literal["attention", "index", "value"] = "attention"
    num_layers: int = 1
    index_bands: Bands = field(default_factory=lambda: IndexBands(16))
    value_bands: Bands = field(default_factory=DyadicBands)
    index_operator: Operator = "L"
    value_operator: Operator = "N"
    self_loops: bool = True
    complement: bool = True
    score: Score = "scalar"
    residual: bool = False
    response: ResponseName = "diagonal"
    sharing: Sharing = "shared"
    mode: Mode = "multiplicative"
    relative: bool = True
    psi_hidden: int = 32
    psi_dropout: float = 0.0
    a: float = 0.0
    eps: float = 1e-6
    start: Start = field(default_factory=lambda: Start("ppr"))
    input_dropout: float = 0.5
    dropout: float = 0.5

    def __post_init__(self) -> None:
        for name, known in (
            ("encoder", ("mlp", "linear", "none")),
            ("place", ("hidden", "scores")),
            ("branches", ("attention", "index", "value")),
        ):
            value = getattr(self, name)
            if value not in known:
                raise ModelError(f"{name} must be one of {', '.join(known)}, not {value!r}.")
        check_operators(self.index_operator, self.value_operator)
        if self.encoder == "none" and self.place == "scores":
            raise ModelError(
                "Class scores need an encoder: say place='hidden' or encoder='linear'."
            )


class NodeClassifier(nn.Module):
    """Encoder, nonlinear spectral filters, decoder, for one output vector a node.

    Args:
        config: a `NodeClassifierConfig`, or leave it out and pass its fields by name.

    Shapes:
        - x: (N, in_channels), dense or a `SparseSignal`, or (..., N, in_channels) for many signals
          on one graph
        - output: (N, out_channels): logits, or targets of a regression
    """

    def __init__(self, config: NodeClassifierConfig | None = None, **fields: Any) -> None:
        super().__init__()
        self.config = c = NodeClassifierConfig(**fields) if config is None else config
        channels = width = c.out_channels if c.place == "scores" else c.hidden_channels
        self.input_dropout = Dropout(c.input_dropout)
        if c.encoder == "mlp":
            self.encoder: nn.Module = nn.Sequential(
                FeatureLinear(c.in_channels, c.hidden_channels),
                nn.ReLU(),
                Dropout(c.dropout),
                nn.Linear(c.hidden_channels, channels),
            )
        elif c.encoder == "linear":
            # Not a `FeatureLinear`: the product with coefficients is dense, and reads rows.
            self.encoder = nn.Linear(c.in_channels, channels, bias=False)
        else:
            self.encoder = nn.Identity()
            channels = c.in_channels
        layers: list[NodeNLSF | LaplacianAttention] = []
        for _ in range(c.num_layers):
            layers.append(_layer(c, channels, width))
            channels = layers[-1].out_channels
        self.filters = NLSFStack(layers, residual=c.residual, invariant_norm=c.num_layers > 1)
        leave_values_unchecked(self.filters)
        self.output_dropout = Dropout(c.dropout)
        self.decoder: nn.Module = (
            nn.Identity() if c.place == "scores" else nn.Linear(channels, c.out_channels)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to the start."""
        for module in (self.encoder, self.decoder):
            for part in module.modules():
                if isinstance(part, nn.Linear):
                    part.reset_parameters()
        self.filters.reset_parameters()

    def forward(
        self,
        x: Tensor | SparseSignal,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: Any = None,
    ) -> Tensor:
        """The outputs of every node; arguments as in the filters' ``forward``.

        Args:
            x: features; where most are zero, a `SparseSignal` makes the first layer cheap.
            edge_index: (2, E).
            edge_weight: (E,).
            batch: (N,).
            spectrum: instead of ``edge_index``; with attention a pair, of the index branch
                and of the value branch.
        """
        if not isinstance(x, SparseSignal):
            check_signal(x, self.config.in_channels)
        h = self._encode(x)
        options = {} if spectrum is None else {"spectrum": spectrum}
        y = self.filters(h, edge_index, edge_weight, batch, **options)
        return self._decode(y)

    def _encode(self, x: Tensor | SparseSignal) -> Tensor:
        x = dropped(x, self.input_dropout)
        if isinstance(x, SparseSignal):
            if isinstance(self.encoder, nn.Linear):
                return x @ self.encoder.weight.T
            x = x.dense() if isinstance(self.encoder, nn.Identity) else x
        encoded: Tensor = self.encoder(x)
        return encoded

    def _decode(self, y: Tensor) -> Tensor:
        if self.config.place == "hidden":
            y = self.output_dropout(require_real(y).relu())
        elif self.config.branches == "attention":
            # Weights of 1/2 at the start become 1: half the scores would be half the gradients,
            # and with normalised features weight decay then wins (docs/accuracy.md).
            y = 2 * y.unflatten(-1, (2, -1)).sum(-2)
        out: Tensor = self.decoder(y)
        return out

    def plan(
        self, dataset: Examples, rows: Tensor | None = None, **options: Unpack[PlanOptions]
    ) -> Plan:
        """Only the labelled rows where `prepare` allows it, else all nodes; as in `plan_of`."""
        plan = usual_plan(self, dataset, **options)
        if not isinstance(plan, WholeGraph):
            return plan
        x: Any = plan.x
        dtype, memory = options["dtype"], options["memory"]
        if self.sees_whole_graph(dataset):
            return WholeGraph(maybe_sparse(x, dtype), plan.graph)
        if all(branch.bands.exact for branch in spectral_branches(self)):
            x = maybe_sparse(x, dtype)
        streaming: dict[str, Any] = {"progress": options["progress"]}
        if memory is not None:
            streaming["memory"] = memory
        if options["cache"]:
            streaming["folder"] = SpectrumCache().root / "projections"
        every = torch.arange(dataset.num_examples) if rows is None else rows.unique()
        prepared = self.prepare(every, x, **plan.graph, **streaming)
        # Filters of sparse features themselves are faster one by one than dense and together.
        alone = self.config.encoder == "none" and isinstance(x, SparseSignal)
        return LabelledRows(prepared, every, x.shape[0], together=not alone)

    @property
    def plan_key(self) -> Hashable:
        """What of the settings `plan` depends on."""
        filters_features = self.can_prepare and self.config.encoder == "none"
        return self.can_prepare, filters_features, bands_key(self)

    def sees_whole_graph(self, dataset: Examples) -> bool:
        """Whether a step needs all nodes, and not only the labelled ones."""
        dense = dataset.graphs[0].x.layout == torch.strided
        return dataset.level == "node" and not (self.can_prepare and dense)

    @property
    def filters_scores(self) -> bool:
        """Whether the channels of the filters are the class scores."""
        return self.config.place == "scores"

    @property
    def can_prepare(self) -> bool:
        """Whether the fast path of `prepare` is open to this model."""
        c = self.config
        linear = c.encoder != "mlp" and c.input_dropout == 0
        return linear and c.num_layers == 1 and not c.residual

    def prepare(
        self,
        rows: Tensor,
        x: Tensor | SparseSignal,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        spectrum: Any = None,
        **options: Any,
    ) -> tuple[FixedRows | FixedBands, ...]:
        """Prepares the fast path: fixed features, and only these nodes.

        It is open to models whose way to the one filter is linear: ``encoder`` linear or none, one
        layer, no input dropout. `forward_rows` then gives the same numbers as ``forward(x)[rows]``
        and costs nothing that grows with the graph.

        Args:
            rows: the nodes, (R,).
            x: (N, in_channels), dense, or a `SparseSignal` where most is zero: its products are
                cheaper in every step too.
            edge_index: (2, E).
            edge_weight: (E,).
            spectrum: as in ``forward``.
            options: of `Lens.fix_rows`, for polynomial bands: ``memory``, ``folder``,
                ``progress``.
        """
        c = self.config
        if not self.can_prepare:
            raise ModelError(
                "The fast path needs encoder='linear' or 'none', num_layers=1, input_dropout=0 and "
                "no residual: anything else must see all nodes in every step."
            )
        sparse = x if isinstance(x, SparseSignal) else None
        x = x.dense() if isinstance(x, SparseSignal) else x
        check_signal(x, c.in_channels, values=False)
        given = pair_of(spectrum) if c.branches == "attention" else (spectrum,)
        prepared: list[FixedRows | FixedBands] = []
        for branch, one in zip(spectral_branches(self), given, strict=True):
            lens = branch.lens(x, edge_index, edge_weight, spectrum=one)
            if lens.nodes is not None:
                raise ModelError("The fast path is for one graph, not for a batch.")
            prepared.append(lens.fix_rows(x, rows, sparse=sparse, **options))
        return tuple(prepared)

    def forward_rows(self, prepared: tuple[FixedRows | FixedBands, ...]) -> Tensor:
        """The outputs (R, out_channels) at the prepared nodes."""
        weight = self.encoder.weight.T if isinstance(self.encoder, nn.Linear) else None
        mapped: Tensor | None = None
        views: list[View] = []
        for one in prepared:  # they share the product with sparse features
            if one.sparse is not None and weight is not None and mapped is None:
                mapped = one.sparse @ weight
            views.append(one.map(weight, mapped))
        layer: Any = self.filters.layers[0]
        attends = isinstance(layer, LaplacianAttention)
        return self._decode(layer.respond(views) if attends else layer.respond(views[0]))


def _layer(
    c: NodeClassifierConfig, in_channels: int, out_channels: int
) -> NodeNLSF | LaplacianAttention:
    def branch(bands: Bands, operator: Operator) -> NodeNLSF:
        return NodeNLSF(
            in_channels,
            out_channels,
            bands,
            normalization_of(operator),
            complement=c.complement,
            self_loops=c.self_loops and operator == "N",
            response=c.response,
            a=c.a,
            eps=c.eps,
            start=c.start,
            sharing=c.sharing,
            mode=c.mode,
            relative=c.relative,
            hidden=c.psi_hidden,
            dropout=c.psi_dropout,
        )

    if c.branches == "index":
        return branch(c.index_bands, c.index_operator)
    value = branch(c.value_bands, c.value_operator)
    if c.branches == "value":
        return value
    return LaplacianAttention(branch(c.index_bands, c.index_operator), value, c.score)
