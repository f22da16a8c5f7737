"""The choices of every model that can be trained by name: `choices_of`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nlsf.data.dataset import Level
from nlsf.nn.models.parts import parameter_groups
from nlsf.train.settings.models import ModelKind, find_model

_Choices = dict[str, tuple[Any, ...]]

_TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

# Appendix E.1 of the paper.
_NODE_TRAINING: _Choices = {
    "training.lr": (0.1, 0.05, 0.01, 0.005, 0.001),
    "training.weight_decay": (1e-2, 5e-3, 1e-3, 5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6, 0.0),
}

# Appendix E.2; no decay at all is ours.
_GRAPH_TRAINING: _Choices = {
    "training.lr": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "training.weight_decay": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 0.0),
}

_SIGNAL_TRAINING: _Choices = {**_GRAPH_TRAINING, "training.lr": (2e-2, 1e-2, 5e-3, 2e-3, 1e-3)}

_FILTER_TRAINING: _Choices = {
    "training.psi_lr": (0.05, 0.02, 0.01, 0.005, 0.002, 0.001),
    "training.psi_weight_decay": (0.1, 0.01, 1e-3, 1e-4, 0.0),
}

_DYADIC = ((1 / 4, 3), (1 / 3, 4), (1 / 2, 6), (2 / 3, 8), (3 / 4, 10))
"""The paper's decay rates r, each with the S that reaches about the same lowest frequency."""

_LARGE_BANDS: tuple[Any, ...] = (
    *(
        {"kind": "polynomial", "base": base, "order": order}
        for base in ({"kind": "dyadic", "r": 0.5, "S": 5}, {"kind": "uniform", "S": 8})
        for order in (16, 32)
    ),
    {"kind": "index", "J": 64},
)
"""Bands of a graph of which only leading eigenvectors can be had."""

_STARTS: tuple[Any, ...] = (
    {"name": "all-pass"},
    {"name": "ppr", "t": 3.0},
    {"name": "ppr", "t": 9.0},
    {"name": "ppr", "t": 19.0},
    {"name": "heat", "t": 5.0},
    {"name": "high-pass", "t": 9.0},
    {"name": "walk", "t": 2.0},
)

_WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    "linear-node": ("model.relative",),  # a constant response looks at no norms
    "link": ("model.dropout",),  # it has nothing hidden
}
"""Settings that a model has and that change nothing in it."""


def choices_of(model: str, level: Level, *, large: bool = False) -> dict[str, tuple[Any, ...]]:
    """The choices that a model is tuned over, by dotted key; see `nlsf.experiments.space_of`."""
    kind = find_model(model, level)
    if kind.solve is not None:
        return {}
    training = {"node": _NODE_TRAINING, "graph": _GRAPH_TRAINING, "signal": _SIGNAL_TRAINING}[level]
    if "branches" not in {*kind.keys, *kind.fixed}:
        choices = {**training, **_peer(kind, level)}
    else:
        own = _nodes(kind, large) if level == "node" else _graphs(kind)
        choices = {**training, **_FILTER_TRAINING, **own}
    none = {*_WITHOUT_EFFECT.get(model, ()), *(f"model.{key}" for key in kind.fixed)}
    return {key: values for key, values in choices.items() if key not in none}


def _nodes(kind: ModelKind, large: bool) -> _Choices:
    branches = kind.fixed["branches"]
    choices: _Choices = {
        "model.hidden_channels": (64, 128),
        "model.input_dropout": _TENTHS,
        "model.dropout": _TENTHS,
        "model.num_layers": (1, 2),
        "model.place": ("scores", "hidden"),
        "model.residual": (False, True),
        "model.start": _STARTS,
        "model.a": (0.0, 0.5, 1.0),
        "model.relative": (True, False),
        "features.row_normalize": (False, True),
    }
    if branches in ("attention", "index"):
        choices["model.index_bands"] = _index(4, 8, 16, 32, 64)
    if branches in ("attention", "value"):
        choices["model.value_bands"] = _LARGE_BANDS if large else _value_bands((8, 20, 40))
        choices["model.self_loops"] = (True, False)
    if branches == "attention":
        choices["model.score"] = ("scalar", "spectral")
    return choices


def _graphs(kind: ModelKind) -> _Choices:
    choices: _Choices = {
        "model.hidden_channels": (64, 128),
        "model.dropout": (0.0, 0.1, 0.3, 0.5),
        "model.index_bands": _index(2, 4, 8, 16, 32),
        "model.value_bands": _value_bands((4, 8, 16)),
        "model.score": ("scalar", "spectral"),
        "model.start": _STARTS,
        "model.a": (0.0, 0.5, 1.0),  # without effect on the graph level, but in cells with rows
        "model.head": ((256, 128, 64), (128, 64), (64,)),
    }
    if kind.fixed["level"] == "pooling":
        return {**choices, "model.readout": ("mean", "sum", "max", "rms")}
    del choices["model.start"]  # a graph-level filter has no response
    return {**choices, "model.channels": (16, 32, 64), "model.standardize": (True, False)}


def _peer(kind: ModelKind, level: Level) -> _Choices:
    own: dict[str, Any] = {
        "input_dropout": _TENTHS,
        "dropout": _TENTHS,
        **kind.config.search,
    }
    choices: _Choices = {
        f"model.{key}": tuple(values) for key, values in own.items() if key in kind.keys
    }
    module = kind.build({}, 2, 2, level, num_nodes=2)
    if "psi" in parameter_groups(module).values():
        choices |= _FILTER_TRAINING
    if level == "node":
        choices["features.row_normalize"] = (False, True)
    if level == "graph" and not kind.module.pools:  # type: ignore[attr-defined]
        choices["model.readout"] = ("mean", "sum", "max")
    return choices


def _index(*counts: int) -> tuple[Any, ...]:
    return tuple({"kind": "index", "J": count} for count in counts)


def _value_bands(uniform: tuple[int, ...]) -> tuple[Any, ...]:
    dyadic = tuple({"kind": "dyadic", "r": r, "S": S} for r, S in _DYADIC)
    even = tuple({"kind": "uniform", "S": S} for S in uniform)
    base = {"kind": "uniform", "S": uniform[1]}
    return (*dyadic, *even, {"kind": "atom", "base": base, "atoms": 2})
