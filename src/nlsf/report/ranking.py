"""Several models on the same splits, best first: `ranking`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nlsf.data.metrics import higher_is_better, interval
from nlsf.report.paired import Paired, paired
from nlsf.report.record import RunRecord
from nlsf.store.files import write_text
from nlsf.train.run.folder import RunFolder


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


_HEADER = (
    "model",
    "metric",
    "seeds",
    "test",
    "test_95",
    "validation",
    "validation_95",
    "behind_first",
    "behind_95",
    "seconds",
    "status",
    "reason",
)


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
    tests = {name: interval(known_values(run, "test")) for name, run in runs.items()}
    order = sorted(runs, key=lambda name: (math.isnan(tests[name][0]), sign * tests[name][0]))
    return [
        Place(
            name,
            metric,
            tests[name],
            interval(known_values(runs[name], "val")),
            len(runs[name].results),
            run_seconds(runs[name]),
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for place in places:
        numbers = [*place.test, *place.validation, *place.difference, place.seconds]
        shown = ["" if math.isnan(value) else f"{value:.6g}" for value in numbers]
        writer.writerow([place.name, place.metric, place.seeds, *shown, "finished", ""])
    for name, reason in (failed or {}).items():
        writer.writerow([name, *[""] * (len(_HEADER) - 3), "failed", reason])
    write_text(path, text.getvalue())


def known_values(run: RunRecord, part: str) -> list[float]:
    """The metric of each seed of a finished run, ``"test"`` or ``"val"``, where it is known."""
    found = [row[f"{part}_{run.metric}"] for row in run.results]
    return [float(value) for value in found if value is not None]


def run_seconds(run: RunRecord) -> float:
    """Preparation, and training of all models."""
    return run.training() + float(run.results[0]["prepare_seconds"])
