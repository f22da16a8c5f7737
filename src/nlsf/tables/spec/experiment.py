"""A table of the paper as something that can be run: `Experiment`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from nlsf.data.catalogue import find
from nlsf.data.catalogue.entry import Entry
from nlsf.errors import ConfigError, unknown_name
from nlsf.tables.spec.cell import Cell
from nlsf.tables.tune.space import Space, space_of
from nlsf.tables.tune.trials import Tuning
from nlsf.train.settings.models import MODELS
from nlsf.train.settings.presets import LARGE, PRESETS
from nlsf.train.settings.toml import Table, merged

__all__ = ["Cell", "Column", "Experiment", "Method", "default_space"]

T = TypeVar("T")


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
