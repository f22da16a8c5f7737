"""Everything that defines a run: `RunConfig`, and its TOML."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from nlsf.data.catalogue import knows
from nlsf.data.dataset import Dataset
from nlsf.data.features import FeatureConfig
from nlsf.errors import ConfigError, unknown_name
from nlsf.train.settings.models import MODELS, ModelKind, find_model
from nlsf.train.settings.presets import default_model, preset
from nlsf.train.settings.toml import Table, from_table, merged, parse_setting, to_table, write_toml

_DATA_KEYS = ("name", "root", "offline")
_LATER: Table = {
    "training": {"average": 0.0, "gain_weight_decay": "none"},
    "model": {"node_norm": False},
}
"""Settings that were added later, with the values that mean what was done before, as in TOML.

A file that names every setting but some of these is older than they are.
"""

_MAX_SEEDS = 10_000


@dataclass(frozen=True)
class TrainingConfig:
    """How models are trained.

    Attributes:
        epochs: at most so many.
        patience: epochs without a better validation result after which training stops.
        monitor: ``"metric"``, ties broken by the loss, or ``"loss"``: what better means.
        warmup: epochs that cannot be the best one.
        batch_size: examples a step; ``None`` for all at once. A model that must see the whole graph
            in every step takes all at once, whatever stands here.
        lr: learning rate of encoder and decoder.
        psi_lr: learning rate of the responses; ``None`` for ``lr``.
        weight_decay: of the encoder.
        psi_weight_decay: of the responses.
        gain_weight_decay: of what in a response is the same for every signal, and without the rest
            a linear filter; ``None`` for ``psi_weight_decay``, which pulls to the filter of the
            start. With 0 the decay of the rest pulls to the best linear filter.
        decoder_weight_decay: of the decoder; ``None`` for ``weight_decay``.
        average: what is validated and kept is a mean of the weights over about this share of the
            training so far, 0.1 for its last tenth; 0 for the weights as they are.
        dtype: of parameters and features.
    """

    epochs: int = 1000
    patience: int = 200
    monitor: Literal["metric", "loss"] = "metric"
    warmup: int = 0
    batch_size: int | None = None
    lr: float = 0.01
    psi_lr: float | None = None
    weight_decay: float = 5e-4
    psi_weight_decay: float = 0.0
    gain_weight_decay: float | None = None
    decoder_weight_decay: float | None = None
    average: float = 0.0
    dtype: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("patience", 1), ("warmup", 0), ("batch_size", 1)):
            value = getattr(self, name)
            if value is not None and value < low:
                raise ConfigError(f"training.{name} must be at least {low}, not {value}.")
        decays = [f"{part}weight_decay" for part in ("", "psi_", "gain_", "decoder_")]
        for name in ("lr", "psi_lr", *decays):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ConfigError(f"training.{name} must be a number from 0 on, not {value}.")
        if not 0 <= self.average <= 1:
            raise ConfigError(f"training.average must be from 0 to 1, not {self.average}.")
        if self.warmup >= self.epochs:
            raise ConfigError(
                f"training.warmup ({self.warmup}) leaves none of the {self.epochs} epochs to keep."
            )

    @property
    def schedule(self) -> tuple[Any, ...]:
        """What models that train together must have in common."""
        stopping = self.epochs, self.patience, self.monitor, self.warmup
        return *stopping, self.batch_size, self.average, self.dtype

    def learning_rate(self, group: str) -> float:
        """The learning rate of a group of parameters: encoder, psi, gain or decoder."""
        responds = group in ("psi", "gain")
        return self.psi_lr if responds and self.psi_lr is not None else self.lr

    def decay(self, group: str) -> float:
        """The weight decay of a group of parameters."""
        if group == "gain" and self.gain_weight_decay is not None:
            return self.gain_weight_decay
        if group in ("psi", "gain"):
            return self.psi_weight_decay
        own = self.decoder_weight_decay if group == "decoder" else None
        return self.weight_decay if own is None else own


@dataclass(frozen=True)
class DataConfig:
    """Which data.

    Attributes:
        name: a name of the catalogue, or the path of a file or folder.
        root: the data root; ``None`` for ``NLSF_DATA`` or the user's folder.
        offline: never download.
        options: of the data set itself, as ``homophily`` of ``csbm``.
    """

    name: str
    root: str | None = None
    offline: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> DataConfig:
        """Reads the ``[data]`` table: keys that are not fields are options of the data set."""
        own = {k: v for k, v in table.items() if k in _DATA_KEYS}
        options = {k: v for k, v in table.items() if k not in _DATA_KEYS}
        if "name" not in own:
            raise ConfigError("data.name is missing: which data set, or which file?")
        config = replace(from_table(cls, own, "data"), options=options)
        if user_path(config.name):
            _check_file_options(config)
        return config

    def to_table(self) -> Table:
        """The ``[data]`` table."""
        return {"name": self.name, "root": self.root, "offline": self.offline, **self.options}


def without_place(data: Mapping[str, Any]) -> Table:
    """A ``[data]`` table without the keys that say where the data lie, not what they are."""
    return {k: v for k, v in data.items() if k not in ("root", "offline")}


def without_later(table: Mapping[str, Any]) -> Table:
    """A table without the settings that were added later, where they say what was done before."""
    result = dict(table)
    for part, before in _LATER.items():
        if isinstance(table.get(part), Mapping):
            result[part] = {
                key: value
                for key, value in table[part].items()
                if key not in before or ("none" if value is None else value) != before[key]
            }
    return result


def _as_before(table: Mapping[str, Any], kind: ModelKind) -> Mapping[str, Any]:
    """A table that names every setting of its time, with what it means for those added later."""
    known = {"training": [f.name for f in fields(TrainingConfig)], "model": kind.keys}
    for part, before in _LATER.items():
        lacking = set(known[part]) - set(table.get(part, {}))
        if lacking <= set(before):
            table = merged({part: {key: before[key] for key in lacking}}, table)
    return table


@dataclass(frozen=True)
class RunConfig:
    """A training run, whole: the same configuration gives the same numbers.

    Attributes:
        data: which data.
        protocol: how examples are split; see `nlsf.data.protocols`.
        seeds: one model each: its split, its start, its dropout.
        metric: what is monitored and reported first.
        features: how the features are made.
        model: the ``[model]`` table: ``name``, and all settings of that model.
        training: how it is trained.
    """

    data: DataConfig
    protocol: str
    seeds: tuple[int, ...]
    metric: str
    features: FeatureConfig
    model: Mapping[str, Any]
    training: TrainingConfig

    def to_table(self) -> Table:
        """All settings as tables."""
        return {
            "protocol": self.protocol,
            "seeds": list(self.seeds),
            "metric": self.metric,
            "data": self.data.to_table(),
            "features": to_table(self.features),
            "model": dict(self.model),
            "training": to_table(self.training),
        }

    def to_toml(self) -> str:
        """The run's TOML: reading it back gives this configuration."""
        return write_toml(self.to_table())


