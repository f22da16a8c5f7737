"""Finds settings on validation data: `tune`."""

from __future__ import annotations

import json
import math
import time
import warnings
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlsf.data.metrics import higher_is_better
from nlsf.display.progress import Phase, Progress
from nlsf.errors import ModelError, NLSFError
from nlsf.tables.tune.keeper import EPOCHS, ERROR, WORKER, Keeper, give_back, keeper_for
from nlsf.tables.tune.objective import Objective
from nlsf.tables.tune.space import Space, encode
from nlsf.tables.tune.trials import (
    Grid,
    Trial,
    Tuned,
    Tuning,
    best_of,
    is_lost,
    key,
    open_study,
    trials_of,
    tuned_of,
)
from nlsf.train.settings.config import without_place
from nlsf.train.settings.toml import Table

if TYPE_CHECKING:
    import optuna

_POLL = 0.5
"""Seconds between two looks at what other workers do."""

_NEIGHBOURS = 10
"""First trials, which are all neighbours of the best so far: TPE would draw them at random."""


def tune(
    table: Mapping[str, Any],
    space: Space,
    tuning: Tuning,
    *,
    storage: str | Path,
    study: str,
    display: Progress | None = None,
    deadline: float | None = None,
    cache: bool = True,
) -> Tuned:
    """Tries points of a space; the best mean validation metric over the tuning splits wins.

    The first trial is the defaults, so that the result is never worse than they are on these
    splits. Splits are drawn with seeds from a million on, which no reported split has; where there
    is only a list of given splits, the first ones are taken. Labels of no training and no
    validation part of the tuning splits are never seen; what that promises for reported splits of
    the same examples is in docs/experiments.md. The first ten trials change one key of the best so
    far, each key in its turn; then every second one is drawn by TPE.

    Trials are kept in the storage. Tuning that was interrupted goes on, several processes share the
    trials, and the point of a process that died is tried again. With one worker the same call makes
    the same trials, interrupted or not.

    Args:
        table: the fixed settings, as in a run's TOML; ``seeds`` is not looked at.
        space: the choices.
        tuning: how many trials, on how many splits.
        storage: a journal file, or ``postgresql://USER:PASSWORD@HOST/DATABASE``.
        study: the name of these trials in the storage.
        display: shows the progress; silent by default.
        deadline: no trial begins after this time of `time.monotonic`.
        cache: keep spectra on disk.

    Raises:
        ConfigError: every trial failed (with the reason of the first), or a study of this name
            tunes something else.
        KeyboardInterrupt: the user stopped it; the trial that ran is tried again next time.
    """
    with display or Progress() as shown:
        objective = Objective(
            table, space, splits=tuning.splits, training=tuning.training, cache=cache
        )
        with keeper_for(storage) as keeper:
            worker = _Worker(objective, keeper, tuning, shown, deadline)
            worker.run(study, _spec(table, objective, tuning))
            return tuned_of(worker.study, tuning.trials)


