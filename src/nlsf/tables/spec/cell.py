"""One place of a table, and what an experiment says of it: `Cell`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nlsf.data.catalogue import find
from nlsf.errors import ConfigError, FormatError, unknown_name
from nlsf.store.files import text_checksum
from nlsf.tables.tune.space import Point, Space, plain
from nlsf.tables.tune.trials import Tuning
from nlsf.train.settings.config import without_place
from nlsf.train.settings.toml import Table, merged, parse_toml, write_toml

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
