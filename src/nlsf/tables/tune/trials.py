"""What tuning is asked for and what it finds: `Tuning`, `Trial`, `Tuned`.

A `Grid` is points as Optuna sees them. `open_study` begins a study or goes on with it, and
`read_trials` and `read_tuned` read what it found.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from nlsf.data.metrics import higher_is_better
from nlsf.errors import ConfigError, FormatError
from nlsf.tables.tune.keeper import EPOCHS, ERROR, SPEC, WORKER, Keeper, keeper_for
from nlsf.tables.tune.space import Choice, Point, Space, decode, encode, read_choice
from nlsf.train.settings.config import TrainingConfig
from nlsf.train.settings.toml import from_table

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial


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


_LISTED = 2_000
"""Points that are listed to find one not tried yet; larger spaces are drawn from."""

_DRAWS = 200
_ALONE = 100
"""Draws of a neighbour that differs in one key, before two may differ."""


@dataclass(frozen=True)
class Grid:
    """A space in the parameters of Optuna.

    Numbers become their place in ascending order, so that the sampler knows which of them are
    neighbours; all other choices become their JSON.

    Attributes:
        space: the choices.
    """

    space: Space

    def distributions(self) -> dict[str, BaseDistribution]:
        """What Optuna draws from, by key."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        return {
            key: IntDistribution(0, len(values) - 1)
            if _ordered(values)
            else CategoricalDistribution([encode(value) for value in values])
            for key, values in self.space.choices.items()
        }

    def params(self, point: Point) -> dict[str, Any]:
        """The parameters of a point."""
        return {
            key: [encode(value) for value in sorted(values)].index(encode(point[key]))  # type: ignore[type-var]
            if _ordered(values)
            else encode(point[key])
            for key, values in self.space.choices.items()
        }

    def point(self, params: Mapping[str, Any]) -> Point:
        """The point of some parameters; those that are not drawn yet are left out."""
        return {
            key: sorted(values)[params[key]] if _ordered(values) else decode(params[key])  # type: ignore[type-var]
            for key, values in self.space.choices.items()
            if key in params
        }

    def neighbour(
        self, point: Point, tried: Collection[str], seed: int, turn: int = 0
    ) -> Point | None:
        """A point that is not tried and differs from this one in a key or two; else ``None``.

        Args:
            point: the point.
            tried: the `key` of every point that is tried.
            seed: of the draw.
            turn: keys take turns: this is whose turn it is to be changed.
        """
        rng = np.random.default_rng(seed)
        free = [name for name, values in self.space.choices.items() if len(values) > 1]
        for draw in range(_DRAWS if free else 0):
            # Where its other choices are all tried, any key may go with it.
            names = [free[turn % len(free)], *rng.choice(free, 1)][: 1 + (draw >= _ALONE)]
            changed = {**point, **{str(name): self._other(str(name), point, rng) for name in names}}
            if key(changed) not in tried:
                return changed
        return None

    def _other(self, name: str, point: Point, rng: np.random.Generator) -> Choice:
        """Another choice of a key than that of a point."""
        others = [v for v in self.space.choices[name] if encode(v) != encode(point[name])]
        return others[int(rng.integers(len(others)))]

    def untried(self, tried: Collection[str], seed: int) -> Point | None:
        """A random point whose `key` is not among those tried; ``None`` if there is none."""
        rng = np.random.default_rng(seed)
        choices = self.space.choices
        if self.space.size <= _LISTED:
            every = (
                dict(zip(choices, values, strict=True))
                for values in itertools.product(*choices.values())
            )
            left = [point for point in every if key(point) not in tried]
            return left[int(rng.integers(len(left)))] if left else None
        while True:  # more points than can be tried, so most draws are new
            point = {
                name: values[int(rng.integers(len(values)))] for name, values in choices.items()
            }
            if key(point) not in tried:
                return point


def key(point: Point) -> str:
    """A text that equal points share."""
    return encode(dict(point))


