"""The numbers that the paper prints: `Published`."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nlsf.errors import ConfigError, DataError, FormatError, unknown_name

if TYPE_CHECKING:
    from nlsf.experiments.spec import Experiment

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
