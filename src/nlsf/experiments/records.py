"""The trials of a study, read back: `read_trials`, `read_tuned`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nlsf.data.metrics import higher_is_better
from nlsf.errors import ConfigError
from nlsf.experiments.grid import Grid
from nlsf.experiments.space import Space, read_choice
from nlsf.experiments.study import (
    EPOCHS,
    ERROR,
    SPEC,
    WORKER,
    kept_in,
    load_study,
)
from nlsf.experiments.trial import State, Trial, Tuned

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

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
    with kept_in(storage, new=False) as keeper:
        return trials_of(load_study(keeper, study))


def read_tuned(storage: str | Path, study: str, trials: int) -> Tuned:
    """What `nlsf.experiments.tune.tune` with this number of trials has found until now."""
    with kept_in(storage, new=False) as keeper:
        return tuned_of(load_study(keeper, study), trials)


def importances(storage: str | Path, study: str) -> dict[str, float]:
    """The share of each key in what makes trials differ; empty for fewer than 4 complete ones."""
    from optuna.importance import get_param_importances
    from optuna.trial import TrialState

    with kept_in(storage, new=False) as keeper:
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
