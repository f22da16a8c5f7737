"""The work of a run, from its folder to its results: `Training`.

`Meter` measures what that costs; `TensorBoardWriter` shows the curves elsewhere.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlsf.data.metrics import default_metrics, interval, loss, measure
from nlsf.data.protocols import digest
from nlsf.display.progress import Phase, Progress
from nlsf.errors import ConfigError, ModelError
from nlsf.nn.plans import Plan
from nlsf.train.loop.fit import Fit, evaluate
from nlsf.train.loop.group import Group
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.run.run import Run, check_hashes, hashes_of, versions

if sys.platform != "win32":
    import resource


class TensorBoardWriter:
    """Writes event files that ``tensorboard --logdir`` shows.

    Args:
        folder: where the event files go; it is made.
        done: epochs that are done already. Later ones, which a run wrote before it was killed, are
            hidden: all of them, where it left no checkpoint.
    """

    def __init__(self, folder: Path, *, done: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                "TensorBoard is not installed: pip install 'nlsf[tensorboard]', or leave its "
                "option out."
            ) from error
        self._writer: Any = SummaryWriter(str(folder), purge_step=done + 1)

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        """Adds one point to the curve of each name; what is not finite is left out."""
        for name, value in values.items():
            if math.isfinite(value):
                self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Writes what is left."""
        self._writer.close()


class Meter:
    """Measures time and memory from its making on, and adds what was spent before.

    Args:
        before: what `read` gave in processes that were interrupted. A number that an older
            checkpoint lacks makes the sum unknown.
    """

    def __init__(self, before: Mapping[str, Any] | None = None) -> None:
        self._before = {"seconds": 0.0, "cpu_seconds": 0.0} if before is None else before
        self._clock, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, Any]:
        """What was spent so far, as it stands in checkpoints and in rows of results.

        - ``seconds``: of the clock
        - ``cpu_seconds``: of all threads of the process, in user and system mode; ``None`` where a
          part was not measured
        - ``peak_memory``: the largest resident size of the process, in bytes. It is an upper bound:
          all that the process has done before, such as loading data, is in it. ``None`` where the
          system does not tell
        """
        cpu = self._before.get("cpu_seconds")
        peaks = [p for p in (self._before.get("peak_memory"), peak_memory()) if p is not None]
        return {
            "seconds": self._before["seconds"] + time.perf_counter() - self._clock,
            "cpu_seconds": None if cpu is None else cpu + time.process_time() - self._cpu,
            "peak_memory": max(peaks, default=None),
        }


def peak_memory() -> int | None:
    """The largest resident size of this process so far, in bytes, where the system tells it."""
    if sys.platform == "win32":
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


