"""What tuning is asked for and what it finds: `Tuning`, `Trial`, `Tuned`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from nlsf.errors import ConfigError
from nlsf.experiments.space import Point
from nlsf.train.settings.config import TrainingConfig
from nlsf.train.settings.toml import from_table

State: TypeAlias = Literal["complete", "pruned", "failed", "running", "waiting"]

_MAX_TRIALS = 100_000
_MAX_SPLITS = 100


@dataclass(frozen=True)
class Tuning:
    """How much is spent on finding settings.

    Attributes:
        trials: points that are tried, the defaults included; never more than the space has.
        splits: splits that every point is trained on.
        training: settings of the training that hold while tuning only, as ``{"patience": 60}``.
    """

    trials: int = 20
    splits: int = 3
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, most in (("trials", _MAX_TRIALS), ("splits", _MAX_SPLITS)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not 1 <= value <= most:
                raise ConfigError(f"tuning.{name} must be a number from 1 to {most}, not {value}.")
        if not isinstance(self.training, Mapping):
            raise ConfigError(f"tuning.training must be a table, not {self.training!r}.")
        from_table(TrainingConfig, self.training, "tuning.training")


@dataclass(frozen=True)
class Trial:
    """One point that was tried.

    Attributes:
        number: counted from 0; one is missing where a worker died, or a known point was drawn.
        point: the choice for every key.
        value: the mean validation metric over the splits; what was reached, where it was pruned.
        state: ``"pruned"`` where it fell behind and was stopped.
        seconds: how long it took.
        epochs: how many were trained, in the longest of its trainings.
        error: why it failed.
        worker: the machine and process that ran it.
    """

    number: int
    point: Point
    value: float | None
    state: State
    seconds: float | None = None
    epochs: int | None = None
    error: str | None = None
    worker: str | None = None


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes:
        point: the best one; the defaults as long as no trial is complete.
        value: its mean validation metric, NaN as long as no trial is complete.
        trials: all of them, in their order.
        metric: which metric it is.
        complete: whether all trials were done; not so where the deadline came first.
        default: the point of the defaults.
    """

    point: Point
    value: float
    trials: tuple[Trial, ...]
    metric: str
    complete: bool
    default: Point = field(default_factory=dict)
