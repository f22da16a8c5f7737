"""Finished and unfinished runs: what they have written down, and how they compare.

`RunRecord` reads the small files of a run. `paired` compares two runs split by split, `ranking`
puts many in order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlsf.data.metrics import best_seed, higher_is_better, interval
from nlsf.display.text_table import csv_text
from nlsf.errors import ConfigError, FormatError
from nlsf.report.numbers import metric_difference
from nlsf.store.files import write_text
from nlsf.train.run.folder import RunFolder
from nlsf.train.settings.toml import parse_toml

_RESULTS = (
    "data", "protocol", "seed", "best_epoch", "epochs", "seconds", "together",
    "prepare_seconds", "sizes", "split", "spec", "versions",
)  # fmt: skip
_METRICS = ("seed", "epoch", "train_loss", "val_loss", "best")

_RANKING = (
    "model", "metric", "seeds", "test", "test_95", "validation", "validation_95",
    "behind_first", "behind_95", "seconds", "status", "reason",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The small files of a run; it may be unfinished.

    Attributes:
        folder: where they lie.
        settings: those of its config.toml.
        results: one row a seed; none for an unfinished run.
        metrics: one row a seed and epoch.
        seed: the seed that a page shows in detail.
    """

    folder: RunFolder
    settings: dict[str, Any]
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
        settings = parse_toml(folder.read_config(), folder.path / "config.toml")
        _check_settings(settings, folder)
        results = folder.results() if folder.finished else []
        metrics = folder.metrics()
        measured = (f"{part}_{settings['metric']}" for part in ("val", "test"))
        _check_rows(results, (*_RESULTS, *measured), folder.path / "results.jsonl")
        _check_rows(metrics, _METRICS, folder.path / "metrics.jsonl")
        if seed is None:
            seed = best_seed(results, settings["metric"]) if results else settings["seeds"][0]
        elif seed not in settings["seeds"]:
            known = ", ".join(map(str, settings["seeds"]))
            raise ConfigError(f"{folder.path} has no seed {seed}: it has {known}.")
        return cls(folder, settings, results, metrics, seed)

    @property
    def finished(self) -> bool:
        """Whether the run was measured."""
        return bool(self.results)

    @property
    def name(self) -> str:
        """The data set's name."""
        return str(self.results[0]["data"] if self.results else self.settings["data"]["name"])

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.settings["model"]["name"])

    @property
    def metric(self) -> str:
        """What is reported first."""
        return str(self.settings["metric"])

    @property
    def seeds(self) -> list[int]:
        """All of them."""
        return [int(seed) for seed in self.settings["seeds"]]

    @property
    def result(self) -> dict[str, Any]:
        """The row of results of the shown seed."""
        return next(row for row in self.results if row["seed"] == self.seed)

    @property
    def seconds(self) -> float:
        """What preparing the data and training all models took."""
        return self.training() + float(self.results[0]["prepare_seconds"])

    def known_values(self, part: str) -> list[float]:
        """The metric of each seed, ``"test"`` or ``"val"``, where it is known."""
        found = [row[f"{part}_{self.metric}"] for row in self.results]
        return [float(value) for value in found if value is not None]

    def training(self, key: str = "seconds") -> float:
        """What training all models took, of the clock or in ``"cpu_seconds"``; NaN if not known.

        A row has the time of all models that were trained together, so it counts for its share.
        """
        spent = [(row.get(key), row["together"]) for row in self.results]
        return sum(math.nan if time is None else time / together for time, together in spent)

    def epochs(self, seed: int) -> list[dict[str, Any]]:
        """The rows of metrics of a seed, in the order of the epochs."""
        return [row for row in self.metrics if row["seed"] == seed]


@dataclass(frozen=True)
class Paired:
    """The differences of one run to another, on the splits that both were measured on.

    Attributes:
        name: of the run.
        metric: what is compared.
        seeds: those that both have with the same split.
        differences: test metric of the run minus that of the other, one a seed.
        obstacle: why the runs cannot be compared; empty if they can.
    """

    name: str
    metric: str
    seeds: Sequence[int] = ()
    differences: Sequence[float] = ()
    obstacle: str = ""

    def words(self) -> tuple[str, str, str]:
        """The mean difference, its 95 % interval, and what that means."""
        if self.obstacle:
            return "-", "-", f"not comparable: {self.obstacle}"
        mean, half = interval(self.differences)
        middle, low, high = (
            metric_difference(self.metric, value, "+") for value in (mean, mean - half, mean + half)
        )
        if math.isnan(half):
            return middle, "-", "one common seed does not tell chance from skill"
        if half == 0 and mean == 0:
            verdict = "the same on every seed"
        elif abs(mean) <= half:
            verdict = "no clear difference"
        else:
            verdict = "better" if (mean > 0) == higher_is_better(self.metric) else "worse"
        return middle, f"{low.removesuffix(' points')} to {high}", verdict


