"""The models that can be trained by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import torch
from torch import nn

from nlsf.data.dataset import Level
from nlsf.errors import ConfigError, unknown_name
from nlsf.nn.models import (
    GraphClassifier,
    GraphClassifierConfig,
    NodeClassifier,
    NodeClassifierConfig,
    SignalClassifier,
    SignalClassifierConfig,
)
from nlsf.peers import PEERS, SOLVERS, Peer, PeerModel, Solve, Solved, Solver
from nlsf.train.settings.toml import Table, from_table, to_table

_FROM_DATA = ("in_channels", "out_channels", "num_nodes")
"""Fields that the data decide."""

_SIGNAL: Table = {"training": {"lr": 1e-3, "psi_lr": 1e-3, "weight_decay": 0.0, "batch_size": 128}}

_LINEAR: Table = {"response": "constant", "a": 0.0}
"""A constant response alone would still divide by the norms, where a is not 0."""


@dataclass(frozen=True)
class ModelKind:
    """A model that ``--model`` can name.

    Attributes:
        name: that name.
        summary: one line for the help.
        levels: what an example may be.
        module: the module's class, built from ``config``.
        config: its frozen dataclass of hyper-parameters.
        fixed: fields that the name stands for, and that cannot be set otherwise.
        preset: tables that go before the preset of the data.
        solve: for a model without epochs: what finds its outputs.
        for_level: makes the model of ``config`` and a level, where ``module(config)`` does not.
    """

    name: str
    summary: str
    levels: tuple[Level, ...]
    module: type[nn.Module]
    config: type[Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    solve: Solve | None = None
    for_level: Callable[[Any, Level], nn.Module] | None = None

    def build(
        self,
        settings: Mapping[str, Any],
        in_channels: int,
        out_channels: int,
        level: Level = "node",
        num_nodes: int = 0,
    ) -> nn.Module:
        """The module, with new parameters.

        Args:
            settings: the ``[model]`` table, without its name.
            in_channels: features of the data.
            out_channels: classes, or targets of a regression.
            level: what an example is, for models that do both.
            num_nodes: nodes of the graph, for models that belong to one.
        """
        sizes = {"in_channels": in_channels, "out_channels": out_channels}
        if self.of_one_graph:
            sizes["num_nodes"] = num_nodes
        config = from_table(self.config, {**settings, **self.fixed, **sizes}, "model")
        return self.module(config) if self.for_level is None else self.for_level(config, level)

    def resolve(self, settings: Mapping[str, Any]) -> Table:
        """All settings, checked: what is left out has its default.

        Raises:
            ConfigError: an unknown key, or one that the name or the data decide.
        """
        for key in settings:
            # To say again what the name says is no contradiction: settings that were written when
            # the name left more open can be read.
            if key in _FROM_DATA or (key in self.fixed and settings[key] != self.fixed[key]):
                decided = "by the data" if key in _FROM_DATA else f"by the model {self.name!r}"
                raise ConfigError(f"model.{key} cannot be set: it is decided {decided}.")
            if key not in self.keys and key not in self.fixed:
                raise ConfigError(unknown_name("key in [model]", key, self.keys))
        decided_by_data = (f.name for f in fields(self.config) if f.name in _FROM_DATA)
        placeholder = dict.fromkeys(decided_by_data, 1)
        settled = from_table(self.config, {**settings, **self.fixed, **placeholder}, "model")
        table = to_table(settled)
        _check_sizes(table)
        return {k: v for k, v in table.items() if k not in self.fixed and k not in _FROM_DATA}

    @property
    def of_one_graph(self) -> bool:
        """Whether it has parameters for every node of the graph, and can see no other."""
        return any(f.name == "num_nodes" for f in fields(self.config))

    @property
    def keys(self) -> list[str]:
        """The names of its settings."""
        names = [f.name for f in fields(self.config)]
        return [name for name in names if name not in self.fixed and name not in _FROM_DATA]


_KINDS = (
    ModelKind(
        "att-node",
        "attention between an index filter on L and a value filter on N",
        ("node",),
        NodeClassifier,
        NodeClassifierConfig,
        {"branches": "attention"},
    ),
    ModelKind(
        "index",
        "an index filter on L alone",
        ("node",),
        NodeClassifier,
        NodeClassifierConfig,
        {"branches": "index"},
    ),
    ModelKind(
        "value",
        "a value filter on N alone",
        ("node",),
        NodeClassifier,
        NodeClassifierConfig,
        {"branches": "value"},
    ),
    ModelKind(
        "linear-node",
        "att-node with a constant response: a linear filter, the control",
        ("node",),
        NodeClassifier,
        NodeClassifierConfig,
        {"branches": "attention", **_LINEAR, "score": "scalar"},
    ),
    ModelKind(
        "graph",
        "graph-level filters: fully spectral, no synthesis",
        ("graph", "signal"),
        GraphClassifier,
        GraphClassifierConfig,
        {"level": "graph"},
    ),
    ModelKind(
        "pooling",
        "node-level filters, activation, readout",
        ("graph", "signal"),
        GraphClassifier,
        GraphClassifierConfig,
        {"level": "pooling"},
    ),
    ModelKind(
        "linear-pooling",
        "pooling with a constant response: with a = 0 and scalar scores linear filters, "
        "activation, readout, the control",
        ("graph", "signal"),
        GraphClassifier,
        GraphClassifierConfig,
        {"level": "pooling", "response": "constant"},
    ),
    ModelKind(
        "signal",
        "node-level filters with a map for every band, pooling over clusters, a head that sees "
        "every node of the one graph",
        ("signal",),
        SignalClassifier,
        SignalClassifierConfig,
        preset=_SIGNAL,
    ),
    ModelKind(
        "linear-signal",
        "signal with a constant response: linear filters, the control",
        ("signal",),
        SignalClassifier,
        SignalClassifierConfig,
        _LINEAR,
        preset=_SIGNAL,
    ),
)


def _peer(peer: type[Peer]) -> ModelKind:
    """A peer with the training that is usual in its field, not that of NLSFs."""
    usual = {"lr": 0.01, "weight_decay": 5e-4, "psi_lr": 0.01, "psi_weight_decay": 0.0}
    levels: Any = peer.for_levels
    preset = {"training": {**usual, **peer.preset}} if "node" in levels else {}
    made: Any = partial(PeerModel, peer)
    kind = peer.name, peer.title, levels, peer, peer.settings()
    return ModelKind(*kind, preset=preset, for_level=made)


def _solver(solver: Solver) -> ModelKind:
    return ModelKind(
        solver.name, solver.title, solver.levels, Solved, solver.config, solve=solver.solve
    )


MODELS: dict[str, ModelKind] = {
    kind.name: kind
    for kind in (*_KINDS, *map(_peer, PEERS.values()), *map(_solver, SOLVERS.values()))
}


def register_model(kind: ModelKind) -> None:
    """Lets `train` name a model from outside of the package.

    Its module is made of one argument, the config. Its ``forward`` takes features and
    ``edge_index``, or it has a ``plan`` (`nlsf.nn.plans`), and then need not have a ``forward``.

    Raises:
        ConfigError: the name is taken.
    """
    if kind.name in MODELS:
        raise ConfigError(f"There is a model {kind.name!r} already: choose another name.")
    MODELS[kind.name] = kind


def build_model(table: Mapping[str, Any], *sizes: Any, seed: int) -> nn.Module:
    """The model of a ``[model]`` table, with the parameters that a seed draws.

    Args:
        table: its name and settings.
        sizes: of the data, as in `ModelKind.build`.
        seed: of the parameters; PyTorch's own generator stays as it is.
    """
    settings = {key: value for key, value in table.items() if key != "name"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[table["name"]].build(settings, *sizes)


def _check_sizes(table: Mapping[str, Any]) -> None:
    """Every whole number among the settings of a model is a width or a count."""
    for key, value in table.items():
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and not isinstance(number, bool) and number < 1:
                raise ConfigError(f"model.{key} must be at least 1, not {number}.")


def find_model(name: str, level: Level) -> ModelKind:
    """The model of this name, if it is made for this level."""
    if name not in MODELS:
        raise ConfigError(unknown_name("model", name, MODELS))
    kind = MODELS[name]
    if level not in kind.levels:
        fitting = ", ".join(k.name for k in MODELS.values() if level in k.levels)
        raise ConfigError(
            f"The model {name!r} does not fit data whose examples are {level}s: use {fitting}."
        )
    return kind
