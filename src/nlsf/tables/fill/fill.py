"""The missing numbers of a table, run: `fill`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nlsf.data.metrics import higher_is_better
from nlsf.display.progress import Phase, Progress
from nlsf.errors import ConfigError, NLSFError
from nlsf.store.files import text_checksum
from nlsf.tables.fill.results import Store
from nlsf.tables.spec.experiment import Cell, Column, Experiment, Method
from nlsf.tables.tune.search import tune
from nlsf.tables.tune.space import Point
from nlsf.tables.tune.trials import Trial
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.train import RunResult, resume, train

_End = Literal["filled", "kept", "failed", "held", "left"]


@dataclass(frozen=True)
class Place:
    """A cell, where it stands in the table, and the number of its seeds."""

    method: Method
    column: Column
    cell: Cell
    seeds: int

    @property
    def name(self) -> str:
        """Row and column, for people."""
        return f"{self.method.label} on {self.column.label}"


@dataclass
class Outcome:
    """What became of the parts of a table, by their names.

    Attributes:
        unit: what a part is: a cell, or a data set of a table of times.
        kept: they had all of their rows already.
        filled: they have them now.
        failed: they could not be run; with the reason.
        held: another process is at them.
        left: there was no time for them.
    """

    unit: str
    kept: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def fill(
    experiment: Experiment,
    store: Store,
    work: Path,
    *,
    budget: float | None = None,
    display: Progress | None = None,
    cache: bool = True,
) -> Outcome:
    """Tunes and trains what a table lacks, the most informative first (see `in_order`).

    A cell is tuned into ``work/STEM/study.journal``, trained into a run folder beside it, and then
    written into the store. A process that ends at any moment loses at most one trial, and the
    epochs since a checkpoint. Several processes share a table: each takes cells that no other is
    at. A cell that cannot be run is noted, and the next goes on.

    Args:
        experiment: the table, or the part of it that `Experiment.select` gives.
        store: has the rows, and gets them.
        work: the folder of studies and runs.
        budget: seconds after which no trial and no run is begun.
        display: shows the progress; silent by default.
        cache: keep spectra on disk for the next time.
    """
    if experiment.measure == "time":
        raise ConfigError(f"{experiment.name} is a table of times: use nlsf.tables.fill.timing.")
    deadline = None if budget is None else time.monotonic() + budget
    with display or Progress() as shown:
        filling = _Filling(store, work, deadline, shown, cache, Outcome("cell"))
        lacking = filling.lacking(in_order(experiment))
        if lacking:
            with shown.phase(total=len(lacking), unit="cell", limit=budget) as phase:
                filling.run(lacking, phase)
    return filling.result


def in_order(experiment: Experiment) -> list[Place]:
    """All places of a table, the most informative first.

    Our own methods come before the others, which keep their order: a table without them says
    nothing. Each goes over all data sets from the smallest to the largest, so that a short budget
    gives whole rows.
    """
    methods = sorted(experiment.methods, key=lambda method: not method.ours)
    columns = sorted(experiment.columns, key=lambda column: column.size)
    return [
        Place(m, c, experiment.cell(m, c), experiment.seeds_of(c)) for m in methods for c in columns
    ]


@dataclass(frozen=True)
class _Filling:
    """A call of `fill`."""

    store: Store
    work: Path
    deadline: float | None
    display: Progress
    cache: bool
    result: Outcome

    def run(self, lacking: Sequence[Place], phase: Phase) -> None:
        """Goes over the places; at the end again over those that another process held."""
        waiting = list(enumerate(lacking, start=1))
        while waiting:
            done = len(self.result.filled)
            held = [
                (number, place)
                for number, place in waiting
                if self._attempt(place, number, phase) == "held"
            ]
            if len(self.result.filled) == done:  # nothing was to do for us, so no time has passed
                self.result.held.extend(place.name for _, place in held)
                return
            waiting = held

    def lacking(self, places: Sequence[Place]) -> list[Place]:
        """The places without all of their rows."""
        lacking: list[Place] = []
        for place in places:
            try:
                missing = self.store.missing(place.cell, place.seeds)
            except NLSFError as error:
                self._fail(place, error)
            else:
                if missing:
                    lacking.append(place)
                else:
                    self.result.kept.append(place.name)
        return lacking

    def _attempt(self, place: Place, number: int, phase: Phase) -> _End:
        outcome: _End = "left"
        if not self._is_late():
            try:
                with held(self.work / place.cell.stem) as free:
                    outcome = self._fill(place, number, phase) if free else "held"
            except NLSFError as error:
                self._fail(place, error)
                return "failed"
        if outcome != "held":  # it is looked at again
            getattr(self.result, outcome).append(place.name)
        return outcome

    def _fill(self, place: Place, number: int, phase: Phase) -> _End:
        cell, folder = place.cell, self.work / place.cell.stem
        missing = self.store.missing(cell, place.seeds)
        if not missing:  # by another process, since we looked
            return "kept"
        phase.next(place.name, number)
        chosen = self._choose(cell, folder / "study.journal")
        if chosen is None or self._is_late():
            return "left"
        point, trials = chosen
        result = self._train(cell, folder, point, missing)
        rows = [{**row, "point": point} for row in result.rows]
        self.store.write(cell, result.folder.read_config(), trials, rows)
        mean, half = result.summary()
        scale, unit = (100.0, " %") if higher_is_better(result.metric) else (1.0, "")
        spread = "" if half != half else f" +- {scale * half:.4g}"
        found = f"test {result.metric} {scale * mean:.4g}{spread}{unit}"
        self.display.say(f"{place.name}: {found}")
        return "filled"

    def _choose(self, cell: Cell, journal: Path) -> tuple[Point, Sequence[Trial]] | None:
        """The point to train with and the trials that led to it; ``None`` if time ran out."""
        rows = self.store.rows(cell)
        if rows:  # all seeds of a cell are trained alike
            return rows[0]["point"], ()
        if not cell.space:
            return {}, ()
        tuned = tune(
            cell.table({}, [0]),
            cell.space,
            cell.tuning,
            storage=journal,
            study=cell.stem,
            display=self.display,
            deadline=self.deadline,
            cache=self.cache,
        )
        return (tuned.point, tuned.trials) if tuned.complete else None

    def _train(self, cell: Cell, folder: Path, point: Point, seeds: Sequence[int]) -> RunResult:
        content = json.dumps([dict(point), list(seeds)], sort_keys=True)
        path = folder / f"run-{seeds[0]}-{text_checksum(content)[:8]}"
        options: dict[str, Any] = {"display": self.display, "cache": self.cache}
        if (path / "config.toml").exists():
            return resume(path, **options)
        if path.exists():  # of a process that was killed before it began
            shutil.rmtree(path)
        return train(cell.data["name"], cell.table(point, seeds), output=path, **options)

    def _fail(self, place: Place, error: NLSFError) -> None:
        self.result.failed.append((place.name, str(error)))
        self.display.say(f"{place.name}: {error}")

    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


@contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Holds the folder of a cell; gives whether it was free."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(RunFolder(folder).lock())
        except ConfigError:
            free = False
        else:
            free = True
        yield free
