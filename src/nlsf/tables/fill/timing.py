"""How long methods take, measured side by side: `measure`, and the rows on disk: `Timings`."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nlsf.display.progress import Progress
from nlsf.errors import ConfigError, FormatError, NLSFError
from nlsf.nn.plans import Plan
from nlsf.store import json_lines
from nlsf.store.files import text_checksum
from nlsf.tables.fill.fill import Outcome, held
from nlsf.tables.spec.experiment import Cell, Column, Experiment
from nlsf.train.run.job import Job
from nlsf.train.run.run import versions
from nlsf.train.settings.config import without_place

ROUNDS = 20
_WARM_UP = 2
_LIMIT = 2**24
_SEED = 0

_NUMBERS = [
    f"{what}_{kind}seconds"
    for what in ("epoch", "prepare", "train", "total")
    for kind in ("", "cpu_")
]


@dataclass(frozen=True)
class Timings:
    """One folder a data set, with ``timing.jsonl``: one row a method, all from one process.

    A row has the numbers of `measure`, or the reason why there are none as its ``error``.

    Attributes:
        path: the folder of all; it need not exist.
    """

    path: Path

    def rows(self, experiment: Experiment, column: Column) -> dict[str, dict[str, Any]]:
        """The rows of a data set by method; those that were measured otherwise are left out.

        Raises:
            FormatError: a row is not one of `measure`.
        """
        path = self._file(experiment, column)
        if not path.exists():
            return {}
        ids = {m.label: experiment.cell(m, column).id for m in experiment.methods}
        found: dict[str, dict[str, Any]] = {}
        for number, row in enumerate(json_lines.read(path, limit=_LIMIT), start=1):
            _check(row, f"{path}, line {number}")
            if row["method"] in found:
                raise FormatError(f"{path}, line {number}: {row['method']!r} stands there twice.")
            if ids.get(row["method"]) == row["cell"]:
                found[row["method"]] = row
        return found

    def is_whole(self, experiment: Experiment, column: Column) -> bool:
        """Whether every method has a row."""
        return len(self.rows(experiment, column)) == len(experiment.methods)

    def write(
        self, experiment: Experiment, column: Column, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Puts the rows of a data set in the place of those that were there."""
        path = self._file(experiment, column)
        path.parent.mkdir(parents=True, exist_ok=True)
        json_lines.write(path, rows)

    def _file(self, experiment: Experiment, column: Column) -> Path:
        return self.path / stem_of(experiment, column) / "timing.jsonl"


def stem_of(experiment: Experiment, column: Column) -> str:
    """The name of a data set's folder: experiment, data set, and the start of a hash."""
    described = [without_place(column.data), column.protocol, column.settings]
    text = json.dumps(described, sort_keys=True, default=str)
    words = f"{experiment.name}-{column.data['name']}".lower()
    digest = text_checksum(text)[:8]
    return f"{re.sub(r'[^a-z0-9.]+', '-', words)}-{digest}"


def time_all(
    experiment: Experiment,
    timings: Timings,
    work: Path,
    *,
    budget: float | None = None,
    rounds: int = ROUNDS,
    display: Progress | None = None,
) -> Outcome:
    """Measures the data sets that lack rows, from the smallest to the largest.

    A data set is measured as a whole, or not at all: a ratio of two methods is fair only if both
    were measured at the same time. Several processes may share a table, but not the cores.

    Args:
        experiment: the table, with all of its methods.
        timings: has the rows, and gets them.
        work: the folder of locks.
        budget: seconds after which no data set is begun.
        rounds: see `measure`.
        display: shows the progress; silent by default.
    """
    deadline = None if budget is None else time.monotonic() + budget
    result, display = Outcome("data set"), display or Progress()
    for column in sorted(experiment.columns, key=lambda column: column.size):
        if timings.is_whole(experiment, column):
            result.kept.append(column.label)
            continue
        if deadline is not None and time.monotonic() >= deadline:
            result.left.append(column.label)
            continue
        with held(work / stem_of(experiment, column)) as free:
            if not free:
                result.held.append(column.label)
                continue
            display.say(f"{column.label}: {len(experiment.methods)} methods")
            rows = measure(experiment, column, rounds=rounds, display=display)
            timings.write(experiment, column, rows)
            result.filled.append(column.label)
            result.failed += [
                (f"{row['method']} on {column.label}", row["error"])
                for row in rows
                if row["error"] is not None
            ]
    return result


