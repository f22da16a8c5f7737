"""What a run has written down, without its data: `RunRecord`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlsf.data.metrics import best_seed
from nlsf.errors import ConfigError, FormatError
from nlsf.train.run.folder import RunFolder
from nlsf.train.settings.toml import parse_toml

_RESULTS = (
    "data",
    "protocol",
    "seed",
    "best_epoch",
    "epochs",
    "seconds",
    "together",
    "prepare_seconds",
    "sizes",
    "split",
    "spec",
    "versions",
)
_METRICS = ("seed", "epoch", "train_loss", "val_loss", "best")


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The small files of a run; it may be unfinished.

    Attributes:
        folder: where they lie.
        table: the same, parsed.
        results: one row a seed; none for an unfinished run.
        metrics: one row a seed and epoch.
        seed: the seed that a page shows in detail.
    """

    folder: RunFolder
    table: dict[str, Any]
    results: list[dict[str, Any]]
    metrics: list[dict[str, Any]]
    seed: int

    @classmethod
    def read(cls, folder: RunFolder, seed: int | None = None) -> RunRecord:
        """Reads the files.

        Args:
            folder: of the run.
            seed: which model to show; by default the one that did best on validation.

        Raises:
            ConfigError: the run has no such seed, or its TOML lacks a key.
            FormatError: a row of results or metrics lacks a key.
        """
        table = parse_toml(folder.read_config(), folder.path / "config.toml")
        _check_table(table, folder)
        results = folder.results() if folder.finished else []
        metrics = folder.metrics()
        measured = (f"{part}_{table['metric']}" for part in ("val", "test"))
        _check_rows(results, (*_RESULTS, *measured), folder.path / "results.jsonl")
        _check_rows(metrics, _METRICS, folder.path / "metrics.jsonl")
        if seed is None:
            seed = best_seed(results, table["metric"]) if results else table["seeds"][0]
        elif seed not in table["seeds"]:
            known = ", ".join(map(str, table["seeds"]))
            raise ConfigError(f"{folder.path} has no seed {seed}: it has {known}.")
        return cls(folder, table, results, metrics, seed)

    @property
    def finished(self) -> bool:
        """Whether the run was measured."""
        return bool(self.results)

    @property
    def name(self) -> str:
        """The data set's name."""
        return str(self.results[0]["data"] if self.results else self.table["data"]["name"])

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.table["model"]["name"])

    @property
    def metric(self) -> str:
        """What is reported first."""
        return str(self.table["metric"])

    @property
    def seeds(self) -> list[int]:
        """All of them."""
        return [int(seed) for seed in self.table["seeds"]]

    @property
    def result(self) -> dict[str, Any]:
        """The row of results of the shown seed."""
        return next(row for row in self.results if row["seed"] == self.seed)

    @property
    def spec(self) -> str:
        """The hash of all settings."""
        return self.folder.spec

    def training(self, key: str = "seconds") -> float:
        """What training all models took, of the clock or in ``"cpu_seconds"``; NaN if not known.

        A row has the time of all models that were trained together, so it counts for its share.
        """
        spent = [(row.get(key), row["together"]) for row in self.results]
        return sum(math.nan if time is None else time / together for time, together in spent)

    def epochs(self, seed: int) -> list[dict[str, Any]]:
        """The rows of metrics of a seed, in the order of the epochs."""
        return [row for row in self.metrics if row["seed"] == seed]


def _check_table(table: dict[str, Any], folder: RunFolder) -> None:
    parts = {key: table.get(key) for key in ("data", "model")}
    named = all(isinstance(part, dict) and "name" in part for part in parts.values())
    if not named or not table.get("seeds") or "metric" not in table or "protocol" not in table:
        raise ConfigError(
            f"{folder.path / 'config.toml'} is not the configuration of a run: protocol, seeds, "
            "metric, data.name and model.name must be there."
        )


def _check_rows(rows: list[dict[str, Any]], keys: tuple[str, ...], path: Path) -> None:
    for number, row in enumerate(rows, start=1):
        missing = [key for key in keys if key not in row]
        if missing:
            raise FormatError(f"{path}, line {number}: {missing[0]!r} is missing.")
