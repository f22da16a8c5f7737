"""The training loop: `Fit`, and when it ends: `EarlyStopping`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.data.dataset import Lesson, Metric
from nlsf.data.metrics import higher_is_better, loss, score
from nlsf.errors import ModelError
from nlsf.nn.models.parts import parameter_groups
from nlsf.nn.plans import Plan
from nlsf.train.loop.group import Group
from nlsf.train.loop.model_batch import BatchAdam, ModelBatch, WeightAverage
from nlsf.train.settings.config import TrainingConfig


class EarlyStopping:
    """Keeps the best epoch of every model, and says when it has been long enough without one.

    With the monitor ``"metric"`` a model is better when its validation metric is higher, or equal
    at a lower loss; with ``"loss"`` when its loss is lower. On few labels the best validation loss
    can be that of an untrained model, so epochs up to ``warmup`` are not candidates; nor are those
    whose loss is not a number.

    Args:
        models: M.
        patience: epochs without improvement after which a model stops.
        monitor: ``"metric"`` or ``"loss"``.
        warmup: epochs that do not count.
    """

    def __init__(self, models: int, patience: int, monitor: str, warmup: int = 0) -> None:
        self.patience, self.monitor, self.warmup = patience, monitor, warmup
        self.metric = torch.full((models,), -torch.inf, dtype=torch.float64)
        self.loss = torch.full((models,), torch.inf, dtype=torch.float64)
        self.epoch = torch.zeros(models, dtype=torch.int64)

    def update(self, epoch: int, metric: Tensor, loss: Tensor) -> Tensor:
        """Takes in an epoch, counted from 1; says which models (M,) are now at their best.

        Args:
            epoch: the epoch.
            metric: (M,), higher is better.
            loss: (M,).
        """
        metric, loss = metric.to(self.metric), loss.to(self.loss)
        better = loss < self.loss
        if self.monitor == "metric":
            better = (metric > self.metric) | ((metric == self.metric) & better)
        # A model that never gave a number better than none still keeps its first candidate.
        better |= self.epoch == 0
        # A model that diverged can still guess many labels right.
        better &= ~(metric.isnan() | loss.isnan())
        if epoch <= self.warmup:
            better = torch.zeros_like(better)
        self.metric = torch.where(better, metric, self.metric)
        self.loss = torch.where(better, loss, self.loss)
        self.epoch = torch.where(better, epoch, self.epoch)
        return better

    def stopped(self, epoch: int) -> Tensor:
        """The models (M,) that have waited long enough."""
        return epoch - self.epoch.clamp(min=self.warmup) >= self.patience

    def keep(self, index: Tensor) -> None:
        """Goes on with some of the models."""
        self.metric, self.loss, self.epoch = (
            self.metric[index],
            self.loss[index],
            self.epoch[index],
        )

    def state(self) -> dict[str, Tensor]:
        """What `load_state` takes back."""
        return {"metric": self.metric, "loss": self.loss, "epoch": self.epoch}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Goes on where another left off."""
        self.metric, self.loss, self.epoch = state["metric"], state["loss"], state["epoch"]