def _ordered(values: tuple[Choice, ...]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


_STATES: dict[str, State] = {
    "COMPLETE": "complete",
    "PRUNED": "pruned",
    "FAIL": "failed",
    "RUNNING": "running",
    "WAITING": "waiting",
}

_NEEDED = 4
"""Complete trials from which on importances are estimated."""


def read_trials(storage: str | Path, study: str) -> list[Trial]:
    """The trials of a study, in their order; without those whose worker died."""
    with keeper_for(storage, new=False) as keeper:
        return trials_of(load_study(keeper, study))


def read_tuned(storage: str | Path, study: str, trials: int) -> Tuned:
    """What `nlsf.tables.tune.search.tune` with this number of trials has found until now."""
    with keeper_for(storage, new=False) as keeper:
        return tuned_of(load_study(keeper, study), trials)


def importances(storage: str | Path, study: str) -> dict[str, float]:
    """The share of each key in what makes trials differ; empty for fewer than 4 complete ones."""
    from optuna.importance import get_param_importances
    from optuna.trial import TrialState

    with keeper_for(storage, new=False) as keeper:
        found = load_study(keeper, study)
        complete = found.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        differ = any(one.params != complete[0].params for one in complete)
        if len(complete) < _NEEDED or not differ:
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dict(get_param_importances(found))


def trials_of(study: Study) -> list[Trial]:
    """The trials of an open study."""
    grid = _grid(study)
    found = study.get_trials(deepcopy=False)
    return [_trial(one, grid) for one in found if not is_lost(one)]


def tuned_of(study: Study, trials: int) -> Tuned:
    """What an open study has found.

    Raises:
        ConfigError: all of its trials failed.
    """
    spec, known = study.user_attrs[SPEC], trials_of(study)
    ended = [one for one in known if one.state in ("complete", "pruned", "failed")]
    enough = min(trials, _grid(study).space.size)
    metric: str = spec["metric"]
    best = best_of(known, metric)
    running = any(one.state in ("running", "waiting") for one in known)
    complete = len(ended) >= enough and not running
    if best is None and complete and all(one.state == "failed" for one in ended):
        raise ConfigError(f"All {len(ended)} trials failed; the first: {ended[0].error}")
    default = {key: read_choice(value) for key, value in spec["default"].items()}
    if best is None or best.value is None:
        return Tuned(default, math.nan, tuple(known), metric, complete, default)
    return Tuned(best.point, best.value, tuple(known), metric, complete, default)


def best_of(trials: Sequence[Trial], metric: str) -> Trial | None:
    """The complete trial with the best value, the first of equal ones."""
    complete = [one for one in trials if one.state == "complete" and one.value is not None]
    sign = 1 if higher_is_better(metric) else -1
    return max(complete, key=lambda one: sign * (one.value or 0.0), default=None)


def is_lost(trial: FrozenTrial) -> bool:
    """Whether a trial was not ended: one that failed by itself has a reason."""
    return trial.state.name == "FAIL" and ERROR not in trial.user_attrs


def _grid(study: Study) -> Grid:
    return Grid(Space.from_table(study.user_attrs[SPEC]["space"]))


def _trial(trial: FrozenTrial, grid: Grid) -> Trial:
    params = trial.params or trial.system_attrs.get("fixed_params", {})
    attrs = trial.user_attrs
    reached = trial.value if trial.state.name != "FAIL" else None
    worker = attrs.get(WORKER)
    return Trial(
        trial.number,
        grid.point(params),
        reached if reached is not None and math.isfinite(reached) else None,
        _STATES[trial.state.name],
        None if trial.duration is None else trial.duration.total_seconds(),
        attrs.get(EPOCHS),
        attrs.get(ERROR),
        None if worker is None else ":".join(worker.split(":")[:2]),
    )


def open_study(
    keeper: Keeper, name: str, spec: Mapping[str, Any], *, maximize: bool, first: Mapping[str, Any]
) -> Study:
    """A study, new or gone on with; call it while `Keeper.alone`.

    Args:
        keeper: where it is kept.
        name: its name.
        spec: what is tuned, in JSON values.
        maximize: whether larger values are better.
        first: parameters of the first trial.

    Raises:
        ConfigError: a study of this name tunes something else.
    """
    import optuna

    known = [one.study_name for one in optuna.get_all_study_summaries(keeper.storage, False)]
    study = optuna.create_study(
        storage=keeper.storage,
        study_name=name,
        direction="maximize" if maximize else "minimize",
        load_if_exists=True,
    )
    # A worker that was killed in here left a study without its spec or its first trial.
    if name not in known or SPEC not in study.user_attrs:
        study.set_user_attr(SPEC, dict(spec))
    before = study.user_attrs[SPEC]
    if other := [
        key for key in {**before, **spec} if _text(before.get(key)) != _text(spec.get(key))
    ]:
        raise ConfigError(
            f"The study {name!r} in {keeper.label} was started with another {' and '.join(other)}: "
            "choose another study name or another storage."
        )
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(dict(first))
    return study


def load_study(keeper: Keeper, name: str) -> Study:
    """A study that exists."""
    import optuna

    known = [one.study_name for one in optuna.get_all_study_summaries(keeper.storage, False)]
    if name not in known:
        there = ", ".join(repr(one) for one in sorted(known)) or "none"
        raise ConfigError(f"There is no study {name!r} in {keeper.label}; there are: {there}.")
    study = optuna.load_study(study_name=name, storage=keeper.storage)
    if SPEC not in study.user_attrs:
        raise FormatError(f"The study {name!r} in {keeper.label} was not made by nlsf.")
    return study


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
