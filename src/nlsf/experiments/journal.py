"""Trials in a file that the processes of one machine share: `Journal`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlsf.errors import ConfigError, FormatError
from nlsf.experiments.study import Keeper, own_name
from nlsf.store import json_lines
from nlsf.store.files import naming
from nlsf.store.locks import FileLock, is_held

if TYPE_CHECKING:
    from optuna.trial import Trial

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
