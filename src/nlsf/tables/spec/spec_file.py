"""The TOML of an experiment, read strictly: `read_experiment`, `find_experiment`.

Top-level keys are title, paper, metric, measure, spread, seeds and note; then ``[tuning]``,
``[training]`` for all columns but for what they say themselves, ``[space]`` with choices for all
methods, one ``[[data]]`` a column and one ``[[method]]`` a row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from nlsf.data.catalogue import check_options, find
from nlsf.data.metrics import METRICS
from nlsf.data.protocols import PROTOCOLS
from nlsf.errors import ConfigError, DataError, ModelError, NLSFError, unknown_name
from nlsf.tables.spec.experiment import Column, Experiment, Method, default_space, read_tuning
from nlsf.tables.tune.space import Space
from nlsf.train.settings.config import check_keys
from nlsf.train.settings.models import MODELS, find_model
from nlsf.train.settings.presets import PRESETS
from nlsf.train.settings.toml import Table, from_table, merged, read_toml

T = TypeVar("T")

_LISTS = ("data", "method")
_SETTINGS = ("features", "model", "training", "preset")
_MAX_SEEDS = 1000
_PERCENTAGES = re.compile(r"\d+-\d+-\d+")


@dataclass(frozen=True)
class _Top:
    """The top of the file, without its lists."""

    title: str = ""
    paper: str | None = None
    metric: str = "accuracy"
    spread: Literal["interval", "deviation"] = "interval"
    seeds: int = 10
    note: str = ""
    measure: Literal["accuracy", "time"] = "accuracy"
    tuning: Table = field(default_factory=dict)
    training: Table = field(default_factory=dict)
    space: Table = field(default_factory=dict)


@dataclass(frozen=True)
class _Data:
    """One ``[[data]]``."""

    name: str = ""
    label: str = ""
    paper: str | None = None
    protocol: str = ""
    preset: str | None = None
    seeds: int | None = None
    options: Table = field(default_factory=dict)
    features: Table = field(default_factory=dict)
    model: Table = field(default_factory=dict)
    training: Table = field(default_factory=dict)
    tuning: Table = field(default_factory=dict)
    exceptions: Table = field(default_factory=dict)


def read_experiment(path: Path) -> Experiment:
    """Reads the TOML of an experiment, and checks all of its cells.

    Raises:
        ConfigError: names the file, the key, and what it should be.
    """
    try:
        return _experiment_of(path.stem, read_toml(path))
    except ConfigError as error:
        named = str(error).startswith(str(path))
        raise ConfigError(str(error) if named else f"{path}: {error}") from error


def find_experiment(name: str, folder: Path) -> Experiment:
    """Reads ``folder/NAME.toml``.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    names = experiment_names(folder)
    if name not in names:
        raise ConfigError(unknown_name("experiment", name, names))
    return read_experiment(folder / f"{name}.toml")


def experiment_names(folder: Path) -> list[str]:
    """The experiments of a folder, in alphabetical order.

    Raises:
        DataError: there are none.
    """
    names = sorted(path.stem for path in folder.glob("*.toml"))
    if not names:
        raise DataError(f"There are no experiments (NAME.toml) in {folder}: name their folder.")
    return names


def _experiment_of(name: str, table: Mapping[str, Any]) -> Experiment:
    """The experiment of this name that a file's tables describe, with every cell checked."""
    rest = {key: value for key, value in table.items() if key not in _LISTS}
    top = _read(_Top, rest, "", known=_LISTS)
    if not top.title:
        raise ConfigError("title is missing: what does the table show?")
    _check_seeds(top.seeds, "seeds")
    if top.metric not in METRICS:
        raise ConfigError(unknown_name("metric", top.metric, METRICS))
    common = {"training": top.training} if top.training else {}
    _check_settings(common, "for all columns")
    experiment = Experiment(
        name,
        top.title,
        top.paper,
        top.metric,
        top.spread,
        top.seeds,
        read_tuning(top.tuning),
        tuple(_column(one, where, common) for where, one in _numbered(table, "data")),
        tuple(_method(one, where) for where, one in _numbered(table, "method")),
        top.note,
        top.space,
        top.measure,
    )
    if top.measure == "time":
        _check_time(experiment, top)
    _check_labels("data", [column.label for column in experiment.columns])
    _check_labels("method", [method.label for method in experiment.methods])
    _check_column_keys(experiment)
    _check_common_space(experiment)
    _check_cells(experiment)
    return experiment


