"""One group of models, trained to the end, with its checkpoints: `Training`.

`Usage` is what that costs; `TensorBoardWriter` shows its curves elsewhere.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import Tensor

from nlsf.display.progress import Phase, Progress
from nlsf.errors import ConfigError, ModelError
from nlsf.nn.plans import Plan
from nlsf.train.loop.group import Group
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.run.provenance import check_origin, origin


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

    def __enter__(self) -> TensorBoardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


if sys.platform != "win32":
    import resource


@dataclass(frozen=True)
class Usage:
    """Time and memory, as they stand in checkpoints and in rows of results.

    Attributes:
        seconds: of the clock.
        cpu_seconds: of all threads of the process, in user and system mode; ``None`` where a part
            was not measured.
        peak_memory: the largest resident size of the process, in bytes. It is an upper bound: all
            that the process has done before, such as loading data and computing spectra, is in it.
            ``None`` where the system does not tell.
    """

    seconds: float = 0.0
    cpu_seconds: float | None = 0.0
    peak_memory: int | None = None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Usage:
        """Reads the keys of `to_table`; those that an older checkpoint lacks are not known."""
        return cls(table["seconds"], table.get("cpu_seconds"), table.get("peak_memory"))

    def to_table(self) -> dict[str, Any]:
        """The three numbers by name."""
        return asdict(self)


class Meter:
    """Measures from its making on, and adds what was spent before.

    Args:
        before: by processes that were interrupted.
    """

    def __init__(self, before: Usage | None = None) -> None:
        self.before = before or Usage()
        self._clock, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Usage:
        """What was spent so far."""
        cpu = self.before.cpu_seconds
        peaks = [p for p in (self.before.peak_memory, peak_memory()) if p is not None]
        return Usage(
            self.before.seconds + time.perf_counter() - self._clock,
            None if cpu is None else cpu + time.process_time() - self._cpu,
            max(peaks, default=None),
        )


def peak_memory() -> int | None:
    """The largest resident size of this process so far, in bytes, where the system tells it."""
    if sys.platform == "win32":
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


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
        display: Progress | None,
        cache: bool,
        checkpoint_seconds: float,
        tensorboard: bool,
        memory: int | None,
        processes: Group,
    ) -> None:
        # Only the first process is seen and leaves anything behind.
        first = processes.first
        self.display = display if display is not None and first else Progress()
        self.checkpoint_seconds = checkpoint_seconds if first else math.inf
        self.tensorboard = tensorboard and first
        self.cache, self.memory, self.processes = cache, memory, processes


class Training:
    """One group of models, with its checkpoints.

    Args:
        job: data, models and settings.
        plan: of all models.
        folder: where metrics and checkpoints go.
        habits: how it is done.
        group: the numbers of the models that train together.
    """

    def __init__(
        self,
        job: Job,
        plan: Plan,
        folder: RunFolder,
        habits: Habits,
        group: list[int],
    ) -> None:
        self.job, self.folder, self.habits, self.group = job, folder, habits, group
        self.display = habits.display
        self.board: TensorBoardWriter | None = None
        self.seeds = [job.config.seeds[number] for number in group]
        self.fit = job.fit(plan, group, habits.processes)
        self.spent = Usage()

    def run(self, metrics_size: int) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
        """Trains to the end: the selected weights, and the facts of each model."""
        self._go_on(metrics_size)
        if self.habits.tensorboard:
            place = self.folder.path / "tensorboard" / f"seed-{self.seeds[0]}"
            self.board = TensorBoardWriter(place, done=self.fit.epoch)
        config = self.job.config
        count = len(self.group)
        phase = self.display.phase(
            f"{config.data.name}, {config.model['name']}",
            config.training.epochs,
            unit="epoch",
            done=self.fit.epoch,
            at_most=True,
            detail="1 model" if count == 1 else f"{count} models",
        )
        meter, saved = Meter(self.spent), time.perf_counter()
        try:
            with phase as epochs:
                while not self.fit.finished:
                    rows = self.fit.step()
                    self._check_finite(rows)
                    if self.habits.processes.first:
                        self._report(rows, epochs)
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

    def _report(self, rows: list[dict[str, Any]], epochs: Phase) -> None:
        metric = f"val_{self.job.config.metric}"
        lines = [{"seed": self.seeds[row.pop("model")], **row} for row in rows]
        self.folder.append_metrics(lines)
        names = ("train_loss", "val_loss", metric)
        means = {name: sum(row[name] for row in rows) / len(rows) for name in names}
        best = self.fit.best_score()
        # In the warm-up, nothing is best yet.
        known = {f"best_{metric}": best} if math.isfinite(best) else {}
        models = len(self.group)
        note = f"{len(self.fit.active)} of {models} models training" if models > 1 else ""
        epochs.advance(self.fit.epoch, {**means, **known}, note)
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
            self.display.say(f"Going on after epoch {self.fit.epoch}")
