"""Trials in a PostgreSQL database that several machines share: `Postgres`."""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nlsf.errors import ConfigError
from nlsf.tables.tune.keeper import Keeper, give_back, own_name

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

_BEAT = 10
"""Seconds between two signs of life of a running trial."""

_GRACE = 60
"""Seconds without a sign after which its worker counts as dead."""

# Not the name of this package: older processes may work on the same database.
_LOCK = zlib.crc32(b"nlsf.experiments")


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
    def at_work(self) -> Iterator[str]:
        """Nothing to do: trials show a sign of life, not workers."""
        yield own_name()

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

    def alive(self, worker: str) -> bool:
        """Heartbeats tell, not this."""
        return True

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