def _column(table: Any, where: str, common: Table) -> Column:
    read = _read(_Data, table, where)
    if not read.name:
        raise ConfigError(f"{where}.name is missing: which data set?")
    with _within(f"{where}.name"):
        entry = find(read.name)
    with _within(f"{where}.options"):
        check_options(entry, read.options)
    with _within(where):
        read_tuning(read.tuning)
    own = {key: getattr(read, key) for key in ("features", "model", "training")}
    settings = merged(common, {key: value for key, value in own.items() if value})
    if read.preset is not None:
        settings["preset"] = read.preset
    _check_settings(settings, where)
    protocol = read.protocol or entry.protocol
    written = protocol.endswith(".json") or _PERCENTAGES.fullmatch(protocol)
    if not written and protocol not in [name for name in PROTOCOLS if name == name.lower()]:
        raise ConfigError(f"{where}.protocol: {unknown_name('protocol', protocol, PROTOCOLS)}")
    if read.seeds is not None:
        _check_seeds(read.seeds, f"{where}.seeds")
    for label, one in read.exceptions.items():
        _check_fixed(one, f"{where}.exceptions.{label}")
    data = {"name": entry.name, **read.options}
    label = read.label or entry.name
    return Column(
        label, data, protocol, settings, read.paper, read.seeds, read.tuning, read.exceptions
    )


def _method(table: Any, where: str) -> Method:
    given = table if isinstance(table, Mapping) else {}
    method = _read(Method, table, where, label=given.get("model"), model="")
    if not method.model:
        raise ConfigError(f"{where}.model is missing: which model?")
    if method.model not in MODELS:
        raise ConfigError(f"{where}.model: {unknown_name('model', method.model, MODELS)}")
    _check_fixed(method.settings, f"{where}.settings")
    if method.space and not method.tuned:
        raise ConfigError(f"{where}.space has choices, but tuned = false: drop one of them.")
    space = _choices(method.space, f"{where}.space")
    for key in space.choices:
        if key not in space.without(method.settings).choices:
            raise ConfigError(f"{where}.space has choices for {key}, which its settings fix.")
    return method


