"""The numbers of an experiment's table, ours beside the paper's: `ResultTable`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nlsf.data.metrics import half_width, higher_is_better, interval
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.tables.fill.results import Published, PublishedValue, Store
    from nlsf.tables.spec.experiment import Cell, Column, Experiment, Method


@dataclass(frozen=True)
class Entry:
    """What our runs of one method on one data set found; shares are in percent.

    Attributes:
        n: splits.
        mean: of the test metric over the splits.
        spread: half the width of the 95 % interval of the mean, or the sample standard deviation,
            as the experiment says; NaN for one split.
        floor: the part of the spread that the size of the test sets alone explains: for test sets
            of m examples and a mean share p, the deviation sqrt(p (1 - p) / m), or
            t sqrt(p (1 - p) / (m n)) for the interval; NaN for metrics other than accuracy.
        paper: the published value, or ``None``.
        paper_spread: its published spread, or ``None``.
        difference: mean minus the published value, or ``None``.
        values: the test metric of each seed.
        splits: the digest of the split of each seed.
        trials: of the tuning that chose the settings; 0 where nothing was tuned.
    """

    n: int
    mean: float
    spread: float
    floor: float
    paper: float | None
    paper_spread: float | None
    difference: float | None
    values: dict[int, float]
    splits: dict[int, str]
    trials: int


@dataclass(frozen=True)
class Difference:
    """A method minus another on the same splits.

    Attributes:
        n: splits that both were measured on.
        mean: of the differences, in points for shares.
        half: half the width of the 95 % interval of the mean; NaN for one split.
    """

    n: int
    mean: float
    half: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0; never for one split."""
        return abs(self.mean) > self.half


@dataclass(frozen=True)
class ResultTable:
    """Methods x data sets.

    Attributes:
        experiment: what was asked for.
        cells: by method label and column label.
        entries: what was found, likewise; ``None`` where nothing was run.
        published: the paper's values, likewise, also where nothing was run; absent where the paper
            has none.
        reference: the label of the method that the others are compared with, if there is one.
    """

    experiment: Experiment
    cells: Mapping[tuple[str, str], Cell]
    entries: Mapping[tuple[str, str], Entry | None]
    published: Mapping[tuple[str, str], PublishedValue]
    reference: str | None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        store: Store,
        published: Published,
        against: str | None = None,
    ) -> ResultTable:
        """Reads the rows of all cells; rows of seeds that the experiment does not ask for are left.

        Args:
            experiment: which cells.
            store: where the rows are.
            published: the paper's numbers.
            against: the label or model of the reference; by default the first method of ours.

        Raises:
            ConfigError: there is no such method among the rows of the table.
            FormatError: a row lacks a key, or has something else than a number in it.
        """
        ours = (method.label for method in experiment.methods if method.ours)
        reference = next(ours, None)
        if against is not None:
            reference = experiment.select([against]).methods[0].label
        cells: dict[tuple[str, str], Cell] = {}
        entries: dict[tuple[str, str], Entry | None] = {}
        papers: dict[tuple[str, str], PublishedValue] = {}
        for method, column, cell in experiment.cells():
            key = method.label, column.label
            paper = _paper(experiment, method, column, published)
            if paper is not None:
                papers[key] = paper
            cells[key] = cell
            rows = store.rows(cell)
            try:
                entries[key] = _entry(experiment, column, rows, paper)
            except (LookupError, TypeError, ValueError, ArithmeticError) as error:
                raise FormatError(
                    f"The results of {cell.stem} ({method.label}, {column.label}) have a row that "
                    f"is not one of a run with metric {experiment.metric!r} ({error!r}): remove "
                    "its folder and run the cell again."
                ) from error
        return cls(experiment, cells, entries, papers, reference)

    @property
    def is_share(self) -> bool:
        """Whether the numbers are percentages."""
        return _scale(self.experiment.metric) != 1

    def best(self, column: str) -> float | None:
        """The best mean that we found in a column; ``None`` where nothing was run."""
        found = self._column(column)
        if not found:
            return None
        choose = max if higher_is_better(self.experiment.metric) else min
        return choose(entry.mean for entry in found)

    def floor(self, column: str) -> float | None:
        """The floor of the best method of a column; ``None`` where there is none."""
        best = self.best(column)
        floors = [entry.floor for entry in self._column(column) if entry.mean == best]
        return next((floor for floor in floors if math.isfinite(floor)), None)

    def paired(self, method: str, reference: str, column: str) -> Difference | None:
        """A method minus another, on the seeds that both have with the same split.

        Args:
            method: its label.
            reference: the label of the other.
            column: the label of the data set.

        Returns:
            ``None`` where they have no split in common.
        """
        ours, other = self.entries[method, column], self.entries[reference, column]
        if ours is None or other is None:
            return None
        differences = [
            value - other.values[seed]
            for seed, value in ours.values.items()
            if seed in other.values and ours.splits[seed] == other.splits[seed]
        ]
        if not differences:
            return None
        return Difference(len(differences), *interval(differences))

    def behind(self, method: str, column: str) -> Difference | None:
        """A method minus the reference, which has no difference to itself."""
        if self.reference is None or method == self.reference:
            return None
        return self.paired(method, self.reference, column)

    def _column(self, column: str) -> list[Entry]:
        return [e for (_, label), e in self.entries.items() if label == column and e is not None]


def _scale(metric: str) -> float:
    """Metrics of which more is better are shares of 1, shown in percent."""
    return 100.0 if higher_is_better(metric) else 1.0


def _paper(
    experiment: Experiment, method: Method, column: Column, published: Published
) -> PublishedValue | None:
    # The paper's tables are of accuracies.
    if experiment.metric != "accuracy":
        return None
    if experiment.paper is None or method.paper is None or column.paper is None:
        return None
    return published.value(experiment.paper, method.paper, column.paper)


def _entry(
    experiment: Experiment,
    column: Column,
    rows: Sequence[Mapping[str, Any]],
    paper: PublishedValue | None,
) -> Entry | None:
    key, scale = f"test_{experiment.metric}", _scale(experiment.metric)
    asked = sorted((row for row in rows if row["seed"] < experiment.seeds_of(column)), key=_seed)
    # A metric that is not finite is null in the file.
    known = [row for row in asked if row[key] is not None]
    if not known:
        return None
    values = {row["seed"]: scale * float(row[key]) for row in known}
    mean, half = interval(list(values.values()))
    is_interval = experiment.spread == "interval"
    return Entry(
        n=len(values),
        mean=mean,
        spread=half if is_interval else _deviation(list(values.values())),
        floor=_floor(experiment.metric, mean, [row["sizes"][2] for row in known], is_interval),
        paper=None if paper is None else paper.value,
        paper_spread=None if paper is None else paper.spread,
        difference=None if paper is None else mean - paper.value,
        values=values,
        splits={row["seed"]: str(row["split"]) for row in known},
        trials=max(int(row["trials"]) for row in known),
    )


def _seed(row: Mapping[str, Any]) -> int:
    return int(row["seed"])


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _floor(metric: str, mean: float, sizes: Sequence[int], is_interval: bool) -> float:
    """The binomial floor in percent; test sets of several sizes count with their mean variance."""
    if metric != "accuracy":
        return math.nan
    p, n = mean / 100, len(sizes)
    deviation = 100 * math.sqrt(p * (1 - p) * sum(1 / size for size in sizes) / n)
    return half_width(deviation, n) if is_interval else deviation
