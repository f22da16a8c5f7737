"""Where trials are kept, and which workers are alive: `Keeper`, and `keeper_for`, which opens one.

A `Journal` is a file that the processes of one machine share, `Postgres` a database for several.
"""

from __future__ import annotations

import os
import platform
import secrets
import threading
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nlsf.errors import ConfigError, DataError, FormatError
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

_START = b'{"op_code":'
"""How every line of a journal begins."""

_BEAT = 10
"""Seconds between two signs of life of a running trial."""

_GRACE = 60
"""Seconds without a sign after which its worker counts as dead."""

# Not the name of this package: older processes may work on the same database.
_LOCK = zlib.crc32(b"nlsf.experiments")


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

    def at_work(self) -> AbstractContextManager[str]:
        """Marks this process as alive, if it must; gives the name that its trials have."""
        return nullcontext(own_name())

    def working(self, trial: Trial) -> AbstractContextManager[None]:
        """While a trial runs; here its worker's mark is enough."""
        return nullcontext()

    def alive(self, worker: str) -> bool:
        """Whether a worker may still be at work, as far as it is marked."""
        return True

    def close(self) -> None:  # noqa: B027 - a file is opened for every line
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


class Postgres(Keeper):
    """A database of Optuna.

    Workers claim trials one at a time by an advisory lock, which the server frees when a connection
    ends. A running trial records a heartbeat; one that stops beating is given back.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST/DATABASE``.
        optuna: the package.
    """

    def __init__(self, url: str, optuna: Any) -> None:
        self.label = _label(url)
        try:
            import psycopg  # noqa: F401
            import sqlalchemy
        except ImportError as error:
            raise ConfigError(
                "A PostgreSQL storage needs psycopg: pip install 'nlsf[tune]'."
            ) from error
        url = f"postgresql+psycopg://{url.split('://', 1)[1]}"
        try:
            self._locks = sqlalchemy.create_engine(
                url, poolclass=sqlalchemy.pool.NullPool, connect_args={"connect_timeout": 10}
            )
            with self.alone(), warnings.catch_warnings():  # two workers must not both make tables
                warnings.simplefilter("ignore")  # heartbeats are called experimental
                self.storage = optuna.storages.RDBStorage(
                    url,
                    engine_kwargs={"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}},
                    heartbeat_interval=_BEAT,
                    grace_period=_GRACE,
                    heartbeat_stale_trial_callback=give_back,
                )
        except (sqlalchemy.exc.SQLAlchemyError, ValueError, RuntimeError) as error:
            raise ConfigError(f"{self.label} cannot be used: {_reason(error)}.") from error

    def close(self) -> None:
        """Ends all connections."""
        storage: Any = self.storage
        storage.remove_session()
        storage.engine.dispose()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits for an advisory lock of the database."""
        from sqlalchemy import text

        with self._locks.connect() as connection:
            connection.execute(text(f"SELECT pg_advisory_lock({_LOCK})"))
            connection.commit()
            yield  # the end of the connection frees the lock

    @contextmanager
    def working(self, trial: Trial) -> Iterator[None]:
        """Records a sign of life now and every few seconds."""
        over = threading.Event()
        number = trial._trial_id
        storage: Any = self.storage

        def beat() -> None:
            while not over.wait(_BEAT):
                storage.record_heartbeat(number)

        storage.record_heartbeat(number)
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def rescue(self, study: Study) -> None:
        """Gives back the points of trials without heartbeat."""
        from optuna.storages import fail_stale_trials

        super().rescue(study)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fail_stale_trials(study)


def _label(url: str) -> str:
    """The URL without user, password and options."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or "localhost"
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise ConfigError(
            "The storage is not a URL like postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
        ) from error
    return f"postgresql://{host}{port}{parts.path}"


def _reason(error: Exception) -> str:
    """The first line of what the database says, which has no password in it."""
    original = getattr(error, "orig", None) or error.__cause__ or error
    original = getattr(original, "orig", None) or original
    return (
        str(original).strip().splitlines()[0].rstrip(".") if str(original).strip() else "no answer"
    )


@contextmanager
def keeper_for(storage: str | Path, *, new: bool = True) -> Iterator[Keeper]:
    """`open_keeper` for a while; a storage that fails meanwhile is one sentence."""
    keeper = open_keeper(storage, new=new)
    from optuna.exceptions import StorageInternalError

    try:
        yield keeper
    except StorageInternalError as error:
        raise ConfigError(
            f"{keeper.label} could not be read or written: go on when it is there again."
        ) from error
    finally:
        keeper.close()


def open_keeper(storage: str | Path, *, new: bool = True) -> Keeper:
    """The storage of a path or a URL.

    Args:
        storage: a journal file, or ``postgresql://USER@HOST/DATABASE``.
        new: whether a file that is not there yet is made.
    """
    optuna = import_optuna()
    text = str(storage)
    if "://" not in text:
        path = Path(storage)
        if not new and not path.is_file():
            raise DataError(f"There is no journal of trials {path}.")
        return Journal(path, optuna)
    scheme = text.split("://")[0]
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigError(
            "The storage must be a path, or postgresql://USER:PASSWORD@HOST/DATABASE, "
            f"not a URL that begins with {scheme}://."
        )
    return Postgres(text, optuna)


def import_optuna() -> Any:
    """The package, quiet.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("Tuning needs Optuna: pip install 'nlsf[tune]'.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
