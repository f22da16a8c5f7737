"""A table of the paper as something that can be run: `Experiment`, and its places: `Cell`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from nlsf.data.catalogue import find
from nlsf.data.catalogue.entry import Entry
from nlsf.errors import ConfigError, FormatError, unknown_name
from nlsf.store.files import text_checksum
from nlsf.tables.tune.space import Point, Space, plain, space_of
from nlsf.tables.tune.trials import Tuning
from nlsf.train.settings.config import without_place
from nlsf.train.settings.models import MODELS
from nlsf.train.settings.presets import LARGE, PRESETS
from nlsf.train.settings.toml import Table, merged, parse_toml, write_toml

T = TypeVar("T")

_KEYS = ("id", "protocol", "model", "metric", "data", "settings", "space", "tuning")
_TUNING = ("trials", "splits", "training")
_SHOWN = 8
"""Digits of the id that names and folders show."""


@dataclass(frozen=True)
class Cell:
    """A model on a data set: how it is tuned, and what is fixed.

    Attributes:
        data: the ``[data]`` table of its runs: ``name``, and options of the data set.
        protocol: how examples are split.
        model: a name of `nlsf.train.settings.models.MODELS`.
        settings: what is fixed: the tables features, model and training, and the preset's name.
        space: what is chosen on validation data; an empty one where nothing is.
        tuning: how it is chosen.
        metric: what is monitored and reported.
    """

    data: Table
    protocol: str
    model: str
    settings: Table = field(default_factory=dict)
    space: Space = field(default_factory=Space)
    tuning: Tuning = field(default_factory=Tuning)
    metric: str = "accuracy"

    @cached_property
    def id(self) -> str:
        """The SHA-256 of all fields as canonical JSON.

        Where the data lie is no part of it, and neither is the tuning of a cell without choices.
        Nor are defaults, which presets and models fill in: a `Store` keeps them beside the rows.
        """
        text = json.dumps(plain(self.to_table()), sort_keys=True, separators=(",", ":"))
        return text_checksum(text)

    @property
    def stem(self) -> str:
        """A name for files: data set, protocol, model and the start of the id."""
        protocol = Path(self.protocol).stem
        words = f"{self.data['name']}-{protocol}-{self.model}".lower()
        return f"{re.sub(r'[^a-z0-9.]+', '-', words)}-{self.id[:_SHOWN]}"

    def table(self, point: Point, seeds: Sequence[int]) -> Table:
        """The tables of a run, as in its TOML.

        Args:
            point: what was chosen in the space.
            seeds: of the run.
        """
        model = {"name": self.model, **self.settings.get("model", {})}
        fixed = {
            **self.settings,
            "data": dict(self.data),
            "protocol": self.protocol,
            "metric": self.metric,
            "seeds": list(seeds),
            "model": model,
        }
        return merged(fixed, self.space.table(point))

    def to_table(self) -> Table:
        """All fields but those of this machine, as `from_table` reads them."""
        table: Table = {
            "protocol": self.protocol,
            "model": self.model,
            "metric": self.metric,
            "data": without_place(self.data),
            "settings": self.settings,
        }
        if self.space:
            table["tuning"] = {name: getattr(self.tuning, name) for name in _TUNING}
            table["space"] = self.space.to_table()
        return table

    def to_toml(self) -> str:
        """The text of ``cell.toml``, which `from_toml` reads: the id, and all fields."""
        return write_toml({"id": self.id, **self.to_table()})

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Cell:
        """The inverse of `to_table`; unknown keys and wrong types are errors.

        Raises:
            ConfigError: names the key.
        """
        for key, value in table.items():
            if key not in _KEYS:
                raise ConfigError(unknown_name("key", key, _KEYS))
            kind, words = (str, "a text") if key in _KEYS[:4] else (Mapping, "a table")
            if not isinstance(value, kind):
                raise ConfigError(f"{key} must be {words}, not {value!r}.")
        for key in ("protocol", "model", "metric", "data"):
            if key not in table:
                raise ConfigError(f"{key} is missing.")
        find(str(table["data"].get("name", "")))
        return cls(
            dict(table["data"]),
            table["protocol"],
            table["model"],
            dict(table.get("settings", {})),
            Space.from_table(table.get("space", {})),
            read_tuning(table.get("tuning", {})),
            table["metric"],
        )

    @classmethod
    def from_toml(cls, text: str, path: Path) -> Cell:
        """Reads the text of a ``cell.toml``.

        Args:
            text: what `to_toml` wrote.
            path: where it was read.

        Raises:
            FormatError: it is not a cell, or one of another id than it says.
        """
        try:
            table = parse_toml(text, path)
            cell = cls.from_table({k: v for k, v in table.items() if k != "id"})
        except ConfigError as error:
            raise FormatError(f"{path} is not the description of a cell: {error}") from error
        if table.get("id") != cell.id:
            raise FormatError(
                f"{path} was changed: its content has the id {cell.id[:_SHOWN]}, not the one that "
                "it says. Put the file back, or remove its folder."
            )
        return cell


def read_tuning(table: Mapping[str, Any]) -> Tuning:
    """Reads a ``[tuning]`` table: trials, splits and a ``[tuning.training]`` table."""
    for key in table:
        if key not in _TUNING:
            raise ConfigError(unknown_name("key in [tuning]", key, _TUNING))
    return Tuning(**table)


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes:
        label: what the row is called.
        model: a name of `nlsf.train.settings.models.MODELS`.
        paper: the name of the row in the published table; ``None`` where it has none.
        settings: what is fixed: the tables features, model and training, and the preset's name.
        space: choices that replace those of `space_of`; an empty list removes a key.
        ours: whether it is a method of the paper, not one that it compares with.
        tuned: whether anything is chosen at all.
    """

    label: str
    model: str
    paper: str | None = None
    settings: Table = field(default_factory=dict)
    space: Table = field(default_factory=dict)
    ours: bool = False
    tuned: bool = True


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        label: what the column is called.
        data: the ``[data]`` table of its runs: ``name``, and options of the data set.
        protocol: how examples are split.
        settings: as for a method, whose settings go over these. Of the model's, each method takes
            the keys that its model has; of the training's, none where its model has no epochs.
        paper: the name of the column in the published table; ``None`` where it has none.
        seeds: how many splits; ``None`` for as many as the experiment has.
        tuning: the fields of the experiment's tuning that are others here, for all methods.
        exceptions: settings by the labels of methods, which go over those of the method here:
            what it fixes may be too costly for one data set.
    """

    label: str
    data: Table
    protocol: str
    settings: Table = field(default_factory=dict)
    paper: str | None = None
    seeds: int | None = None
    tuning: Table = field(default_factory=dict)
    exceptions: Table = field(default_factory=dict)

    @property
    def entry(self) -> Entry:
        """The data set in the catalogue."""
        return find(self.data["name"])

    @property
    def size(self) -> int:
        """Nodes of all graphs together, or signals: the smaller, the sooner done."""
        counts = self.entry.statistics
        if counts.average_nodes is not None and counts.examples is not None:
            return round(counts.average_nodes * counts.examples)
        asked = self.data.get("num_nodes")  # an option of generated graphs
        return asked if isinstance(asked, int) else max(counts.nodes or 0, counts.examples or 0)


@dataclass(frozen=True)
class Experiment:
    """Methods x data sets, each tuned in the same way and run on the same number of splits.

    Attributes:
        name: of its file.
        title: for people.
        paper: the published table; ``None`` where there is none.
        metric: what is reported.
        spread: what stands after the plus-minus sign: half of the 95 % interval of the mean, or
            the standard deviation over splits.
        seeds: how many splits, with the seeds 0, 1, ...
        tuning: of every cell, but for what its column says.
        columns: the data sets.
        methods: the models.
        note: what a reader of the table should know.
        space: choices that replace those of `space_of` in every method that has the key.
        measure: ``"accuracy"``: the metric on test examples; ``"time"``: how long an epoch and a
            training take with default settings (see `nlsf.tables.fill.timing`).
    """

    name: str
    title: str
    paper: str | None
    metric: str
    spread: Literal["interval", "deviation"]
    seeds: int
    tuning: Tuning
    columns: tuple[Column, ...]
    methods: tuple[Method, ...]
    note: str = ""
    space: Table = field(default_factory=dict)
    measure: Literal["accuracy", "time"] = "accuracy"

    def cell(self, method: Method, column: Column) -> Cell:
        """What stands in the row of a method and the column of a data set."""
        kind = MODELS[method.model]
        common = dict(column.settings)
        common["model"] = {k: v for k, v in common.get("model", {}).items() if k in kind.keys}
        if kind.solve is not None:
            common.pop("training", None)
        own = merged(method.settings, column.exceptions.get(method.label, {}))
        settings = merged(common, own)
        settings = {key: value for key, value in settings.items() if value != {}}
        space = Space()
        if method.tuned and self.measure == "accuracy":
            space = default_space(method.model, column, settings)
            common_space = {k: v for k, v in self.space.items() if k in space.choices}
            space = space.merged(common_space).merged(method.space).without(settings)
        return Cell(
            dict(column.data),
            column.protocol,
            method.model,
            settings,
            space,
            replace(self.tuning, **column.tuning),
            self.metric,
        )

    def seeds_of(self, column: Column) -> int:
        """How many splits a column is measured on."""
        return self.seeds if column.seeds is None else column.seeds

    def cells(self) -> Iterator[tuple[Method, Column, Cell]]:
        """All cells, row by row."""
        for method in self.methods:
            for column in self.columns:
                yield method, column, self.cell(method, column)

    def select(
        self, methods: Sequence[str] | None = None, columns: Sequence[str] | None = None
    ) -> Experiment:
        """Some rows and columns of the table.

        Args:
            methods: by label or by model; ``None`` for all.
            columns: by label or by data set; ``None`` for all.

        Raises:
            ConfigError: there is no such row or column; names the nearest.
        """
        rows, places = self.methods, self.columns
        if methods is not None:
            named = [(method, (method.label, method.model)) for method in rows]
            rows = _chosen(f"method in {self.name}", methods, named)
        if columns is not None:
            named_columns = [(c, (c.label, c.entry.name, *c.entry.aliases)) for c in places]
            places = _chosen(f"data set in {self.name}", columns, named_columns)
        return replace(self, methods=rows, columns=places)

    def at(self, root: Path | None, offline: bool = False) -> Experiment:
        """The experiment with data from this folder; the ids of its cells stay."""
        here: Table = {} if root is None else {"root": str(root)}
        here |= {"offline": True} if offline else {}
        columns = (replace(column, data={**column.data, **here}) for column in self.columns)
        return replace(self, columns=tuple(columns))


def default_space(model: str, column: Column, settings: Table) -> Space:
    """The choices of a model for a data set, before a method replaces some of them.

    Args:
        model: its name.
        column: the data set.
        settings: what is fixed; presets with polynomial bands have choices of their own.
    """
    level, named = column.entry.level, settings.get("preset")
    large = level == "node" and column.size > LARGE
    if named is not None:
        bands = PRESETS[named].get("model", {}).get("value_bands", {})
        large = bands.get("kind") == "polynomial"
    return space_of(model, level, large=large)


def _chosen(
    what: str, wanted: Sequence[str], named: Sequence[tuple[T, tuple[str, ...]]]
) -> tuple[T, ...]:
    """Those that have one of the wanted names, in their own order."""
    known = [name for _, names in named for name in names]
    keys = {_key(name) for name in known}
    for name in wanted:
        if _key(name) not in keys:
            raise ConfigError(unknown_name(what, name, dict.fromkeys(known)))
    asked = {_key(name) for name in wanted}
    return tuple(one for one, names in named if asked & {_key(name) for name in names})


def _key(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())
