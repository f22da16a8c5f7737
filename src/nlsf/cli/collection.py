"""``nlsf spectrum --cluster``: the spectra of all graphs of a set, into the cache."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.data.dataset import Dataset
    from nlsf.spectral.operators.shift import Normalization


def decompose_all(
    console: Console, dataset: Dataset, cluster: str, workers: int | None, *, largest: int
) -> None:
    """Fills the cache with the spectra of L and N of every graph, where `partial_eigh` finds them.

    Args:
        console: where progress is shown.
        dataset: a set of graphs.
        cluster: ``"local"``, or the address of a scheduler.
        workers: of a local cluster.
        largest: nodes up to which a spectrum is complete.

    Raises:
        ConfigError: the data is one graph, or a graph is larger than that.
    """
    from rich.markup import escape

    from nlsf.cluster import connect, fill_cache
    from nlsf.display.sinks import progress_for
    from nlsf.errors import ConfigError
    from nlsf.spectral import SpectrumCache

    sizes = [int(graph.num_nodes) for graph in dataset.graphs]
    if len(sizes) == 1:
        raise ConfigError(f"--cluster is for sets of graphs, and {dataset.name} is one graph.")
    if max(sizes) > largest:
        number = sizes.index(max(sizes))
        raise ConfigError(
            f"Graph {number} of {dataset.name} has {max(sizes):,} nodes, and --cluster decomposes "
            f"graphs of up to {largest:,} completely: ask for leading eigenpairs with "
            "nlsf.cluster.fill_cache(graphs, k=...)."
        )
    normalizations: tuple[Normalization, ...] = (None, "sym")
    with ExitStack() as opened:
        progress = opened.enter_context(progress_for(console))
        with progress.phase("Reaching the cluster"):
            client = opened.enter_context(connect(cluster, workers=workers))
        console.print(
            f"[bold]{escape(dataset.name)}[/]: {len(sizes):,} graphs, {sum(sizes):,} nodes, on "
            f"{len(client.nthreads())} worker(s) of {escape(client.scheduler.address)}",
            soft_wrap=True,
        )
        for normalization in normalizations:
            fill_cache(
                dataset.graphs, normalization=normalization, cluster=client, progress=progress
            )
    console.print(f"Spectra: [bold]{escape(str(SpectrumCache().root))}[/]", soft_wrap=True)