_TOP = ("protocol", "seeds", "metric", "preset", "data", "features", "model", "training")


def check_keys(table: Mapping[str, Any]) -> None:
    """Refuses unknown keys before any work is done; those of the model need its name first."""
    for key, value in table.items():
        if key not in _TOP:
            raise ConfigError(unknown_name("key", key, _TOP))
        if key in ("data", "features", "model", "training") and not isinstance(value, Mapping):
            raise ConfigError(f"{key} must be a table, [{key}], not {value!r}.")
    from_table(FeatureConfig, table.get("features", {}), "features")
    from_table(TrainingConfig, table.get("training", {}), "training")
    for key, value in (
        ("protocol", table.get("protocol", "")),
        ("preset", table.get("preset", "")),
        ("data.name", table.get("data", {}).get("name", "")),
        ("model.name", table.get("model", {}).get("name", "")),
    ):
        if not isinstance(value, str):
            raise ConfigError(f"{key} must be a text, not {value!r}.")
    name = table.get("model", {}).get("name")
    if name is not None and name not in MODELS:
        raise ConfigError(unknown_name("model", name, MODELS))


def resolve(
    table: Mapping[str, Any], dataset: Dataset, protocol: str, homophilous: bool | None = None
) -> RunConfig:
    """Fills in what a user left open: from the preset that fits the data, then from defaults.

    Args:
        table: what the user set.
        dataset: the data, before features are made.
        protocol: the data set's default protocol.
        homophilous: whether neighbours tend to be alike, where that is known.
    """
    check_keys(table)
    name = table.get("model", {}).get("name") or default_model(dataset.level)
    kind = find_model(name, dataset.level)
    table = _as_before(table, kind)
    chosen = preset(table.get("preset"), dataset, kind, homophilous)
    full = merged(chosen, {k: v for k, v in table.items() if k != "preset"})
    training = full.get("training", {})
    epochs, warmup = training.get("epochs"), training.get("warmup")
    own = "warmup" in table.get("training", {})
    if isinstance(epochs, int) and isinstance(warmup, int) and not own:
        # A short trial has no room for the preset's: one epoch must be left to keep.
        training = {**training, "warmup": max(0, min(warmup, epochs - 1))}
    model = {k: v for k, v in full.get("model", {}).items() if k != "name"}
    for key, default in kind.resolve({}).items():
        if isinstance(default, Mapping) and "kind" in default and isinstance(model.get(key), dict):
            model[key] = {"kind": default["kind"], **model[key]}
    metric = full.get("metric", dataset.metric)
    known = ("rmse", "mae") if dataset.is_regression else ("accuracy", "macro_f1", "roc_auc")
    if metric not in known:
        what = "a regression" if dataset.is_regression else "classes"
        raise ConfigError(f"metric must be one of {', '.join(known)} for {what}, not {metric!r}.")
    return RunConfig(
        DataConfig.from_table(full["data"]),
        str(full.get("protocol", protocol)),
        _seeds(full.get("seeds", 1)),
        metric,
        from_table(FeatureConfig, full.get("features", {}), "features"),
        {"name": name, **kind.resolve(model)},
        from_table(TrainingConfig, training, "training"),
    )


