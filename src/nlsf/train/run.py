"""A whole run, from settings to measured models: `train` and `resume`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.data.split_file import digest
from nlsf.errors import ModelError
from nlsf.train.display import Display, SilentDisplay
from nlsf.train.fit import Fit, evaluate
from nlsf.train.inputs import Inputs
from nlsf.train.job import Job
from nlsf.train.metrics import default_metrics, interval, loss, measure
from nlsf.train.run_folder import RunFolder
from nlsf.train.selected import Selected, check_spec
from nlsf.train.solution import solved
from nlsf.train.tables import merged, parse_toml
from nlsf.train.tensorboard import TensorBoardWriter
from nlsf.train.usage import Meter, Usage
from nlsf.train.versions import versions


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; its last checkpoint is whole.

    Attributes:
        folder: the run, to go on with.
    """

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(f"Stopped: go on with {folder.path}.")
        self.folder = folder


@dataclass(frozen=True)
class RunResult:
    """What a run found.

    Attributes:
        folder: where everything lies.
        metric: what is reported first.
        rows: one a seed, with all metrics, versions, times and memory.
    """

    folder: RunFolder
    metric: str
    rows: list[dict[str, Any]]

    def summary(self, part: str = "test", metric: str | None = None) -> tuple[float, float]:
        """The mean over seeds, and half the width of its 95 % interval (NaN for one seed)."""
        return interval([row[f"{part}_{metric or self.metric}"] for row in self.rows])


def train(
    data: str | Dataset,
    settings: Mapping[str, Any] | None = None,
    *,
    output: str | Path | None = None,
    runs: str | Path = "runs",
    display: Display | None = None,
    cache: bool = True,
    checkpoint_seconds: float = 10.0,
    tensorboard: bool = False,
    memory: int | None = None,
) -> RunResult:
    """Trains a model on every seed of a data set and measures it on the test examples.

    Args:
        data: a name of the catalogue, the path of a file, or a `Dataset`.
        settings: tables as in a run's TOML: ``{"model": {"name": "value"}, "seeds": 10}``.
        output: the run's folder; by default a new one below ``runs``.
        runs: where new folders are made.
        display: shows the progress; silent by default.
        cache: keep spectra on disk for the next time.
        checkpoint_seconds: time between checkpoints.
        tensorboard: also write scalars for TensorBoard.
        memory: bytes that preparing a large graph may take beside the graph and its features.

    Example:
        >>> import tempfile
        >>> quick = {"training": {"epochs": 3}, "seeds": 2}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = train("digits", quick, runs=folder, cache=False)
        >>> [row["seed"] for row in result.rows]
        [0, 1]
    """
    name = data if isinstance(data, str) else data.name
    table = merged(settings or {}, {"data": {"name": name}})
    job = Job.of(table, None if isinstance(data, str) else data)
    job.model(job.config.seeds[0])  # refuses what no model can be, before a folder is made
    if output is None:
        stem = f"{Path(name).stem}-{job.config.model['name']}".lower()
        folder = RunFolder.create(Path(runs), stem)
    else:
        folder = RunFolder.create_at(Path(output))
    with folder.lock():
        folder.write_config(job.config.to_toml())
        habits = _Habits(display or SilentDisplay(), cache, checkpoint_seconds, tensorboard, memory)
        return _run(job, folder, habits)


def resume(
    path: str | Path,
    *,
    dataset: Dataset | None = None,
    display: Display | None = None,
    cache: bool = True,
    checkpoint_seconds: float = 10.0,
    tensorboard: bool = False,
    memory: int | None = None,
) -> RunResult:
    """Goes on with a run that was interrupted; the result is as if it had not been.

    Args:
        path: the run's folder.
        dataset: the data, where the run was started with a `Dataset` rather than a name.
        display: as in `train`.
        cache: as in `train`.
        checkpoint_seconds: as in `train`.
        tensorboard: as in `train`.
        memory: as in `train`.
    """
    folder = RunFolder.open(Path(path))
    job = Job.of(parse_toml(folder.read_config(), folder.path / "config.toml"), dataset)
    with folder.lock():
        if folder.finished:
            return RunResult(folder, job.config.metric, folder.results())
        habits = _Habits(display or SilentDisplay(), cache, checkpoint_seconds, tensorboard, memory)
        return _run(job, folder, habits)


@dataclass(frozen=True)
class _Habits:
    """What does not change a run's numbers."""

    display: Display
    cache: bool
    checkpoint_seconds: float
    tensorboard: bool
    memory: int | None


def _run(job: Job, folder: RunFolder, habits: _Habits) -> RunResult:
    try:
        return _trained(job, folder, habits)
    except KeyboardInterrupt as error:
        # In the middle of an epoch: what counts is the last checkpoint, which is whole.
        raise Interrupted(folder) from error


def _trained(job: Job, folder: RunFolder, habits: _Habits) -> RunResult:
    folder.log(f"{job.dataset.name}: {len(job.config.seeds)} seed(s), {versions()}")
    started = time.perf_counter()
    with habits.display as display:
        inputs = job.inputs(cache=habits.cache, progress=display.message, memory=habits.memory)
        prepared = time.perf_counter() - started
        selected = Selected.read(folder)
        for group in job.groups():
            if not selected.holds(group):
                found = _solved(job, group, display)
                if found is None:
                    training = _Training(job, inputs, folder, habits, group)
                    found = training.run(selected.metrics_size)
                selected.add(group, *found)
                selected.write(folder, job)
        # Selection is over: only from here on are test labels read.
        rows = _measure(job, inputs, selected, prepared, folder.spec)
        folder.write_results(rows)
    result = RunResult(folder, job.config.metric, rows)
    folder.log(f"finished: test {job.config.metric} {result.summary()[0]:.4f}")
    return result


