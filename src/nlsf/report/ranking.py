"""Several models on the same splits, best first: `ranking`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nlsf.report.paired import Paired, paired
from nlsf.report.record import RunRecord
from nlsf.train.atomic import write_text
from nlsf.train.metrics import higher_is_better, interval
from nlsf.train.run_folder import RunFolder


@dataclass(frozen=True)
class Place:
    """One model in a ranking.

    Attributes:
        name: of the model.
        metric: what is ranked.
        test: mean, and half the width of its 95 % interval.
        validation: the same on validation examples.
        seeds: how many splits.
        seconds: of its training.
        behind: its differences to the first place, seed by seed.
    """

    name: str
    metric: str
    test: tuple[float, float]
    validation: tuple[float, float]
    seeds: int
    seconds: float
    behind: Paired


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
)


def ranking(folders: Mapping[str, RunFolder]) -> list[Place]:
    """Ranks finished runs of one data set by the mean of their test metric.

    Args:
        folders: of the runs, by the name of the model.
    """
    runs = {name: RunRecord.read(folder) for name, folder in folders.items()}
    if not runs:
        return []
    metric = next(iter(runs.values())).metric
    sign = -1 if higher_is_better(metric) else 1

    def mean(name: str, part: str) -> tuple[float, float]:
        return interval([float(row[f"{part}_{metric}"]) for row in runs[name].results])

    order = sorted(runs, key=lambda name: sign * mean(name, "test")[0])
    return [
        Place(
            name,
            metric,
            mean(name, "test"),
            mean(name, "val"),
            len(runs[name].results),
            max(float(row["seconds"]) for row in runs[name].results),
            paired(name, runs[name], runs[order[0]]),
        )
        for name in order
    ]


def write_ranking(path: Path, places: Sequence[Place]) -> None:
    """Writes a ranking as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for place in places:
        behind = interval(place.behind.differences)
        numbers = [*place.test, *place.validation, *behind, place.seconds]
        shown = ["" if value != value else f"{value:.6g}" for value in numbers]
        writer.writerow([place.name, place.metric, place.seeds, *shown])
    write_text(path, text.getvalue())