@dataclass(frozen=True)
class Place:
    """One model in a ranking.

    Attributes:
        name: of the model.
        metric: what is ranked.
        test: mean, and half the width of its 95 % interval; NaN where that is not known.
        validation: the same on validation examples.
        seeds: how many splits.
        seconds: of preparing and training all its seeds.
        behind: its differences to the first place, seed by seed.
    """

    name: str
    metric: str
    test: tuple[float, float]
    validation: tuple[float, float]
    seeds: int
    seconds: float
    behind: Paired

    @property
    def difference(self) -> tuple[float, float]:
        """The mean difference to the first place, and half the width of its 95 % interval."""
        return interval(self.behind.differences)


def paired(name: str, run: RunRecord, base: RunRecord) -> Paired:
    """Compares a finished run with another.

    Args:
        name: what the page calls the run.
        run: the run.
        base: the run that it is compared with.
    """
    key, other = f"test_{base.metric}", {row["seed"]: row for row in base.results}
    common = [(row, other[row["seed"]]) for row in run.results if row["seed"] in other]
    same = [
        (row["seed"], row[key] - its[key])
        for row, its in common
        if row["split"] == its["split"] and None not in (row.get(key), its[key])
    ]
    if run.metric != base.metric:
        obstacle = f"one reports {run.metric}, the other {base.metric}"
    elif _data(run) != _data(base):
        obstacle = "the data differ"
    elif not common:
        obstacle = "they have no seed in common"
    elif not same:
        obstacle = "their splits differ"
    else:
        return Paired(name, base.metric, [seed for seed, _ in same], [d for _, d in same])
    return Paired(name, base.metric, obstacle=obstacle)


def ranking(folders: Mapping[str, RunFolder]) -> list[Place]:
    """Ranks finished runs of one data set by the mean of their test metric; unknown ones are last.

    Args:
        folders: of the runs, by the name of the model.
    """
    runs = {name: RunRecord.read(folder) for name, folder in folders.items()}
    if not runs:
        return []
    metric = next(iter(runs.values())).metric
    sign = -1 if higher_is_better(metric) else 1
    tests = {name: interval(run.known_values("test")) for name, run in runs.items()}
    order = sorted(runs, key=lambda name: (math.isnan(tests[name][0]), sign * tests[name][0]))
    return [
        Place(
            name,
            metric,
            tests[name],
            interval(runs[name].known_values("val")),
            len(runs[name].results),
            runs[name].seconds,
            paired(name, runs[name], runs[order[0]]),
        )
        for name in order
    ]


def write_ranking(
    path: Path, places: Sequence[Place], failed: Mapping[str, str] | None = None
) -> None:
    """Writes a ranking as CSV, and below it the models that have no result.

    Args:
        path: the file.
        places: the ranking.
        failed: why a model has no result, by its name.
    """
    rows = []
    for place in places:
        numbers = (*place.test, *place.validation, *place.difference, place.seconds)
        values = (place.name, place.metric, place.seeds, *numbers, "finished", "")
        rows.append(dict(zip(_RANKING, values, strict=True)))
    for name, reason in (failed or {}).items():
        rows.append({"model": name, "status": "failed", "reason": reason})
    write_text(path, csv_text(_RANKING, rows))


def _data(run: RunRecord) -> tuple[str, dict[str, Any]]:
    """What the data are, wherever they lie: equal splits of other graphs are not the same."""
    places = ("name", "root", "offline")
    return run.name, {k: v for k, v in run.settings["data"].items() if k not in places}


def _check_settings(settings: dict[str, Any], folder: RunFolder) -> None:
    parts = [settings.get(key) for key in ("data", "model")]
    named = all(isinstance(part, dict) and "name" in part for part in parts)
    if not named or not settings.get("seeds") or not {"metric", "protocol"} <= set(settings):
        raise ConfigError(
            f"{folder.path / 'config.toml'} is not the configuration of a run: protocol, seeds, "
            "metric, data.name and model.name must be there."
        )


def _check_rows(rows: list[dict[str, Any]], keys: tuple[str, ...], path: Path) -> None:
    for number, row in enumerate(rows, start=1):
        missing = [key for key in keys if key not in row]
        if missing:
            raise FormatError(f"{path}, line {number}: {missing[0]!r} is missing.")
