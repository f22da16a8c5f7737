"""The spectra of many small graphs in one call."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from joblib import Parallel, delayed

from nlsf.errors import GraphError, MemoryBudgetError, SpectrumError
from nlsf.spectral.bands import Bands
from nlsf.spectral.blas import one_blas_thread
from nlsf.spectral.eigensolve import partial_eigh
from nlsf.spectral.graph_input import Graph
from nlsf.spectral.shift import Normalization, ShiftOperator, Symmetrize, laplacian
from nlsf.spectral.spectrum import Spectrum

_CHUNK = 64
"""Graphs that a thread takes at once: enough to make handing them over cheap."""


def batched_eigh(
    graphs: Iterable[Graph] | Graph,
    k: int | None = None,
    bands: Bands | None = None,
    *,
    normalization: Normalization = None,
    symmetrize: Symmetrize = None,
    n_jobs: int = -1,
    **options: Any,
) -> list[Spectrum]:
    """`partial_eigh` of every graph in a collection, in threads.

    Graph by graph is faster than stacking graphs of equal or padded size (docs/decisions.md), and
    LAPACK releases the interpreter, so threads suffice. Each graph is solved by one BLAS thread, so
    that the bits of the result do not depend on how many there are; `nlsf.cluster.cluster_eigh`
    gives the same bits on many machines.

    Args:
        graphs: `ShiftOperator`s, or graphs in any form that `laplacian` takes, or a PyTorch
            Geometric ``Batch``.
        k: as in `partial_eigh`, for every graph.
        bands: as in `partial_eigh`.
        normalization: which Laplacian to build of graphs that are not operators yet.
        symmetrize: as in `laplacian`.
        n_jobs: threads; all cores by default.
        options: further options of `partial_eigh`.

    Returns:
        One spectrum a graph, in the order of the input; the same as one by one.

    Raises:
        GraphError, SpectrumError, MemoryBudgetError: name the graph by its position.
    """
    if hasattr(graphs, "to_data_list"):
        graphs = graphs.to_data_list()
    if not isinstance(graphs, Sequence):
        graphs = list(graphs)

    def solve(position: int, graph: Graph) -> Spectrum:
        return solve_graph(position, graph, k, bands, normalization, symmetrize, **options)

    def solve_chunk(start: int) -> list[Spectrum]:
        chunk = graphs[start : start + _CHUNK]
        return [solve(start + i, graph) for i, graph in enumerate(chunk)]

    starts = range(0, len(graphs), _CHUNK)
    with one_blas_thread():
        chunks = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(solve_chunk)(s) for s in starts)
    return list(itertools.chain.from_iterable(chunks))


def solve_graph(
    position: int,
    graph: Graph,
    k: int | None,
    bands: Bands | None,
    normalization: Normalization,
    symmetrize: Symmetrize,
    **options: Any,
) -> Spectrum:
    """One graph of a collection; an error about it names its position."""
    try:
        if not isinstance(graph, ShiftOperator):
            graph = laplacian(graph, normalization=normalization, symmetrize=symmetrize)
        return partial_eigh(graph, k, bands, **options)
    except (GraphError, SpectrumError, MemoryBudgetError) as error:
        error.args = (f"Graph {position}: {error}",)
        raise
