"""The numbers that tables are made of: ours in a `Store`, the paper's as `Published`."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from nlsf.errors import ConfigError, DataError, FormatError, unknown_name
from nlsf.store import json_lines
from nlsf.store.files import read_text, remove_leftovers, text_checksum, write_text
from nlsf.tables.spec.experiment import Cell
from nlsf.train.settings.config import without_later, without_place
from nlsf.train.settings.toml import parse_toml, write_toml

if TYPE_CHECKING:
    from nlsf.tables.spec.experiment import Experiment
    from nlsf.tables.tune.trials import Trial


_TEXT_LIMIT, _ROWS_LIMIT = 2**20, 2**26


@dataclass(frozen=True)
class Store:
    """One folder a cell, named by its stem.

    ``cell.toml`` describes the cell, whole. ``config.toml`` has the settings of its runs, without
    seeds and the place of the data; its SHA-256 is the ``spec`` of every row. ``trials.jsonl`` has
    one line a trial of the tuning. ``results.jsonl`` is written last and has one row a seed: that
    of the run, with ``cell`` (the id), ``point`` (what was chosen) and ``trials`` (out of how
    many).

    Attributes:
        path: the folder of all; it need not exist.
    """

    path: Path

    def rows(self, cell: Cell) -> list[dict[str, Any]]:
        """The rows of a cell by ascending seed; none where nothing was run.

        Raises:
            FormatError: the folder holds something else.
        """
        folder = self.path / cell.stem
        results = folder / "results.jsonl"
        if (folder / "cell.toml").exists() or results.exists():
            found = _read_cell(folder)
            if found.id != cell.id:
                raise FormatError(
                    f"{folder} holds the cell {found.id}, not {cell.id}: remove the folder."
                )
        if not results.exists():
            return []
        rows = json_lines.read(results, limit=_ROWS_LIMIT)
        _check_rows(rows, results, cell, text_checksum(_read_text(folder / "config.toml")))
        return rows

    def missing(self, cell: Cell, seeds: int) -> list[int]:
        """Those of the seeds 0, 1, ..., ``seeds - 1`` that have no row."""
        there = {row["seed"] for row in self.rows(cell)}
        return [seed for seed in range(seeds) if seed not in there]

    def trials(self, cell: Cell) -> list[dict[str, Any]]:
        """The trials of a cell, by number; none where nothing was tuned."""
        path = self.path / cell.stem / "trials.jsonl"
        return json_lines.read(path, limit=_ROWS_LIMIT) if path.exists() else []

    def write(
        self,
        cell: Cell,
        config_toml: str,
        trials: Sequence[Trial],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds rows to a cell; a seed that has one keeps it.

        Args:
            cell: the cell.
            config_toml: the resolved settings of the run.
            trials: of the tuning; if there are none, those that are there stay.
            rows: of the run, each with its ``point``.

        Raises:
            ConfigError: there are rows already, and they were made with other settings.
        """
        folder = self.path / cell.stem
        before = self.rows(cell)
        config = _settings(config_toml, folder / "config.toml")
        if before and before[0]["spec"] != text_checksum(config):
            raise ConfigError(
                f"{folder} has rows of a run with other settings (see its config.toml): remove the "
                "folder to run the cell again."
            )
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        lines = [_trial_row(trial) for trial in trials] or self.trials(cell)
        added = {"cell": cell.id, "trials": len(lines), "spec": text_checksum(config)}
        by_seed = {row["seed"]: {"point": {}, **row, **added} for row in rows}
        by_seed |= {row["seed"]: row for row in before}
        write_text(folder / "cell.toml", cell.to_toml())
        write_text(folder / "config.toml", config)
        json_lines.write(folder / "trials.jsonl", lines)
        json_lines.write(folder / "results.jsonl", [by_seed[seed] for seed in sorted(by_seed)])

    def cells(self) -> Iterator[Cell]:
        """All cells that have rows, by the names of their folders."""
        for results in sorted(self.path.glob("*/results.jsonl")):
            yield _read_cell(results.parent)


def _read_cell(folder: Path) -> Cell:
    path = folder / "cell.toml"
    cell = Cell.from_toml(_read_text(path), path)
    if folder.name != cell.stem:
        raise FormatError(f"{path} describes the cell {cell.stem}: name its folder so.")
    return cell


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise FormatError(f"{path.parent} has no {path.name}: put it back, or remove the folder.")
    return read_text(path, limit=_TEXT_LIMIT)


def _check_rows(rows: Sequence[Mapping[str, Any]], path: Path, cell: Cell, spec: str) -> None:
    seen: set[int] = set()
    for number, row in enumerate(rows, start=1):
        where, seed = f"{path}, line {number}", row.get("seed")
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise FormatError(f"{where}: seed must be a whole number from 0 on, not {seed!r}.")
        if seed in seen:
            raise FormatError(f"{where}: seed {seed} stands there twice.")
        seen.add(seed)
        for key, expected in (("cell", cell.id), ("spec", spec)):
            if row.get(key) != expected:
                raise FormatError(
                    f"{where}: {key} is not that of the folder: put its files back, or remove it."
                )
        if not isinstance(row.get("point"), dict):
            raise FormatError(f"{where}: point must be what was chosen, by key.")
        if f"test_{cell.metric}" not in row:
            raise FormatError(f"{where}: there is no test_{cell.metric}.")