def measure(
    experiment: Experiment,
    column: Column,
    *,
    rounds: int = ROUNDS,
    display: Progress | None = None,
) -> list[dict[str, Any]]:
    """The times of all methods on a data set, each with its default settings.

    First every method is prepared, with its spectrum computed and not read from the cache, and one
    model is trained until it stops: that is the total time. Then all methods take turns, one epoch
    (training and validation) each a round, so that whatever else the machine does hits all of them
    alike; the time of an epoch is the median over rounds. Processor time is that of all threads.

    Args:
        experiment: the table.
        column: the data set.
        rounds: epochs of each method that are timed.
        display: shows the progress; silent by default.

    Returns:
        One row a method, as `Timings` keeps them.
    """
    display = display or Progress()
    cells = [experiment.cell(method, column) for method in experiment.methods]
    runners: list[_Runner | NLSFError] = []
    for method, cell in zip(experiment.methods, cells, strict=True):
        try:
            runner = _Runner.of(cell)
        except NLSFError as error:
            said = str(error)
            runners.append(error)
        else:
            spent = runner.prepare_time[0] + runner.train_time[0]
            said = f"{runner.epochs} epochs, {spent:.1f} s"
            runners.append(runner)
        display.say(f"{method.label} on {column.label}: {said}")
    able = [runner for runner in runners if isinstance(runner, _Runner)]
    for number in range(_WARM_UP + rounds):
        for runner in able:
            runner.step(keep=number >= _WARM_UP)
    rows = []
    for method, cell, one in zip(experiment.methods, cells, runners, strict=True):
        row: dict[str, Any] = {"method": method.label, "model": cell.model, "cell": cell.id}
        row |= {"data": without_place(column.data), "protocol": column.protocol}
        if isinstance(one, _Runner):
            row |= {**one.numbers(), "error": None}
        else:
            row["error"] = str(one)
        rows.append({**row, "rounds": rounds, "versions": versions()})
    return rows


class _Runner:
    """One method: prepared, trained once, and ready for more epochs."""

    def __init__(
        self,
        job: Job,
        plan: Plan,
        prepare_time: tuple[float, float],
        train_time: tuple[float, float],
        epochs: int,
    ) -> None:
        self.job, self.plan = job, plan
        self.prepare_time, self.train_time, self.epochs = prepare_time, train_time, epochs
        self.times: list[tuple[float, float]] = []
        self.fit = job.fit(plan, [0])

    @classmethod
    def of(cls, cell: Cell) -> _Runner:
        """Prepares and trains the method of a cell; what it computes once is in these times."""
        job = Job.of(cell.table({}, [_SEED]))
        if job.solved(0) is not None:
            raise ConfigError(f"The model {cell.model!r} has no epochs whose time could be taken.")
        clock = _Clock()
        plan = job.plan(cache=False, progress=lambda text: None)
        prepared = clock.read()
        clock = _Clock()
        fit = job.fit(plan, [0])
        fit.run()
        return cls(job, plan, prepared, clock.read(), fit.epoch)

    def step(self, keep: bool) -> None:
        """One epoch, timed."""
        if self.fit.finished:
            self.fit = self.job.fit(self.plan, [0])
        clock = _Clock()
        self.fit.step()
        if keep:
            self.times.append(clock.read())

    def numbers(self) -> dict[str, Any]:
        """What was measured."""
        wall, cpu = (statistics.median(times) for times in zip(*self.times, strict=True))
        model = self.job.model(_SEED)
        return {
            "parameters": sum(p.numel() for p in model.parameters()),
            "epochs": self.epochs,
            "epoch_seconds": wall,
            "epoch_cpu_seconds": cpu,
            "prepare_seconds": self.prepare_time[0],
            "prepare_cpu_seconds": self.prepare_time[1],
            "train_seconds": self.train_time[0],
            "train_cpu_seconds": self.train_time[1],
            "total_seconds": self.prepare_time[0] + self.train_time[0],
            "total_cpu_seconds": self.prepare_time[1] + self.train_time[1],
            "threads": torch.get_num_threads(),
        }


class _Clock:
    """Seconds of the clock and of the processor since its making."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Both."""
        return time.perf_counter() - self._began[0], time.process_time() - self._began[1]


def _check(row: Mapping[str, Any], where: str) -> None:
    for key in ("method", "cell"):
        if not isinstance(row.get(key), str):
            raise FormatError(f"{where}: {key} must be a text, not {row.get(key)!r}.")
    error = row.get("error")
    if error is not None and not isinstance(error, str):
        raise FormatError(f"{where}: error must be a reason or null, not {error!r}.")
    if error is None:
        for key in _NUMBERS:
            value = row.get(key)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
                raise FormatError(f"{where}: {key} must be a number from 0 on, not {value!r}.")