class _Worker:
    """One process that claims trials and runs them."""

    study: optuna.Study
    phase: Phase

    def __init__(
        self,
        objective: Objective,
        keeper: Keeper,
        tuning: Tuning,
        display: Progress,
        deadline: float | None,
    ) -> None:
        self.objective, self.keeper, self.display = objective, keeper, display
        self.grid = Grid(objective.space)
        self.total = min(tuning.trials, objective.space.size)
        self.deadline = math.inf if deadline is None else deadline
        self.worker = ""

    def run(self, name: str, spec: Table) -> None:
        """Claims and runs trials until there are enough, or the deadline has come."""
        with self.keeper.alone():
            self.study = open_study(
                self.keeper,
                name,
                spec,
                maximize=higher_is_better(self.objective.metric),
                first=self.grid.params(self.objective.default),
            )
        self.study.pruner = _pruner(self.objective.epochs)
        over = _over(trials_of(self.study))
        phase = self.display.phase(name, self.total, unit="trial", done=over, every=0.0)
        with phase as self.phase, self.keeper.at_work() as self.worker:
            while time.monotonic() < self.deadline:
                with ExitStack() as work:
                    trial = self._claim(work)
                    if trial is not None:
                        self._run(trial)
                        continue
                if not self._others_run():
                    return
                time.sleep(_POLL)

    def _claim(self, work: ExitStack) -> optuna.Trial | None:
        """A new trial, signed; ``None`` if enough are done or running."""
        from optuna.trial import TrialState

        with self.keeper.alone():
            self.keeper.rescue(self.study)
            found = self.study.get_trials(deepcopy=False)
            states = [trial.state for trial in found]
            queued = TrialState.WAITING in states
            counted = sum(s != TrialState.WAITING for s in states) - sum(map(is_lost, found))
            tried = {key(self.grid.point(trial.params)) for trial in found if trial.params}
            if counted >= self.total or (not queued and len(tried) >= self.objective.space.size):
                return None
            # Of the trials that count, so that no two claims are alike, and interruptions are
            # not seen in what follows.
            seed = _seed(self.study.study_name, counted)
            self.study.sampler = _sampler(seed)
            if not queued and (counted < _NEIGHBOURS or counted % 2):
                self._enqueue_neighbour(tried, seed, counted)
            trial = self._ask()
            if not queued and key(self.grid.point(trial.params)) in tried:
                trial = self._instead(trial, tried, seed)
            work.enter_context(self.keeper.working(trial))
            trial.set_user_attr(WORKER, self.worker)
        return trial

    def _enqueue_neighbour(self, tried: set[str], seed: int, turn: int) -> None:
        """A point next to the best so far: a dozen draws from a whole space find little."""
        best = best_of(trials_of(self.study), self.objective.metric)
        start = self.objective.default if best is None else best.point
        point = self.grid.neighbour(start, tried, seed, turn)
        if point is not None:
            self.study.enqueue_trial(self.grid.params(point))

    def _instead(self, trial: optuna.Trial, tried: set[str], seed: int) -> optuna.Trial:
        """A trial of another point, for one that the sampler drew a second time."""
        from optuna.trial import TrialState

        point = self.grid.untried(tried, seed)
        assert point is not None
        self.study.tell(trial, state=TrialState.FAIL)
        self.study.enqueue_trial(self.grid.params(point))
        return self._ask()

    def _ask(self) -> optuna.Trial:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # heartbeats are for `optimize`: `working` records them
            return self.study.ask(self.grid.distributions())

    def _run(self, trial: optuna.Trial) -> None:
        """Runs a trial to its end, whatever that is."""
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState

        try:
            state, value = self._result(trial)
            self.study.tell(trial, value, state=state, skip_if_finished=True)
        except KeyboardInterrupt:
            with self.keeper.alone():
                ended = self.study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
                if is_lost(ended):  # else its result was written before the interrupt
                    give_back(self.study, ended, died=False)
            raise
        except UpdateFinishedTrialError:
            return  # we were taken for dead, and another worker has the point
        trials = trials_of(self.study)
        mine = next((one for one in trials if one.number == trial.number), None)
        if mine is not None:
            self._show(mine, trials)

    def _show(self, trial: Trial, trials: list[Trial]) -> None:
        """Tells how a trial ended, and which is best."""
        best = best_of(trials, self.objective.metric)
        ended = [f"trial {trial.number} {trial.state}"]
        if trial.value is not None and trial.state != "failed":
            ended.append(f"{trial.value:.4f}")
        if trial.epochs:
            ended.append(f"{trial.epochs} epochs")
        if trial.error is not None:
            self.display.say(f"{'  '.join(ended)}  {trial.error}")
        numbers = {}
        if best is not None and best.value is not None:
            numbers[f"best val {self.objective.metric} (trial {best.number})"] = best.value
        self.phase.advance(_over(trials), numbers, "" if trial.error else "  ".join(ended))

    def _result(self, trial: optuna.Trial) -> tuple[Any, float | None]:
        """The state and the value that a trial ends with."""
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState

        point = self.grid.point(trial.params)
        is_default = key(point) == key(self.objective.default)
        epoch, value = 0, math.nan
        try:
            for epoch, value in self.objective.train(point, self.phase.tell):
                # In the warm-up, nothing is best yet.
                best = f", {value:.4f}" if math.isfinite(value) else ""
                self.phase.tell(f"trial {trial.number}: epoch {epoch}{best}")
                if _is_looked_at(epoch) and math.isfinite(value):
                    trial.report(value, epoch)
                    if not is_default and trial.should_prune():
                        trial.set_user_attr(EPOCHS, epoch)
                        return TrialState.PRUNED, None
            if not math.isfinite(value):
                raise ModelError("No epoch can be the best: the validation loss is not a number.")
        except UpdateFinishedTrialError:
            raise
        except Exception as error:
            trial.set_user_attr(ERROR, _sentence(error))
            if not _is_foreseen(error):
                self.study.tell(trial, state=TrialState.FAIL)
                raise
            return TrialState.FAIL, None
        trial.set_user_attr(EPOCHS, epoch)
        return TrialState.COMPLETE, value

    def _others_run(self) -> bool:
        """Whether trials are claimed by others, so that what they find, or leave, is awaited."""
        from optuna.trial import TrialState

        states = (TrialState.RUNNING,)
        return bool(self.study.get_trials(deepcopy=False, states=states))


def _spec(table: Mapping[str, Any], objective: Objective, tuning: Tuning) -> Table:
    """What makes two studies the same, in JSON values; not the number of trials."""
    settings = {k: v for k, v in table.items() if k != "seeds"}
    settings["data"] = without_place(table.get("data", {}))
    spec: Table = {
        "space": objective.space.to_table(),
        "settings": settings,
        "default": objective.default,
        "tuning": {"splits": tuning.splits, "training": tuning.training},
        "metric": objective.metric,
    }
    return {name: json.loads(encode(value)) for name, value in spec.items()}


def _seed(name: str, number: int) -> int:
    return int(np.random.SeedSequence([zlib.crc32(name.encode()), number]).generate_state(1)[0])


def _sampler(seed: int) -> optuna.samplers.TPESampler:
    from optuna.samplers import TPESampler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # multivariate is called experimental
        return TPESampler(multivariate=True, constant_liar=True, seed=seed)


def _pruner(epochs: int) -> optuna.pruners.BasePruner:
    """Stops what lies in the lowest quarter of the complete trials at the same epoch.

    Late, because small learning rates and normalised features start slowly and may end well.

    Args:
        epochs: that a trial has at most.
    """
    from optuna.pruners import PercentilePruner

    late = min(200, epochs // 2)
    # What Optuna asks for is the share that goes on.
    return PercentilePruner(75.0, n_startup_trials=5, n_warmup_steps=late, n_min_trials=5)


def _is_looked_at(epoch: int) -> bool:
    """Whether a trial may be pruned now: often at first, since every look is a line on disk."""
    return epoch % (10 if epoch <= 100 else 50) == 0


def _over(trials: list[Trial]) -> int:
    return sum(trial.state in ("complete", "pruned", "failed") for trial in trials)


def _is_foreseen(error: Exception) -> bool:
    """Whether other points may do better: a model that cannot be, or that does not fit."""
    return isinstance(error, NLSFError | MemoryError) or "can't allocate memory" in str(error)


def _sentence(error: Exception) -> str:
    if isinstance(error, NLSFError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