def _solved(
    job: Job, group: list[int], display: Display
) -> tuple[dict[str, Tensor], list[dict[str, Any]]] | None:
    """As `solved`, each model with what it cost."""
    weights, facts = [], []
    for number in group:
        meter = Meter()
        found = solved(job, [number], display)
        if found is None:
            return None
        weights.append(found[0])
        facts.append({**found[1][0], **meter.read().to_table()})
    return {name: torch.cat([one[name] for one in weights]) for name in weights[0]}, facts


class _Training:
    """One group of models, with its checkpoints."""

    def __init__(
        self,
        job: Job,
        inputs: Inputs,
        folder: RunFolder,
        habits: _Habits,
        group: list[int],
    ) -> None:
        self.job, self.folder, self.habits, self.group = job, folder, habits, group
        self.display = habits.display
        self.board: TensorBoardWriter | None = None
        self.seeds = [job.config.seeds[number] for number in group]
        self.fit = Fit(
            [job.model(seed) for seed in self.seeds],
            inputs,
            [job.lesson(job.splits[number]) for number in group],
            [job.config.training] * len(group),
            self.seeds,
            job.config.metric,  # type: ignore[arg-type]
        )
        self.spent = Usage()

    def run(self, metrics_size: int) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
        """Trains to the end: the selected weights, and the facts of each model."""
        self._go_on(metrics_size)
        if self.habits.tensorboard:
            place = self.folder.path / "tensorboard" / f"seed-{self.seeds[0]}"
            self.board = TensorBoardWriter(place, done=self.fit.epoch)
        config = self.job.config
        self.display.start(
            config.training.epochs, len(self.group), f"{config.data.name}, {config.model['name']}"
        )
        meter, saved = Meter(self.spent), time.perf_counter()
        try:
            while not self.fit.finished:
                self._report(self.fit.step())
                now = time.perf_counter()
                if now - saved > self.habits.checkpoint_seconds:
                    self._save(meter.read())
                    saved = now
        finally:
            if self.board is not None:
                self.board.close()
        spent = meter.read().to_table()
        facts = [
            {
                "best_epoch": int(best),
                "epochs": int(last),
                **spent,  # of the whole group
                "together": len(self.group),
            }
            for best, last in zip(self.fit.best_epoch, self.fit.last_epoch, strict=True)
        ]
        return self.fit.best, facts

    def _report(self, rows: list[dict[str, Any]]) -> None:
        metric = f"val_{self.job.config.metric}"
        self._check_finite(rows)
        lines = [{"seed": self.seeds[row.pop("model")], **row} for row in rows]
        self.folder.append_metrics(lines)
        names = ("train_loss", "val_loss", metric)
        means = {name: sum(row[name] for row in rows) / len(rows) for name in names}
        best = self.fit.best_score()
        self.display.epoch(self.fit.epoch, means, {metric: best, "running": len(self.fit.active)})
        if self.board is not None:
            self.board.write(self.fit.epoch, means)

    def _check_finite(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if not math.isfinite(row["train_loss"]):
                raise ModelError(
                    f"The training loss of seed {self.seeds[row['model']]} is {row['train_loss']} "
                    f"in epoch {row['epoch']}: lower training.lr, or look at the features."
                )

    def _save(self, spent: Usage) -> None:
        tensors, meta = self.fit.state()
        size = self.folder.metrics_size()
        extra = {
            "group": self.group,
            "metrics_size": size,
            **spent.to_table(),
            "spec": self.folder.spec,
        }
        self.folder.save_checkpoint(tensors, {**meta, **extra})

    def _go_on(self, metrics_size: int) -> None:
        """From the last checkpoint, if it is one of this group; else from the start."""
        found = self.folder.load_checkpoint()
        if found is not None and found[1]["group"] == self.group:
            tensors, meta = found
            check_spec(meta, self.folder)
            self.fit.load_state(tensors, meta)
            self.spent, metrics_size = Usage.of(meta), meta["metrics_size"]
            self.display.message(f"Going on after epoch {self.fit.epoch}")
        self.folder.rewind_metrics(metrics_size)


def _measure(
    job: Job, inputs: Inputs, selected: Selected, prepared: float, spec: str
) -> list[dict[str, Any]]:
    """One row of results a seed, in the order of the seeds."""
    config = job.config
    metrics = dict.fromkeys((config.metric, *default_metrics(job.dataset.is_regression)))
    rows = []
    for number, (seed, split) in enumerate(zip(config.seeds, job.splits, strict=True)):
        model = job.model(seed)
        model.load_state_dict(selected.weights[number])
        lesson = job.lesson(split)
        numbers: dict[str, float] = {}
        for part, examples, y in (
            ("train", lesson.train, lesson.train_y),
            ("val", lesson.val, lesson.val_y),
            ("test", split.test, job.test_labels(split)),
        ):
            output = evaluate(model, inputs, examples)
            numbers |= {f"{part}_{name}": measure(name, output, y) for name in metrics}
            numbers[f"{part}_loss"] = float(loss(output, y))
        rows.append(
            {
                "data": job.dataset.name,
                "model": config.model["name"],
                "protocol": config.protocol,
                "seed": seed,
                **numbers,
                **selected.facts[number],
                "prepare_seconds": prepared,
                "sizes": [len(part) for part in split.parts],
                "split": digest(split),
                "spec": spec,
                "versions": versions(),
            }
        )
    return rows
