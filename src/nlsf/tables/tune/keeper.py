"""Where trials are stored, and which workers are alive: `Keeper`, and one in a file: `Journal`."""

from __future__ import annotations

import os
import platform
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlsf.errors import ConfigError, FormatError
from nlsf.store import json_lines
from nlsf.store.files import naming
from nlsf.store.locks import FileLock, is_held

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, Trial


SPEC = "nlsf:spec"
WORKER = "nlsf:worker"
ERROR = "nlsf:error"
EPOCHS = "nlsf:epochs"
ATTEMPT = "nlsf:attempt"

_ATTEMPTS = 3
"""How often a point is started whose worker died each time."""


class Keeper(ABC):
    """Keeps studies, and knows which workers are alive.

    Attributes:
        label: where, without a password.
        storage: Optuna's own storage.
    """

    label: str
    storage: BaseStorage

    @abstractmethod
    def alone(self) -> AbstractContextManager[None]:
        """Keeps every other worker of the same storage waiting."""

    @abstractmethod
    def at_work(self) -> AbstractContextManager[str]:
        """Marks this process as alive; gives the name that its trials have."""

    @abstractmethod
    def working(self, trial: Trial) -> AbstractContextManager[None]:
        """While a trial runs."""

    @abstractmethod
    def alive(self, worker: str) -> bool:
        """Whether a worker may still be at work."""

    @abstractmethod
    def close(self) -> None:
        """Ends what was opened."""

    def rescue(self, study: Study) -> None:
        """Gives the points of dead workers back; call it while `alone`.

        A worker signs its trial before it lets another one claim: no signature, no worker.
        """
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState

        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            worker = trial.user_attrs.get(WORKER)
            if worker is None or not self.alive(worker):
                try:
                    study.tell(trial.number, state=TrialState.FAIL)
                except (UpdateFinishedTrialError, ValueError):
                    continue  # it was only slow
                give_back(study, trial)


def give_back(study: Study, trial: FrozenTrial, *, died: bool = True) -> None:
    """Puts the point of a trial that was not ended in front, unless it kills its workers."""
    attempt = trial.user_attrs.get(ATTEMPT, 1) + died
    queued = trial.system_attrs.get("fixed_params")
    if queued is None and not trial.params:
        return  # killed before anything was drawn: the next claim draws it
    if attempt <= _ATTEMPTS:
        # What was queued and not yet taken over is part of the point: the defaults are queued.
        point = {**(queued or {}), **trial.params}
        study.enqueue_trial(point, user_attrs={ATTEMPT: attempt})


def own_name() -> str:
    """The machine and process."""
    return f"{platform.node() or 'localhost'}:{os.getpid()}"


_START = b'{"op_code":'
"""How every line of a journal begins."""


class Journal(Keeper):
    """A journal file of Optuna, ``study.journal``.

    All locks are `FileLock`, which the system frees when a process ends, however it ends:
    ``study.journal`` itself while a line is appended, ``study.journal.lock`` while a trial is
    claimed, and one ``study.journal.TOKEN.worker`` a worker, which tells the others that it lives.
    Systems without ``flock`` must have one worker.

    Args:
        path: the file; its folder is made.
        optuna: the package.
    """

    def __init__(self, path: Path, optuna: Any) -> None:
        self.path, self.label = path, str(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_start(path)
            backend = optuna.storages.journal.JournalFileBackend(str(path), _Appending(path))
        except (IsADirectoryError, FileExistsError, NotADirectoryError) as error:
            raise ConfigError(f"{path} cannot be a journal of trials: name a file.") from error
        except OSError as error:
            raise naming(error, path) from error
        try:
            self.storage = optuna.storages.JournalStorage(backend)
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
            raise FormatError(f"{path} is not a journal of trials, or is damaged.") from error

    def close(self) -> None:
        """Nothing to do: the file is opened for every line."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits for the lock of the file beside."""
        with FileLock(self._beside("lock")):
            yield

    @contextmanager
    def at_work(self) -> Iterator[str]:
        """Holds the lock of a file of this worker."""
        token = secrets.token_hex(8)
        path = self._beside(f"{token}.worker")
        with FileLock(path):
            try:
                yield f"{own_name()}:{token}"
            finally:
                path.unlink(missing_ok=True)

    @contextmanager
    def working(self, trial: Trial) -> Iterator[None]:
        """Nothing to do: the worker's lock says it."""
        yield

    def alive(self, worker: str) -> bool:
        """Whether the worker's file is locked; that of a dead worker is removed."""
        path = self._beside(f"{worker.rsplit(':', 1)[-1]}.worker")
        held = is_held(path)
        if not held:
            path.unlink(missing_ok=True)
        return held

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")


class _Appending(FileLock):
    """The lock that Optuna takes to append lines; a line that a killed process tore is cut off."""

    def acquire(self, *, wait: bool = True) -> bool:
        """Takes the lock, then mends the file."""
        taken = super().acquire(wait=wait)
        if taken:
            json_lines.mend(self.path)
        return taken


def _check_start(path: Path) -> None:
    """Refuses a file that is something else, before anything is written into it."""
    if path.exists():
        with path.open("rb") as file:
            start = file.read(len(_START))
        if not _START.startswith(start):
            raise FormatError(f"{path} is not a journal of trials: name another file.")
