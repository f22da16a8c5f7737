"""What can be chosen: `Space`, values for keys of a run's TOML; `space_of` a model.

`choices_of` has the choices of every model that can be trained by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeAlias

from nlsf.data.dataset import Level
from nlsf.data.features import FeatureConfig
from nlsf.errors import ConfigError, ModelError, unknown_name
from nlsf.nn.models.parts import parameter_groups
from nlsf.train.settings.config import TrainingConfig
from nlsf.train.settings.models import MODELS, ModelKind, find_model
from nlsf.train.settings.toml import Table, from_table

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
    """The choices that a model is tuned over, by dotted key; see `nlsf.tables.space_of`."""
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


Choice: TypeAlias = bool | int | float | str | Mapping[str, Any] | tuple[Any, ...] | None
"""A value of a key: a table for bands or a start, a tuple for a list of widths."""

Point: TypeAlias = Mapping[str, Choice]
"""One choice for every key."""

_TABLES = ("model", "training", "features")
_MAX_CHOICES = 1000


@dataclass(frozen=True)
class Space:
    """Choices for keys of a run's TOML: every combination of them is a point.

    Attributes:
        choices: by dotted key, as ``"training.lr"``, ``"model.value_bands"`` or
            ``"model.start.t"``. ``None`` is kept as the string "none", as a run's TOML has it, and
            a list as a tuple.

    Example:
        >>> space = Space({"training.lr": (0.1, 0.01), "model.num_layers": (1, 2)})
        >>> space.table({"training.lr": 0.1, "model.num_layers": 2})
        {'training': {'lr': 0.1}, 'model': {'num_layers': 2}}
    """

    choices: Mapping[str, tuple[Choice, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        read = {key: _choices(key, values) for key, values in self.choices.items()}
        _check_apart(read)
        object.__setattr__(self, "choices", read)

    @classmethod
    def _of_checked(cls, choices: Mapping[str, tuple[Choice, ...]]) -> Space:
        """A space of choices that were checked before: a table makes thousands of these."""
        space = cls.__new__(cls)
        object.__setattr__(space, "choices", choices)
        return space

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(len(values) for values in self.choices.values())

    def __bool__(self) -> bool:
        """Whether there is anything to choose."""
        return bool(self.choices)

    def merged(self, change: Mapping[str, Sequence[Choice]]) -> Space:
        """The space with other choices for some keys; an empty sequence removes a key."""
        if not change:
            return self
        new = Space({key: tuple(values) for key, values in change.items() if len(values)})
        both = {**self.choices, **dict.fromkeys(change, ()), **new.choices}
        left = {key: values for key, values in both.items() if values}
        _check_apart(left)
        return Space._of_checked(left)

    def without(self, settings: Mapping[str, Any]) -> Space:
        """The space without the keys that a run's tables fix."""
        free = {key: v for key, v in self.choices.items() if not _fixed(settings, key)}
        return Space._of_checked(free)

    def table(self, point: Point) -> Table:
        """A point as the tables of a run's TOML, for `nlsf.train.settings.toml.merged`."""
        result: Table = {}
        for key, value in point.items():
            if key not in self.choices:
                raise ConfigError(unknown_name("key in the space", key, self.choices))
            *path, last = key.split(".")
            inner = result
            for part in path:
                inner = inner.setdefault(part, {})
            inner[last] = plain(value)
        return result

    def check(self, model: str) -> None:
        """Refuses keys that a model does not have, and values that they cannot have."""
        if model not in MODELS:
            raise ConfigError(unknown_name("model", model, MODELS))
        for key, values in self.choices.items():
            for value in values:
                _check(MODELS[model], key, self.table({key: value}))

    def to_table(self) -> Table:
        """The ``[space]`` table: a list for every key."""
        return {key: plain(values) for key, values in self.choices.items()}

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "space") -> Space:
        """Reads a ``[space]`` table; keys are quoted, ``"training.lr" = [0.1, 0.05]``.

        Args:
            table: a list for every key.
            where: the table's own name, for messages.
        """
        for key, values in table.items():
            if isinstance(values, Mapping):
                raise ConfigError(
                    f"{where}.{key} must be a list of choices: write keys in quotes, as in "
                    f'"training.lr" = [0.1, 0.05].'
                )
            if not isinstance(values, list | tuple):
                raise ConfigError(f'{where}."{key}" must be a list of choices, not {values!r}.')
        return cls({key: tuple(values) for key, values in table.items()})