def _settings(config_toml: str, path: Path) -> str:
    """The settings that do not depend on the seeds of a run, nor on the machine.

    Settings that were added to the library later are left out where they say what was done before:
    seeds can be added to rows that are older.
    """
    table = parse_toml(config_toml, path)
    table.pop("seeds", None)
    if isinstance(table.get("data"), dict):
        table["data"] = without_place(table["data"])
    return write_toml(without_later(table))


def _trial_row(trial: Trial) -> dict[str, Any]:
    row = dataclasses.asdict(trial)
    del row["worker"]  # a process of this machine
    return row


_Key: TypeAlias = tuple[str, str, str, str]
_COLUMNS = ["table", "method", "dataset", "value", "spread", "unit"]
_LIMIT = 2**22


@dataclass(frozen=True)
class PublishedValue:
    """A number of a published table.

    Attributes:
        value: as printed; accuracies are in percent.
        spread: what stands after the plus-minus sign; ``None`` where nothing does.
    """

    value: float
    spread: float | None = None


@dataclass(frozen=True)
class Published:
    """Published numbers by (table, method, data set, unit), as the paper names them.

    Attributes:
        values: the numbers; ``None`` where the paper prints OOM (out of memory) instead of one.
    """

    values: Mapping[_Key, PublishedValue | None]

    @classmethod
    def read(cls, path: Path) -> Published:
        """Reads a CSV file with the columns table, method, dataset, value, spread, unit.

        Raises:
            DataError: there is no such file.
            FormatError: a line is not as it should be.
        """
        if not path.is_file():
            raise DataError(f"There is no file {path}: put the published numbers there.")
        if path.stat().st_size > _LIMIT:
            raise FormatError(f"{path} is larger than 4 MiB, so it is no list of numbers.")
        try:
            # Line ends inside quotes are the business of csv.
            with path.open(encoding="utf-8", newline="") as file:
                lines = csv.reader(file, strict=True)
                if next(lines, None) != _COLUMNS:
                    raise FormatError(f"{path}, line 1: expected {','.join(_COLUMNS)}.")
                values: dict[_Key, PublishedValue | None] = {}
                for line in lines:
                    where = f"{path}, line {lines.line_num}"
                    key, value = _entry(line, where)
                    if key in values:
                        raise FormatError(f"{where}: {', '.join(key)} stands there twice.")
                    values[key] = value
        except (UnicodeDecodeError, csv.Error) as error:
            raise FormatError(f"{path} is not a CSV file in UTF-8: {error}.") from error
        return cls(values)

    @classmethod
    def beside(cls, folder: Path, experiment: Experiment) -> Published:
        """The numbers in ``folder/published.csv``, which an experiment of this folder names.

        An experiment without a published table has none, and needs no such file.
        """
        published = cls({}) if experiment.paper is None else cls.read(folder / "published.csv")
        published.check(experiment)
        return published

    def value(
        self, table: str, method: str, dataset: str, unit: str = "accuracy_pct"
    ) -> PublishedValue | None:
        """The number in a row and column of a table; ``None`` where there is none."""
        return self.values.get((table, method, dataset, unit))

    def check(self, experiment: Experiment) -> None:
        """Refuses an experiment that names a table, row or column that the paper does not have.

        Raises:
            ConfigError: names the key and the nearest name.
        """
        if experiment.paper is None:
            return
        _known("published table", experiment.paper, dict.fromkeys(k[0] for k in self.values))
        rows = dict.fromkeys(k[1] for k in self.values if k[0] == experiment.paper)
        columns = dict.fromkeys(k[2] for k in self.values if k[0] == experiment.paper)
        for method in experiment.methods:
            if method.paper is not None:
                _known(f"method in the paper's {experiment.paper}", method.paper, rows)
        for column in experiment.columns:
            if column.paper is not None:
                _known(f"data set in the paper's {experiment.paper}", column.paper, columns)


def _entry(line: list[str], where: str) -> tuple[_Key, PublishedValue | None]:
    if len(line) != len(_COLUMNS):
        raise FormatError(f"{where}: expected {len(_COLUMNS)} fields, not {len(line)}.")
    table, method, dataset, value, spread, unit = line
    key = table, method, dataset, unit
    if value == "OOM":
        return key, None
    number = _number(value, "value", where)
    return key, PublishedValue(number, _number(spread, "spread", where) if spread else None)


def _number(text: str, field: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(f"{where}: {field} must be a number, not {text!r}.")
    return number


def _known(what: str, name: str, names: Mapping[str, None]) -> None:
    if name not in names:
        raise ConfigError(unknown_name(what, name, names))
