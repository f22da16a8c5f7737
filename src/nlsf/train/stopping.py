"""When to stop, and which epoch to keep, for many models at once: `EarlyStopping`."""

from __future__ import annotations

import torch
from torch import Tensor


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
