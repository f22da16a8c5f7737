"""What a worker does with a chunk of graphs: `solve_chunk`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nlsf.cluster.chunks import Edges
from nlsf.errors import ClusterError, NLSFError
from nlsf.spectral import Bands, Spectrum, SpectrumCache
from nlsf.spectral.eigen.eigensolve import SOLVER_VERSION, one_blas_thread, solve_graph
from nlsf.spectral.operators.shift import Normalization, Symmetrize


def versions() -> tuple[str, ...]:
    """Of the packages that decide about the bits of a spectrum."""
    packages = tuple(f"{name} {version(name)}" for name in ("nlsf", "numpy", "scipy"))
    return (*packages, f"solver {SOLVER_VERSION}")


@dataclass(frozen=True)
class Job:
    """What is the same for all graphs of a collection.

    Attributes:
        k: as in `partial_eigh`.
        bands: as in `partial_eigh`.
        normalization: as in `batched_eigh`.
        symmetrize: as in `batched_eigh`.
        options: further options of `partial_eigh`.
        wanted: whether the client asks for the spectra, and not only for their being in the cache.
        folder: the cache of the client; ``None`` for no cache.
        token: a file in it, by which a worker knows that it sees the same folder.
        versions: of the packages of the client that decide about bits.
    """

    k: int | None
    bands: Bands | None
    normalization: Normalization
    symmetrize: Symmetrize
    options: dict[str, Any]
    wanted: bool
    folder: Path | None = None
    token: str = ""
    versions: tuple[str, ...] = field(default_factory=versions)


@dataclass(frozen=True)
class Solved:
    """A spectrum on its way back.

    Attributes:
        spectrum: ``None`` where it is in the cache and not wanted.
        key: under which the client has to keep it, where the worker could not.
    """

    spectrum: Spectrum | None
    key: str | None


def solve_chunk(start: int, graphs: list[Edges | Any], job: Job) -> list[Solved] | NLSFError:
    """The spectra of some graphs, by the code that `batched_eigh` runs.

    Args:
        start: the position of the first one.
        graphs: what `bare` gave for them.
        job: the request.

    Returns:
        One result a graph, or the error about the first graph that failed, which names it. An error
        is returned, not raised: it is about the graph, and Dask would try again elsewhere.
    """
    here = versions()
    if here != job.versions:
        theirs, ours = (", ".join(v) for v in (here, job.versions))
        return ClusterError(
            f"A worker on {os.uname().nodename} has {theirs}, and this process has {ours}: results "
            "would differ. Install the same versions."
        )
    shared = job.folder is not None and (job.folder / job.token).is_file()
    solved = []
    for position, graph in enumerate(graphs, start):
        store = None if job.folder is None else _Store(job.folder, shared=shared)
        try:
            with one_blas_thread():
                spectrum = solve_graph(
                    *(position, graph, job.k, job.bands, job.normalization, job.symmetrize),
                    cache=store,
                    **job.options,
                )
        except NLSFError as error:
            return error
        except Exception as error:
            return ClusterError(f"Graph {position}: {type(error).__name__}: {error}")
        key = None if store is None else store.unsaved
        solved.append(Solved(spectrum if job.wanted or key else None, key))
    return solved


class _Store(SpectrumCache):
    """The client's cache as a worker has it: the same folder, or only the keys of what goes there.

    Attributes:
        unsaved: the key of the spectrum that the client has to write.
    """

    def __init__(self, root: Path, *, shared: bool) -> None:
        super().__init__(root)
        self.shared = shared
        self.unsaved: str | None = None

    def load(self, key: str) -> Spectrum | None:
        return super().load(key) if self.shared else None

    def save(self, key: str, spectrum: Spectrum) -> Path:
        if self.shared:
            try:
                return super().save(key, spectrum)
            except OSError:
                pass  # another user's folder, perhaps: the client can write it
        self.unsaved = key
        return self.path(key)
