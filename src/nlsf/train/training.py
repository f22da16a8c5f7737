"""One group of models, trained to the end, with its checkpoints: `Training`."""

from __future__ import annotations

import math
import time
from typing import Any

from torch import Tensor

from nlsf.errors import ModelError
from nlsf.train.display import Display, SilentDisplay
from nlsf.train.group import Group
from nlsf.train.inputs import Inputs
from nlsf.train.job import Job
from nlsf.train.origin import check_origin, origin
from nlsf.train.run_folder import RunFolder
from nlsf.train.tensorboard import TensorBoardWriter
from nlsf.train.usage import Meter, Usage


class Habits:
    """What does not change a run's numbers, but to rounding.

    Args:
        display: shows the progress; ``None`` for a silent one.
        cache: keep spectra on disk.
        checkpoint_seconds: time between checkpoints.
        tensorboard: also write scalars for TensorBoard.
        memory: bytes that preparing a large graph may take.
        processes: those that share the training.
    """

    def __init__(
        self,
        display: Display | None,
        cache: bool,
        checkpoint_seconds: float,
        tensorboard: bool,
        memory: int | None,
        processes: Group,
    ) -> None:
        # Only the first process is seen and leaves anything behind.
        first = processes.first
        self.display = display if display is not None and first else SilentDisplay()
        self.checkpoint_seconds = checkpoint_seconds if first else math.inf
        self.tensorboard = tensorboard and first
        self.cache, self.memory, self.processes = cache, memory, processes


class Training:
    """One group of models, with its checkpoints.

    Args:
        job: data, models and settings.
        inputs: of all models.
        folder: where metrics and checkpoints go.
        habits: how it is done.
        group: the numbers of the models that train together.
    """

    def __init__(
        self,
        job: Job,
        inputs: Inputs,
        folder: RunFolder,
        habits: Habits,
        group: list[int],
    ) -> None:
        self.job, self.folder, self.habits, self.group = job, folder, habits, group
        self.display = habits.display
        self.board: TensorBoardWriter | None = None
        self.seeds = [job.config.seeds[number] for number in group]
        self.fit = job.fit(inputs, group, habits.processes)
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
                rows = self.fit.step()
                self._check_finite(rows)
                if self.habits.processes.first:
                    self._report(rows)
                now = time.perf_counter()
                if now - saved > self.habits.checkpoint_seconds:
                    self._save(meter.read())
                    saved = now
        finally:
            if self.board is not None:
                self.board.close()
        spent, processes = meter.read().to_table(), self.habits.processes.size
        facts = [
            {
                "best_epoch": int(best),
                "epochs": int(last),
                **spent,  # of the whole group
                "together": len(self.group),
                **({"processes": processes} if processes > 1 else {}),
            }
            for best, last in zip(self.fit.best_epoch, self.fit.last_epoch, strict=True)
        ]
        return self.fit.best, facts

    def _report(self, rows: list[dict[str, Any]]) -> None:
        metric = f"val_{self.job.config.metric}"
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
            **origin(self.folder, self.job),
        }
        self.folder.save_checkpoint(tensors, {**meta, **extra})

    def _go_on(self, metrics_size: int) -> None:
        """From the last checkpoint, if it is one of this group; else from the start."""

        def kept() -> tuple[dict[str, Tensor], dict[str, Any]] | None:
            found = self.folder.load_checkpoint()
            if found is None or found[1]["group"] != self.group:
                self.folder.rewind_metrics(metrics_size)
                return None
            check_origin(found[1], self.folder, self.job)
            self.folder.rewind_metrics(found[1]["metrics_size"])
            return found

        found = self.habits.processes.once(kept)
        if found is not None:
            self.fit.load_state(*found)
            self.spent = Usage.of(found[1])
            self.display.message(f"Going on after epoch {self.fit.epoch}")
