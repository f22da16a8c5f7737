"""The way to a Dask cluster: `connect`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from nlsf.errors import ClusterError, ConfigError

Cluster: TypeAlias = Any
"""``"local"``, the address of a running scheduler, or a ``distributed.Client``."""

_CONNECT = 5.0
"""Seconds in which a scheduler must answer."""

_WORKERS = 30.0
"""Seconds that a cluster may be without a worker: one that died needs some to start again."""

_BEAT = 2.0
"""Seconds between two looks at the workers while nothing is finished."""


@contextmanager
def connect(cluster: Cluster = "local", *, workers: int | None = None) -> Iterator[Any]:
    """A client of a cluster, closed at the end if it was opened here.

    Args:
        cluster: ``"local"`` for processes on this machine, one thread each; the address of a
            running scheduler, such as ``"tcp://10.0.0.5:8786"``; or a ``distributed.Client``, which
            is passed on and stays open.
        workers: number of processes of a local cluster; by default one a core.

    Raises:
        ConfigError: Dask is not installed, or ``workers`` does not fit.
        ClusterError: no scheduler answers, or it has no workers.

    Example (a script that starts processes needs the guard)::

        if __name__ == "__main__":
            with connect("local", workers=4) as client:
                spectra = cluster_eigh(graphs, cluster=client)
    """
    try:
        import dask
        import distributed
    except ImportError as error:
        raise ConfigError("A cluster needs Dask: pip install 'nlsf[cluster]'.") from error
    if isinstance(cluster, distributed.Client):
        require_workers(cluster)
        yield cluster
        return
    if workers is not None and (cluster != "local" or workers < 1):
        raise ConfigError(
            f"A local cluster has at least 1 worker, not {workers}."
            if cluster == "local"
            else "The number of workers is for a local cluster: a running one has its own."
        )
    # A chunk of graphs travels inside of its task, which Dask advises against. It is on purpose:
    # a task whose worker died starts again from what the scheduler holds.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        if cluster == "local":
            with (
                distributed.LocalCluster(
                    n_workers=workers or _cores(),
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,  # partial_eigh refuses what does not fit by itself
                    dashboard_address="127.0.0.1:0",  # a free port, of this machine only
                    silence_logs="CRITICAL",
                ) as local,
                distributed.Client(local) as client,
            ):
                yield client
        else:
            with _reach(cluster) as client:
                require_workers(client)
                yield client


def _cores() -> int:
    """The cores that this process may use; not every system can say which these are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _reach(address: Any) -> Any:
    import distributed

    try:
        if not isinstance(address, str) or not address:  # Dask would start a cluster of its own
            raise ValueError("no address")
        return distributed.Client(address, timeout=_CONNECT)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address!r}. An address looks like "
            "tcp://10.0.0.5:8786; 'dask scheduler' starts one, and 'local' uses this machine."
        ) from error


def require_workers(client: Any) -> None:
    """Waits for a worker.

    Raises:
        ClusterError: there is none for half a minute.
    """
    try:
        client.wait_for_workers(1, timeout=_WORKERS)
    except TimeoutError as error:
        raise _no_workers(client) from error


def _no_workers(client: Any) -> ClusterError:
    address = client.scheduler.address
    return ClusterError(
        f"The scheduler at {address} has no workers: 'dask worker {address}' starts one."
    )


def first_done(client: Any, futures: Iterable[Any]) -> set[Any]:
    """Waits until some of the futures are done, well or not, and gives these.

    Raises:
        ClusterError: the scheduler is gone, or has had no workers for half a minute.
    """
    import distributed

    futures, alone = list(futures), 0.0
    while True:
        with client.as_current(), suppress(TimeoutError, distributed.CancelledError):
            distributed.wait(futures, timeout=_BEAT, return_when="FIRST_COMPLETED")
        if done := {future for future in futures if future.status != "pending"}:
            return done
        if client.status != "running":
            raise gone(client)
        alone = 0.0 if client.nthreads() else alone + _BEAT
        if alone >= _WORKERS:
            raise _no_workers(client)


@contextmanager
def watched(client: Any) -> Iterator[None]:
    """Inside, a connection to the scheduler that breaks is our error."""
    try:
        yield
    except OSError as error:  # distributed.CommClosedError among them
        raise gone(client) from error


def gone(client: Any) -> ClusterError:
    """The error for a scheduler that does not answer any more."""
    return ClusterError(
        f"The scheduler at {client.scheduler.address} went away in the middle of the work."
    )