def _read(cls: type[T], table: Any, where: str, known: Sequence[str] = (), **defaults: Any) -> T:
    """A table as a dataclass.

    Args:
        cls: the dataclass.
        table: what the file has.
        where: its name, for messages.
        known: further keys that a message may propose.
        **defaults: of fields that have none, or that may not be empty.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table, not {table!r}.")
    names = [one.name for one in fields(cls)]  # type: ignore[arg-type]
    for key in table:
        if key not in names:
            what = f"key in {where}" if where else "key"
            raise ConfigError(unknown_name(what, key, [*names, *known]))
    return from_table(cls, {**defaults, **{k: v for k, v in table.items() if v != ""}}, where)


def _choices(table: Table, where: str = "space") -> Space:
    """The choices of a table; an empty list removes a key, so it is none."""
    return Space.from_table({key: values for key, values in table.items() if values != []}, where)


def _numbered(table: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    """The tables of a list with their names: ``data[1]``, ``data[2]``, ..."""
    found = table.get(key, [])
    if not isinstance(found, list):
        raise ConfigError(f"{key} must be a list of tables, [[{key}]], not {found!r}.")
    if not found:
        raise ConfigError(f"There is no [[{key}]]: a table needs at least one.")
    return [(f"{key}[{number}]", one) for number, one in enumerate(found, start=1)]


@contextmanager
def _within(where: str) -> Iterator[None]:
    """Errors inside say where they are."""
    try:
        yield
    except NLSFError as error:
        raise ConfigError(f"{where}: {error}") from error


def _check_time(experiment: Experiment, top: _Top) -> None:
    """A table of times has nothing to choose, and needs what its ratios refer to."""
    for key, given in (("tuning", top.tuning), ("space", top.space)):
        if given:
            raise ConfigError(f"[{key}] has no place in a table of times: drop it.")
    for column in experiment.columns:
        if column.tuning:
            raise ConfigError(f"{column.label} has a tuning, in a table of times: drop it.")
    if all(method.model != "gcn" for method in experiment.methods):
        raise ConfigError("A table of times needs a method with model = 'gcn' to refer to.")


def _check_seeds(seeds: int, where: str) -> None:
    if not 1 <= seeds <= _MAX_SEEDS:
        raise ConfigError(f"{where} must be from 1 to {_MAX_SEEDS}, not {seeds}.")


def _check_labels(key: str, labels: Sequence[str]) -> None:
    for number, label in enumerate(labels):
        if label in labels[:number]:
            first = labels.index(label) + 1
            raise ConfigError(
                f"{key}[{number + 1}] has the label of {key}[{first}], {label!r}: give it another."
            )


def _check_fixed(settings: Any, where: str) -> None:
    """The settings of a method, which are a table of `_SETTINGS`."""
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{where} must be a table, not {settings!r}.")
    for key in settings:
        if key not in _SETTINGS:
            raise ConfigError(f"{where}: {unknown_name('key', key, _SETTINGS)}")
    _check_settings(dict(settings), where)


def _check_settings(settings: Table, where: str) -> None:
    """Everything but the keys of the model, which depend on its name."""
    with _within(where):
        check_keys(settings)
        chosen = settings.get("preset")
        if chosen is not None and chosen not in PRESETS:
            raise ConfigError(unknown_name("preset", chosen, PRESETS))


def _check_column_keys(experiment: Experiment) -> None:
    """A column's model keys are for the methods that have them, and its exceptions for one."""
    known = sorted({key for method in experiment.methods for key in MODELS[method.model].keys})
    labels = [method.label for method in experiment.methods]
    for number, column in enumerate(experiment.columns, start=1):
        for label in column.exceptions:
            if label not in labels:
                sentence = unknown_name("method", label, labels)
                raise ConfigError(f"data[{number}].exceptions: {sentence}")
        for key in column.settings.get("model", {}):
            if key not in known:
                sentence = unknown_name("key of any method's model", key, known)
                raise ConfigError(f"data[{number}].model: {sentence}")


def _check_common_space(experiment: Experiment) -> None:
    """Choices for all methods must be lists, and of keys that one of them has."""
    _choices(experiment.space)
    known = {
        key
        for method in experiment.methods
        for column in experiment.columns
        if column.entry.level in MODELS[method.model].levels
        for key in default_space(method.model, column, {}).choices
    }
    for key in experiment.space:
        if key not in known:
            raise ConfigError(unknown_name("key in the space of any method", key, sorted(known)))


def _check_cells(experiment: Experiment) -> None:
    checked: set[str] = set()
    for number, method in enumerate(experiment.methods, start=1):
        for column in experiment.columns:
            with _within(f"method[{number}] ({method.label}) on {column.label}"):
                find_model(method.model, column.entry.level)
                cell = experiment.cell(method, column)
                _check_model(method.model, cell.settings.get("model", {}))
                key = json.dumps([method.model, cell.space.to_table()])
                if key not in checked:  # data sets of one level mostly share it
                    cell.space.check(method.model)
                    checked.add(key)
                space = default_space(method.model, column, cell.settings)
                for name, values in method.space.items():
                    if not values and name not in space.choices:
                        what = "key in the space to remove"
                        raise ConfigError(unknown_name(what, name, space.choices))


def _check_model(model: str, settings: Table) -> None:
    kind, filled = MODELS[model], dict(settings)
    for key, default in kind.resolve({}).items():
        value = filled.get(key)
        # Bands may leave out their kind, as in a run's TOML.
        if isinstance(value, Mapping) and isinstance(default, Mapping) and "kind" in default:
            filled[key] = {"kind": default["kind"], **value}
    # What no model can be with these settings alone may fit beside those of the preset.
    with suppress(ModelError):
        kind.resolve(filled)