def apply_settings(table: Mapping[str, Any], settings: Sequence[str]) -> Table:
    """The table with ``key=value`` settings of the command line on top.

    A key may leave out its table where only one has it: ``lr=0.1`` means ``training.lr=0.1``.
    """
    result = dict(table)
    for text in settings:
        path, value = parse_setting(text)
        change: Any = value
        for part in reversed(_full_path(path)):
            change = {part: change}
        result = merged(result, change)
    check_keys(result)
    return result


def _full_path(path: list[str]) -> list[str]:
    if path[0] in _TOP:
        return path
    owners: dict[str, set[str]] = {
        "training": {f.name for f in fields(TrainingConfig)},
        "features": {f.name for f in fields(FeatureConfig)},
        "model": {key for kind in MODELS.values() for key in kind.keys},
    }
    found = [table for table, keys in owners.items() if path[0] in keys]
    if len(found) == 1:
        return [found[0], *path]
    if found:
        options = " or ".join(f"{table}.{path[0]}" for table in found)
        raise ConfigError(f"{path[0]} could mean {options}: say which.")
    known = [f"{table}.{key}" for table, keys in owners.items() for key in sorted(keys)]
    short = [*_TOP, *(key for keys in owners.values() for key in sorted(keys))]
    sentence = unknown_name("key", path[0], short)
    raise ConfigError(
        sentence if "Did you mean" in sentence else unknown_name("key", path[0], known)
    )


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, int) and value > _MAX_SEEDS:
        raise ConfigError(f"seeds must be at most {_MAX_SEEDS}, not {value}.")
    seeds = range(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(seeds, list | tuple | range) or not all(
        isinstance(s, int) and not isinstance(s, bool) and 0 <= s < 2**31 for s in seeds
    ):
        raise ConfigError(f"seeds must be how many, or a list of seeds, not {value!r}.")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds must name at least one seed, and none twice, not {value!r}.")
    return tuple(seeds)


def _check_file_options(config: DataConfig) -> None:
    for key, value in config.options.items():
        if key != "features":
            raise ConfigError(f"data.{key} cannot be set for {config.name}, which is a file.")
        if not isinstance(value, str):
            raise ConfigError(f"data.features must be the path of a file, not {value!r}.")


def user_path(text: str) -> bool:
    """Whether a data name is meant as a path: it looks like one, or is one and no data set."""
    if os.sep in text or text.endswith((".npz", ".mat", ".csv", ".zip")):
        return True
    return not knows(text) and os.path.exists(text)
