"""``nlsf spectrum``: what is in the bands of a graph."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlsf.cli.options import Cache, DataArgument, DataRoot, Offline, Settings, load_named, say
from nlsf.display.text_table import TextTable

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor
    from torch_geometric.data import Data

    from nlsf.data.dataset import Dataset
    from nlsf.display.progress import Progress
    from nlsf.spectral import Bands, Spectrum

_COMPLETE = 8_000
"""Nodes up to which the whole spectrum is computed; beyond, only its leading eigenspaces."""

_PICTURES = (".svg", ".png", ".pdf")


def spectrum(
    data: DataArgument,
    rate: Annotated[float, typer.Option("--rate", "-r", help="Decay rate of the bands.")] = 0.5,
    bands: Annotated[int, typer.Option("--bands", "-S", help="Number of bands.")] = 6,
    graph: Annotated[int, typer.Option("--graph", help="Which graph, of a set of graphs.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Picture to write (.svg, .png, .pdf); by default in ./nlsf-out."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Also write an interactive page (.html) of all this."),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Write the page, and show it in the browser.")
    ] = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    settings: Settings = None,
    cache: Cache = True,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="First decompose all graphs of the set, into the cache, on a Dask cluster: the "
            "address of its scheduler, or 'local' for processes on this machine.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes of '--cluster local'; one a core."),
    ] = None,
) -> None:
    """Compute the spectrum of a graph for L and N, print what is in its bands, and draw it.

    Graphs of more than 8,000 nodes are shown by their leading eigenspaces, one a band.
    With --cluster, all graphs of a set are decomposed, and the one that is asked for is shown.
    """
    from rich.console import Console

    from nlsf.display.sinks import progress_for
    from nlsf.spectral import DyadicBands, IndexBands

    console = Console()
    progress = progress_for(console)
    path = output or Path("nlsf-out") / f"{Path(data).stem.lower()}-spectrum.svg"
    if path.suffix.lower() not in _PICTURES or path.is_dir():
        raise typer.BadParameter(f"{path} is not the name of a picture: {', '.join(_PICTURES)}.")
    if page is not None and (page.suffix.lower() != ".html" or page.is_dir()):
        raise typer.BadParameter(f"{page} is not the name of a page: it must end in .html.")
    if cluster is not None and not cache:
        raise typer.BadParameter("--cluster fills the cache: leave out --no-cache.")
    if workers is not None and cluster != "local":
        raise typer.BadParameter("--workers goes with --cluster local.")
    family: Bands = DyadicBands(r=rate, S=bands)
    with progress, progress.phase("Loading PyTorch and the data"):
        from nlsf.spectral import laplacian, partial_eigh

        dataset = load_named(data, data_root, offline, settings)
        one, x = _graph(dataset, graph)
    if cluster is not None:
        _decompose_all(console, progress, dataset, cluster, workers)
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that nothing is lost
    say(
        console,
        f"{dataset.name}: {one.num_nodes:,} nodes, {one.num_edges // 2:,} edges, "
        f"{dataset.num_features} features",
    )
    title = f"{dataset.name}, {bands} dyadic bands (r = {rate:g})"
    if one.num_nodes > _COMPLETE:
        family = IndexBands(bands)
        title = f"{dataset.name}, {bands} leading eigenspaces"
    spectra = []
    for normalization in (None, "sym"):
        shift = laplacian(one, normalization=normalization)
        with progress.phase(f"Eigendecomposition of {shift.name}"):
            wanted = family if one.num_nodes > _COMPLETE else None
            spectra.append(partial_eigh(shift, bands=wanted, cache=cache))
        _print_spectrum(console, spectra[-1], family, x)
    try:
        from nlsf.plotting import plot_spectra

        with progress.phase("Drawing"):
            plot_spectra(spectra, family, x, path, title=title)
        say(console, "Picture: ", path)
    except ModuleNotFoundError as error:
        say(console, f"No picture: {error.name} is missing. pip install 'nlsf[plot]'")
    if page is not None or open_page:
        with progress.phase("Writing the page"):
            from nlsf.report.page import write_page
            from nlsf.report.spectrum_page import spectrum_page

            shown = spectrum_page(dataset, spectra, family, graph=graph)
            place = write_page(shown, page or path.with_suffix(".html"), open=open_page)
        say(console, "Page: ", place)


def _graph(dataset: Dataset, number: int) -> tuple[Data, Tensor]:
    """The graph that is shown, and a signal on it: its features, signals, or a constant."""
    import torch

    from nlsf.errors import ConfigError

    if not 0 <= number < len(dataset.graphs):
        raise ConfigError(
            f"{dataset.name} has no graph {number}: they are numbered 0 to "
            f"{len(dataset.graphs) - 1}."
        )
    one = dataset.graphs[number]
    if dataset.signals is not None:
        return one, dataset.signals[:256].permute(1, 0, 2).flatten(1)
    if one.x is None:
        return one, torch.ones(one.num_nodes, 1)
    return one, one.x if one.x.layout == torch.strided else one.x.to_dense()


def _print_spectrum(console: Console, spectrum: Spectrum, bands: Bands, x: Tensor) -> None:
    from nlsf.spectral.lens.summary import summarize

    repeated = spectrum.multiplicities[spectrum.multiplicities > 1]
    say(
        console,
        f"\n{spectrum.name}: {spectrum.nullity} component(s), "
        f"largest eigenvalue {spectrum.lam_max:.6g}, {spectrum.num_eigenspaces:,} eigenspaces "
        f"({len(repeated):,} of them repeated, the largest of dimension "
        f"{int(spectrum.multiplicities.max())}), "
        f"largest residual {float(spectrum.residuals.max()):.1e}",
    )
    rows = [
        [str(j), row.label, f"{row.dimension:,}", f"{100 * row.energy:.2f} %"]
        for j, row in enumerate(summarize(spectrum, bands, x), start=1)
    ]
    heads = ("band", "frequencies", "eigenvalues>", "share of the features' energy>")
    TextTable.of(*heads, rows=rows).print(console)


def _decompose_all(
    console: Console, progress: Progress, dataset: Dataset, cluster: str, workers: int | None
) -> None:
    """Fills the cache with the spectra of L and N of every graph, where `partial_eigh` finds them.

    Raises:
        ConfigError: the data is one graph, or a graph is larger than that.
    """
    from nlsf.cluster import connect, fill_cache
    from nlsf.errors import ConfigError
    from nlsf.spectral import SpectrumCache

    sizes = [int(graph.num_nodes) for graph in dataset.graphs]
    if len(sizes) == 1:
        raise ConfigError(f"--cluster is for sets of graphs, and {dataset.name} is one graph.")
    if max(sizes) > _COMPLETE:
        number = sizes.index(max(sizes))
        raise ConfigError(
            f"Graph {number} of {dataset.name} has {max(sizes):,} nodes, and --cluster decomposes "
            f"graphs of up to {_COMPLETE:,} completely: ask for leading eigenpairs with "
            "nlsf.cluster.fill_cache(graphs, k=...)."
        )
    with ExitStack() as opened:
        with progress.phase("Reaching the cluster"):
            client = opened.enter_context(connect(cluster, workers=workers))
        say(
            console,
            f"{dataset.name}: {len(sizes):,} graphs, {sum(sizes):,} nodes, on "
            f"{len(client.nthreads())} worker(s) of {client.scheduler.address}",
        )
        fill_cache(dataset.graphs, cluster=client, progress=progress)
        fill_cache(dataset.graphs, normalization="sym", cluster=client, progress=progress)
    say(console, "Spectra: ", SpectrumCache().root)
