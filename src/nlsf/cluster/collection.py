"""The spectra of many graphs on a cluster: `cluster_eigh` and `fill_cache`."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from nlsf.cluster.chunks import bare, cut
from nlsf.cluster.connection import Cluster, connect, first_done, gone, watched
from nlsf.cluster.worker import Job, Solved, solve_chunk
from nlsf.display.progress import Progress
from nlsf.errors import ClusterError, NLSFError
from nlsf.spectral import Bands, Spectrum, SpectrumCache
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.operators.graph_input import Graph
from nlsf.spectral.operators.shift import Normalization, Symmetrize

_AHEAD = 3
"""Chunks a worker thread that are handed out: enough that none waits, and a bound on memory."""

_ATTEMPTS = 3
"""How often a chunk is handed out; each time Dask itself bears with three dead workers."""


def cluster_eigh(
    graphs: Iterable[Graph] | Graph,
    k: int | None = None,
    bands: Bands | None = None,
    *,
    cluster: Cluster = "local",
    normalization: Normalization = None,
    symmetrize: Symmetrize = None,
    cache: CacheArgument = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Spectrum]:
    """`nlsf.spectral.batched_eigh` on a cluster: the same spectra, to the last bit.

    Whatever the number of workers, their threads and their deaths, every graph is solved by the
    same function on one BLAS thread. Machines with other processors than this one may differ in the
    last bits, since BLAS chooses its code by the processor; other versions of nlsf, NumPy or SciPy
    are refused.

    Args:
        graphs: as in `batched_eigh`.
        k: as in `partial_eigh`, for every graph.
        bands: as in `partial_eigh`.
        cluster: ``"local"``, the address of a scheduler, or a client; see `connect`.
        normalization: which Laplacian to build of graphs that are not operators yet.
        symmetrize: as in `laplacian`.
        cache: as in `partial_eigh`. Workers that see the folder of this process read and write it
            themselves; what others compute, this process writes.
        progress: is told how many graphs are finished; silent by default.
        options: further options of `partial_eigh`.

    Returns:
        One spectrum a graph, in the order of the input.

    Raises:
        GraphError, SpectrumError, MemoryBudgetError: name the graph by its position.
        ClusterError: the cluster cannot be reached or used.
        ConfigError: Dask is not installed.
    """
    spectra: dict[int, Spectrum] = {}
    job = Job(k, bands, normalization, symmetrize, options, wanted=True)
    for position, spectrum in _solved(graphs, job, cluster, cache, progress):
        assert spectrum is not None
        spectra[position] = spectrum
    return [spectra[position] for position in range(len(spectra))]


def fill_cache(
    graphs: Iterable[Graph] | Graph,
    k: int | None = None,
    bands: Bands | None = None,
    *,
    cluster: Cluster = "local",
    normalization: Normalization = None,
    symmetrize: Symmetrize = None,
    cache: CacheArgument = True,
    progress: Progress | None = None,
    **options: Any,
) -> int:
    """Like `cluster_eigh`, but the spectra go to the cache only, and none stays in memory.

    `partial_eigh` with the same request and ``cache`` finds them there afterwards. What was there
    before is not computed again by workers that see the folder.

    Returns:
        The number of graphs.
    """
    job = Job(k, bands, normalization, symmetrize, options, wanted=False)
    return sum(1 for _ in _solved(graphs, job, cluster, cache, progress))


def _solved(
    graphs: Iterable[Graph] | Graph,
    job: Job,
    cluster: Cluster,
    cache: CacheArgument,
    progress: Progress | None,
) -> Iterator[tuple[int, Spectrum | None]]:
    """Positions and spectra, in the order in which they are finished."""
    if hasattr(graphs, "to_data_list"):
        graphs = graphs.to_data_list()
    travelling = [bare(position, graph) for position, graph in enumerate(graphs)]
    store, finished = SpectrumCache.of(cache), 0
    laplacian = "N" if job.normalization == "sym" else "L"
    shown = (progress or Progress()).phase(f"Spectra of {laplacian}", len(travelling), unit="graph")
    with connect(cluster) as client, _shared(store) as (folder, token), shown as phase:
        for chunk, solved in _run(client, travelling, replace(job, folder=folder, token=token)):
            for position, one in zip(chunk, solved, strict=True):
                spectrum = one.spectrum
                if store is not None and one.key is not None and spectrum is not None:
                    spectrum = _keep(store, one.key, spectrum)
                yield position, spectrum
            finished += len(chunk)
            phase.advance(finished)


def _run(client: Any, graphs: list[Any], job: Job) -> Iterator[tuple[range, list[Solved]]]:
    """The chunks with their results, in the order in which they are finished."""
    left = deque((chunk, 1) for chunk in cut(graphs, _threads(client)))
    pending: dict[Any, tuple[range, int]] = {}
    try:
        with watched(client):
            while left or pending:
                ahead = _AHEAD * max(1, _threads(client))
                while left and len(pending) < ahead:
                    chunk, attempt = left.popleft()
                    mine = graphs[chunk.start : chunk.stop]
                    # Not pure: the content would be hashed, for nothing.
                    future = client.submit(solve_chunk, chunk.start, mine, job, pure=False)
                    pending[future] = (chunk, attempt)
                for future in first_done(client, pending):
                    chunk, attempt = pending.pop(future)
                    solved = _result(client, future, chunk, attempt)
                    if solved is None:
                        left.appendleft((chunk, attempt + 1))
                    else:
                        yield chunk, solved
    finally:
        with suppress(OSError):
            if client.status == "running":
                client.cancel(list(pending), force=True)


def _threads(client: Any) -> int:
    return sum(client.nthreads().values())


def _result(client: Any, future: Any, chunk: range, attempt: int) -> list[Solved] | None:
    """What a chunk gave, or ``None`` where its workers died and it should be tried again."""
    from distributed import CancelledError, KilledWorker

    which = f"Graph {chunk.start}" if len(chunk) == 1 else f"Graphs {chunk.start} to {chunk[-1]}"
    try:
        solved: list[Solved] | NLSFError = future.result()
    except (KilledWorker, CancelledError) as error:
        if client.status != "running":
            raise gone(client) from error
        if attempt < _ATTEMPTS:
            return None
        raise ClusterError(
            f"{which}: every worker that took this work died, {4 * attempt} in all; most likely "
            "for want of memory. Ask for fewer eigenpairs, or give workers more memory."
        ) from error
    except Exception as error:
        raise ClusterError(
            f"{which}: a worker could not even begin ({type(error).__name__}: {error}). Workers "
            "need the same nlsf and its packages."
        ) from error
    if isinstance(solved, NLSFError):
        raise solved
    return solved


def _keep(store: SpectrumCache, key: str, spectrum: Spectrum) -> Spectrum:
    return store.load_or_compute(key, lambda: spectrum)


@contextmanager
def _shared(store: SpectrumCache | None) -> Iterator[tuple[Path | None, str]]:
    """The folder of the cache, and the name of a file in it that only lives inside."""
    if store is None:
        yield None, ""
        return
    folder = store.root.absolute()
    token = folder / f".client-{secrets.token_hex(8)}"
    with suppress(OSError):  # then no worker finds it, and `SpectrumCache` warns of the folder
        folder.mkdir(parents=True, exist_ok=True)
        token.touch()
    try:
        yield folder, token.name
    finally:
        with suppress(OSError):
            token.unlink()