class Training:
    """Trains the models of a job that its folder lacks, and measures all of them.

    Args:
        job: data, models and settings.
        folder: where metrics, checkpoints, models and results go; it is locked.
        display: shows the progress; ``None`` for a silent one.
        cache: keep spectra on disk.
        checkpoint_seconds: time between checkpoints.
        tensorboard: also write scalars for TensorBoard.
        memory: bytes that preparing a large graph may take.
        group: the processes that share the training. Only the first one is seen and leaves
            anything behind.
    """

    def __init__(
        self,
        job: Job,
        folder: RunFolder,
        *,
        display: Progress | None,
        cache: bool,
        checkpoint_seconds: float,
        tensorboard: bool,
        memory: int | None,
        group: Group,
    ) -> None:
        self.job, self.folder, self.group = job, folder, group
        self.display = display if display is not None and group.first else Progress()
        self.checkpoint_seconds = checkpoint_seconds if group.first else math.inf
        self.tensorboard = tensorboard and group.first
        self.cache, self.memory = cache, memory

    def run(self) -> list[dict[str, Any]]:
        """All of it: the rows of results, one a seed."""
        job, group, started = self.job, self.group, time.perf_counter()
        where = f" in {group.size} processes" if group.size > 1 else ""
        words = f"{job.dataset.name}: {len(job.config.seeds)} seed(s){where}, {versions()}"
        group.once(lambda: self.folder.log(words))
        with self.display as display:
            plan = group.each(
                lambda: job.plan(cache=self.cache, progress=display.say, memory=self.memory)
            )
            check_shareable(job, group, whole=plan.whole)
            prepared = time.perf_counter() - started
            run = group.once(self._begun)
            for numbers in job.trained_together():
                if not run.weights.keys() >= set(numbers):
                    found = self._solve(numbers) or self._train(numbers, plan, run.metrics_size)
                    run.add(numbers, *found)
                    group.once(lambda: run.write(job))
            # Selection is over: only from here on are test labels read.
            return group.once(lambda: self._measure(run, plan, prepared))

    def _begun(self) -> Run:
        """What the run has selected until now, if it is of these data."""
        run = Run(self.folder)
        if run.made_with:
            check_hashes(run.made_with, self.folder, self.job)
        return run

    def _solve(self, numbers: list[int]) -> tuple[dict[str, Tensor], list[dict[str, Any]]] | None:
        """The states and the facts of models without epochs, as `_train` gives them.

        Returns ``None`` for models that have to be trained.
        """
        config, outputs, facts = self.job.config, [], []
        for number in numbers:
            meter = Meter()
            found = self.job.solved(number)
            if found is None:
                return None
            spent = meter.read()
            outputs.append(found)
            facts.append({"best_epoch": 0, "epochs": 0, **spent, "together": 1})
            self.display.say(
                f"{config.data.name}, {config.model['name']}: seed {config.seeds[number]} "
                f"solved in {spent['seconds']:.2f} s"
            )
        return {"outputs": torch.stack(outputs)}, facts

    def _train(
        self, numbers: list[int], plan: Plan, metrics_size: int
    ) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
        """Trains models together: their selected weights, stacked, and the facts of each."""
        config, count = self.job.config, len(numbers)
        fit = self.job.fit(plan, numbers, self.group)
        meter, saved = Meter(self._go_on(fit, numbers, metrics_size)), time.perf_counter()
        board = None
        if self.tensorboard:
            place = self.folder.path / "tensorboard" / f"seed-{fit.seeds[0]}"
            board = TensorBoardWriter(place, done=fit.epoch)
        phase = self.display.phase(
            f"{config.data.name}, {config.model['name']}",
            config.training.epochs,
            unit="epoch",
            done=fit.epoch,
            at_most=True,
            detail="1 model" if count == 1 else f"{count} models",
        )
        try:
            with phase as epochs:
                while not fit.finished:
                    rows = fit.checked_step()
                    if self.group.first:
                        self._report(fit, rows, epochs, board)
                    if time.perf_counter() - saved > self.checkpoint_seconds:
                        self._save(fit, numbers, meter)
                        saved = time.perf_counter()
        finally:
            if board is not None:
                board.close()
        shared = {**meter.read(), "together": count}  # of the whole group
        if self.group.size > 1:
            shared["processes"] = self.group.size
        facts = [
            {"best_epoch": int(best), "epochs": int(last), **shared}
            for best, last in zip(fit.best_epoch, fit.last_epoch, strict=True)
        ]
        return fit.best, facts

    def _report(
        self, fit: Fit, rows: list[dict[str, Any]], epochs: Phase, board: TensorBoardWriter | None
    ) -> None:
        """Writes down an epoch, and shows it."""
        self.folder.append_metrics([{"seed": fit.seeds[row.pop("model")], **row} for row in rows])
        metric, models, warmup = f"val_{fit.metric}", len(fit.best_epoch), fit.settings.warmup
        names = ("train_loss", "val_loss", metric)
        means = {name: sum(row[name] for row in rows) / len(rows) for name in names}
        shown, best, notes = dict(means), fit.best_score(), []
        if math.isfinite(best):
            shown[f"best_{metric}"] = best
        elif fit.epoch <= warmup:
            notes.append(f"warm-up until epoch {warmup}, none of which can be the best")
        if models > 1:
            notes.append(f"{len(fit.active)} of {models} models training")
        epochs.advance(fit.epoch, shown, ", ".join(notes))
        if board is not None:
            board.write(fit.epoch, means)

    def _save(self, fit: Fit, numbers: list[int], meter: Meter) -> None:
        tensors, meta = fit.state()
        beside = {"group": numbers, "metrics_size": self.folder.metrics_size()}
        hashes = hashes_of(self.folder, self.job)
        self.folder.save_checkpoint(tensors, {**meta, **beside, **meter.read(), **hashes})

    def _go_on(self, fit: Fit, numbers: list[int], metrics_size: int) -> dict[str, Any] | None:
        """Takes up the last checkpoint, if it is one of these models: what stands beside it."""

        def last() -> tuple[dict[str, Tensor], dict[str, Any]] | None:
            found = self.folder.load_checkpoint()
            if found is None or found[1]["group"] != numbers:
                self.folder.rewind_metrics(metrics_size)
                return None
            check_hashes(found[1], self.folder, self.job)
            self.folder.rewind_metrics(found[1]["metrics_size"])
            return found

        found = self.group.once(last)
        if found is None:
            return None
        fit.load_state(*found)
        self.display.say(f"Going on after epoch {fit.epoch}")
        return found[1]

    def _measure(self, run: Run, plan: Plan, prepared: float) -> list[dict[str, Any]]:
        """Writes one row of results a seed, in the order of the seeds."""
        job, config = self.job, self.job.config
        metrics = dict.fromkeys((config.metric, *default_metrics(job.dataset.is_regression)))
        software, rows = versions(), []
        for number, (seed, split) in enumerate(zip(config.seeds, job.splits, strict=True)):
            model = run.model(seed, job.dataset.graphs[0].num_nodes)
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
                    **run.facts[number],
                    "prepare_seconds": prepared,
                    "sizes": [len(part) for part in split.parts],
                    "split": digest(split),
                    "spec": self.folder.spec,
                    "versions": software,
                }
            )
        self.folder.write_results(rows)
        mean, _ = interval([row[f"test_{config.metric}"] for row in rows])
        self.folder.log(f"finished: test {config.metric} {mean:.4f}")
        return rows


def check_shareable(job: Job, group: Group, *, whole: bool) -> None:
    """Refuses several processes for a training that sees the whole graph in every step."""
    if whole and group.size > 1:
        raise ModelError(
            f"{job.config.model['name']} sees all of {job.dataset.name} in every step, so "
            f"{group.size} processes would all do the same work: start one, without torchrun. "
            "Models of graphs and of signals can share their batches, and so can models of nodes "
            "whose way to the filter is linear (model.encoder = 'linear', model.input_dropout = 0)."
        )