@cache
def space_of(model: str, level: Level, *, large: bool = False) -> Space:
    """The choices that a model is tuned over.

    NLSFs search what the paper does (Appendix E.1 for nodes, E.2 for graphs): learning rates,
    weight decays, readouts, the rates r of bands; for nodes also widths and dropout rates. Where
    the paper names a long range, few values stand for it. Node models have 1 or 2 layers instead of
    1 to 10, graph models the default; J has five values from 1 to 100, and each r has one S. What
    the models here add is searched too: other kinds of bands, the start of the response and its own
    training, where the filter stands.

    Other methods search what their own papers do, with the same dropout rates, learning rates and
    weight decays. A model without epochs has no choices.

    Args:
        model: a name of `nlsf.train.settings.models.MODELS`.
        level: what an example is.
        large: for a graph of which only leading eigenvectors can be had.
    """
    return Space(choices_of(model, level, large=large))


def encode(choice: Choice) -> str:
    """A choice as canonical JSON: equal choices have equal texts."""
    return json.dumps(plain(read_choice(choice)), sort_keys=True, ensure_ascii=False)


def decode(text: str) -> Choice:
    """The inverse of `encode`."""
    return read_choice(json.loads(text))


def read_choice(value: Any) -> Choice:
    """The value as a space keeps it: "none" for ``None``, tuples for lists."""
    if isinstance(value, Mapping):
        return {str(name): read_choice(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(read_choice(inner) for inner in value)
    return "none" if value is None else value


def plain(value: Any) -> Any:
    """The value as TOML and JSON give it back: "none" for ``None``, lists for tuples."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return "none" if value is None else value


def _check_apart(keys: Collection[str]) -> None:
    """Refuses choices for a table and for a part of it."""
    for key in keys:
        parts = key.split(".")
        for number in range(2, len(parts)):
            if (whole := ".".join(parts[:number])) in keys:
                raise ConfigError(
                    f"The space has choices for {whole} and for a part of it: drop one."
                )


def _choices(key: str, values: Any) -> tuple[Choice, ...]:
    parts = key.split(".") if isinstance(key, str) else []
    if len(parts) < 2 or not all(parts) or parts[0] not in _TABLES:
        raise ConfigError(
            f"A key of the space begins with training., model. or features., not {key!r}."
        )
    if key == "model.name":
        raise ConfigError("model.name cannot be a choice: a space belongs to one model.")
    if not isinstance(values, list | tuple) or not 0 < len(values) <= _MAX_CHOICES:
        raise ConfigError(f"{key} needs a list of 1 to {_MAX_CHOICES} choices, not {values!r}.")
    for value in values:
        _check_type(key, value)
    read = tuple(read_choice(value) for value in values)
    if len({encode(value) for value in read}) != len(read):
        raise ConfigError(f"{key} has the same choice twice.")
    return read


def _check_type(key: str, value: Any) -> None:
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _check_type(key, inner)
    elif value is not None and (
        not isinstance(value, bool | int | float | str)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        raise ConfigError(f"{key} cannot have the choice {value!r}.")


def _fixed(settings: Mapping[str, Any], key: str) -> bool:
    """Whether tables say something at this path."""
    inner: Any = settings
    for part in key.split("."):
        if not isinstance(inner, Mapping):
            return True
        if part not in inner:
            return False
        inner = inner[part]
    return True


def _check(kind: ModelKind, key: str, table: Table) -> None:
    name = key.split(".")[1]
    owners: dict[str, tuple[Any, list[str]]] = {
        "training": (TrainingConfig, [f.name for f in fields(TrainingConfig)]),
        "features": (FeatureConfig, [f.name for f in fields(FeatureConfig)]),
        "model": (kind.config, kind.keys),
    }
    first = key.split(".")[0]
    owner, known = owners[first]
    if name not in known:
        what = f"key of {kind.name} in the space" if first == "model" else "key in the space"
        raise ConfigError(unknown_name(what, key, [f"{first}.{one}" for one in known]))
    settings = table[first]
    if key.count(".") > 1:  # a part of a table: the kind of the bands is that of the defaults
        return
    try:
        if first == "model":
            kind.resolve(settings)
        else:
            from_table(owner, settings, first)
    except ModelError:
        return  # what no model can be alone may fit beside the choice of another key
