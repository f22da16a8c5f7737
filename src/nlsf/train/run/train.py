"""A whole run, from settings to measured models: `train` and `resume`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.data.metrics import default_metrics, interval, loss, measure
from nlsf.data.protocols import digest
from nlsf.display.progress import Progress
from nlsf.errors import ModelError
from nlsf.nn.plans import Plan, sees_whole_graph
from nlsf.train.loop.fit import evaluate
from nlsf.train.loop.group import Group
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.run.provenance import Selected, versions
from nlsf.train.run.training import Habits, Meter, Training
from nlsf.train.settings.toml import merged, parse_toml


def solved(
    job: Job, group: list[int], display: Progress
) -> tuple[dict[str, Tensor], list[dict[str, Any]]] | None:
    """The selected state and the facts of each model, as a training gives them.

    Args:
        job: the data, and the model's name.
        group: the numbers of the models.
        display: is told about each.

    Returns:
        The outputs (M, n, C) of all examples, by the name of the model's one buffer, and the
        facts; ``None`` for models that have to be trained.
    """
    outputs, facts = [], []
    for number in group:
        began = time.perf_counter()
        found = job.solution(number)
        if found is None:
            return None
        seconds = time.perf_counter() - began
        outputs.append(found)
        facts.append({"best_epoch": 0, "epochs": 0, "seconds": seconds, "together": 1})
        display.say(
            f"{job.config.data.name}, {job.config.model['name']}: seed {job.config.seeds[number]} "
            f"solved in {seconds:.2f} s"
        )
    return {"outputs": torch.stack(outputs)}, facts


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
    display: Progress | None = None,
    cache: bool = True,
    checkpoint_seconds: float = 10.0,
    tensorboard: bool = False,
    memory: int | None = None,
    group: Group | None = None,
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
        group: processes that share the training, each of which makes this call; the first one
            writes the folder, and all get the result.

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
    group = group or Group()
    job = _shared(lambda: Job.of(table, None if isinstance(data, str) else data), group)

    def new() -> RunFolder:
        if output is not None:
            return RunFolder.create_at(Path(output))
        stem = f"{Path(name).stem}-{job.config.model['name']}".lower()
        return RunFolder.create(Path(runs), stem)

    def begin() -> None:
        locked.enter_context(folder.lock())
        folder.write_config(job.config.to_toml())

    folder = group.once(new)
    with ExitStack() as locked:
        group.once(begin)
        habits = Habits(display, cache, checkpoint_seconds, tensorboard, memory, group)
        return _run(job, folder, habits)


def resume(
    path: str | Path,
    *,
    dataset: Dataset | None = None,
    display: Progress | None = None,
    cache: bool = True,
    checkpoint_seconds: float = 10.0,
    tensorboard: bool = False,
    memory: int | None = None,
    group: Group | None = None,
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
        group: as in `train`; it need not be as large as the one before.

    Raises:
        ConfigError: the run's configuration has changed since.
        DataError: its data, labels or splits have changed since.
    """
    group = group or Group()
    folder = group.once(lambda: RunFolder.open(Path(path)))
    text = group.once(folder.read_config)
    job = _shared(lambda: Job.of(parse_toml(text, folder.path / "config.toml"), dataset), group)

    def begin() -> list[dict[str, Any]] | None:
        locked.enter_context(folder.lock())
        return folder.results() if folder.finished else None

    with ExitStack() as locked:
        rows = group.once(begin)
        if rows is not None:
            return RunResult(folder, job.config.metric, rows)
        habits = Habits(display, cache, checkpoint_seconds, tensorboard, memory, group)
        return _run(job, folder, habits)


def _shared(make: Callable[[], Job], group: Group) -> Job:
    """The job of all processes; refuses what cannot be trained before a folder is made."""
    job = group.each(make)
    model = job.model(job.config.seeds[0])
    if group.size == 1:
        return job
    if sees_whole_graph(model, job.dataset):
        raise ModelError(
            f"{job.config.model['name']} sees all of {job.dataset.name} in every step, so "
            f"{group.size} processes would all do the same work: start one, without torchrun. "
            "Models of graphs and of signals can share their batches, and so can models of nodes "
            "whose way to the filter is linear (model.encoder = 'linear', model.input_dropout = 0)."
        )
    settings = {k: v for k, v in job.config.to_table().items() if k != "data"}
    group.check_same("settings", settings)
    group.check_same("data", job.digests)
    return job


def _run(job: Job, folder: RunFolder, habits: Habits) -> RunResult:
    try:
        return _trained(job, folder, habits)
    except KeyboardInterrupt as error:
        # In the middle of an epoch: what counts is the last checkpoint, which is whole.
        raise Interrupted(folder) from error


def _trained(job: Job, folder: RunFolder, habits: Habits) -> RunResult:
    processes = habits.processes
    processes.once(
        lambda: folder.log(f"{job.dataset.name}: {_seeds(job, processes)}, {versions()}")
    )
    started = time.perf_counter()
    with habits.display as display:
        plan = processes.each(
            lambda: job.plan(cache=habits.cache, progress=display.say, memory=habits.memory)
        )
        prepared = time.perf_counter() - started
        selected = processes.once(lambda: Selected.read(folder, job))
        for group in job.groups():
            if not selected.holds(group):
                found = _solved(job, group, display)
                if found is None:
                    training = Training(job, plan, folder, habits, group)
                    found = training.run(selected.metrics_size)
                selected.add(group, *found)
                processes.once(lambda: selected.write(folder, job))

        def end() -> RunResult:
            # Selection is over: only from here on are test labels read.
            rows = _measure(job, plan, selected, prepared, folder.spec)
            folder.write_results(rows)
            result = RunResult(folder, job.config.metric, rows)
            folder.log(f"finished: test {job.config.metric} {result.summary()[0]:.4f}")
            return result

        return processes.once(end)


def _seeds(job: Job, processes: Group) -> str:
    where = f" in {processes.size} processes" if processes.size > 1 else ""
    return f"{len(job.config.seeds)} seed(s){where}"


def _solved(
    job: Job, group: list[int], display: Progress
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


def _measure(
    job: Job, plan: Plan, selected: Selected, prepared: float, spec: str
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
            output = evaluate(model, plan, examples)
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