class Fit:
    """Many models of one shape, trained together with Adam and early stopping.

    Each has its own lesson, seed and settings, and gets the same numbers as if it were alone; a
    model that stops early leaves the batch. The weights that are kept are those of its best epoch
    on the validation examples, or their running mean there (`WeightAverage`).

    Args:
        models: the models; they keep their weights, the batch trains copies.
        plan: how they are applied.
        lessons: one a model, of equal sizes.
        settings: one a model; they may differ in learning rates and weight decays only.
        seeds: one a model.
        metric: the metric that is monitored.
        group: the processes that share the work; each has a `Fit` of the same models.

    Attributes:
        epoch: the number of epochs that are done.
        best: the weights of every model at its best epoch: (M, ...) by name.
        best_epoch: that epoch, (M,).
        last_epoch: the last epoch that each has trained, (M,).
        active: the numbers of the models that still train.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        plan: Plan,
        lessons: Sequence[Lesson],
        settings: Sequence[TrainingConfig],
        seeds: Sequence[int],
        metric: Metric,
        group: Group | None = None,
    ) -> None:
        self.settings = settings[0]
        if any(s.schedule != self.settings.schedule for s in settings):
            raise ModelError("Models trained together must agree in all but rates and decays.")
        self.metric, self.seeds = metric, list(seeds)
        self.group = group or Group()
        self.batch = ModelBatch(models, plan, seeds, self.group)
        self.lessons = _stack(lessons)
        groups = parameter_groups(models[0])
        self.adam = BatchAdam(
            self.batch.params,
            {name: [s.learning_rate(group) for s in settings] for name, group in groups.items()},
            {name: [s.decay(group) for s in settings] for name, group in groups.items()},
        )
        self.average = WeightAverage(self.batch, self.settings.average)
        self.stopping = EarlyStopping(
            len(models), self.settings.patience, self.settings.monitor, self.settings.warmup
        )
        self.epoch = 0
        self.best = self.batch.weights()
        self.best_epoch = torch.zeros(len(models), dtype=torch.int64)
        self.last_epoch = torch.zeros(len(models), dtype=torch.int64)
        self.best_metric = torch.full((len(models),), torch.nan, dtype=torch.float64)
        self.active = torch.arange(len(models))

    @property
    def finished(self) -> bool:
        """Whether every model has stopped, or the epochs are used up."""
        return len(self.active) == 0 or self.epoch >= self.settings.epochs

    def step(self) -> list[dict[str, Any]]:
        """One epoch of all active models: a row of numbers for each."""
        train_loss = self._train()
        self.epoch += 1
        self.last_epoch[self.active] = self.epoch
        sign = 1 if higher_is_better(self.metric) else -1
        with self.average.applied():
            val_loss, val_score = self._validate()
            better = self.stopping.update(self.epoch, sign * val_score, val_loss)
            self._remember(better, val_score)
        rows = [
            {
                "model": int(model),
                "epoch": self.epoch,
                "train_loss": float(train_loss[i]),
                "val_loss": float(val_loss[i]),
                f"val_{self.metric}": float(val_score[i]),
                "best": bool(better[i]),
            }
            for i, model in enumerate(self.active)
        ]
        self._keep((~self.stopping.stopped(self.epoch)).nonzero().squeeze(-1))
        return rows

    def checked_step(self) -> list[dict[str, Any]]:
        """The same, where to go on would be of no use after a model has diverged.

        Raises:
            ModelError: a training loss is not a finite number.
        """
        rows = self.step()
        for row in rows:
            if not math.isfinite(row["train_loss"]):
                raise ModelError(
                    f"The training loss of seed {self.seeds[row['model']]} is {row['train_loss']} "
                    f"in epoch {row['epoch']}: lower training.lr, or look at the features."
                )
        return rows

    def run(self) -> None:
        """All epochs."""
        while not self.finished:
            self.step()

    def best_score(self) -> float:
        """The mean over all models of the metric at their best epoch so far."""
        return float(self.best_metric.mean())

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that `load_state` needs to go on: tensors and numbers."""
        tensors = {
            **{f"weights.{k}": v for k, v in self.batch.weights().items()},
            **{f"adam.{k}": v for k, v in self.adam.state().items()},
            **{f"stopping.{k}": v for k, v in self.stopping.state().items()},
            **{f"average.{k}": v for k, v in self.average.state().items()},
            **{f"best.{k}": v for k, v in self.best.items()},
            "generators": self.batch.generator_states(),
            "active": self.active,
            "best_epoch": self.best_epoch,
            "best_metric": self.best_metric,
            "last_epoch": self.last_epoch,
        }
        return tensors, {"epoch": self.epoch, "steps": self.adam.steps}

    def load_state(self, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
        """Goes on where another `Fit` of the same models, lessons and settings left off."""

        def part(prefix: str) -> dict[str, Tensor]:
            start = f"{prefix}."
            return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}

        self.best = part("best")
        for name in ("best_epoch", "best_metric", "last_epoch"):
            setattr(self, name, tensors[name])
        self.epoch = meta["epoch"]
        self._keep(tensors["active"])
        if self.finished:
            return
        self.batch.load_weights(part("weights"))
        self.batch.load_generator_states(tensors["generators"])
        self.adam.load_state(part("adam"), meta["steps"])
        self.average.load_state(part("average"))
        self.stopping.load_state(part("stopping"))

    def _train(self) -> Tensor:
        """The mean training losses (M,) of one epoch."""
        size, lesson = self.settings.batch_size, self.lessons
        count = lesson.train.shape[1]
        if size is None or size >= count or self.batch.plan.whole:
            return self._learn(lesson.train, lesson.train_y)
        order = self.batch.permutations(count)
        total = torch.zeros(len(self.batch), dtype=torch.float64)
        for chosen in _even_chunks(order, size):
            y = _take(lesson.train_y, chosen)
            total += self._learn(lesson.train.gather(1, chosen), y) * chosen.shape[1]
        return total / count

    def _learn(self, rows: Tensor, y: Tensor) -> Tensor:
        """One step; the losses (M,) before it."""
        count = rows.shape[1]
        losses = loss(self.batch.outputs(rows, training=True), y[:, self.group.share(count)])
        losses = losses * self.group.weight(count)
        # The gradient of a sum of losses is each model's own gradient.
        losses.sum().backward()
        losses = self.group.average(self.batch.params.values(), losses)
        self.adam.step()
        self.average.update(self.adam.steps)
        return losses

    @torch.no_grad()
    def _validate(self) -> tuple[Tensor, Tensor]:
        y, count = self.lessons.val_y, self.lessons.val.shape[1]
        rows = self.lessons.val[:, self.group.share(count)]
        parts = self.batch.plan.in_parts(rows)
        chunks = [self.batch.outputs(part, training=False) for part in parts]
        output = self.group.join(torch.cat(chunks, dim=1), count)
        return self.group.agree(loss(output, y)), self.group.agree(score(self.metric, output, y))

    def _remember(self, better: Tensor, metric: Tensor) -> None:
        if not bool(better.any()):
            return
        weights = self.batch.weights()
        where = self.active[better]
        for name, value in weights.items():
            self.best[name][where] = value[better]
        self.best_epoch[where] = self.epoch
        self.best_metric[where] = metric[better].to(self.best_metric)

    def _keep(self, index: Tensor) -> None:
        """Goes on with some of the active models."""
        if len(index) == len(self.active):
            return
        self.active = self.active[index]
        if len(index) == 0:
            return
        self.batch.keep(index)
        self.adam.keep(self.batch.params, index)
        self.average.keep(index)
        self.stopping.keep(index)
        old = self.lessons
        self.lessons = Lesson(
            old.train[index], old.train_y[index], old.val[index], old.val_y[index]
        )


@torch.no_grad()
def evaluate(model: nn.Module, plan: Plan, rows: Tensor) -> Tensor:
    """The outputs (R, C) of one model at some examples, in evaluation mode."""
    model.eval()
    return torch.cat([plan(model, some) for some in plan.in_parts(rows)])


def _stack(lessons: Sequence[Lesson]) -> Lesson:
    """All lessons as one, with a leading dimension."""
    names = ("train", "train_y", "val", "val_y")
    return Lesson(*(torch.stack([getattr(one, name) for one in lessons]) for name in names))


def _even_chunks(order: Tensor, size: int) -> tuple[Tensor, ...]:
    """Batches of at most ``size`` and nearly equal length: batch statistics of one row fail."""
    count = -(-order.shape[1] // size)
    return torch.tensor_split(order, count, dim=1)


def _take(y: Tensor, chosen: Tensor) -> Tensor:
    """The labels (M, b) or (M, b, T) of the chosen examples."""
    if y.ndim == 2:
        return y.gather(1, chosen)
    return y.gather(1, chosen[..., None].expand(-1, -1, y.shape[2]))
