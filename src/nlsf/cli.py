"""The command line: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor

    from nlsf.spectral import Bands, Spectrum

app = typer.Typer(
    name="nlsf",
    help="Nonlinear spectral filters on graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DATA = ("digits",)
_debug = False


def main() -> None:
    """Runs the program; an error that we foresaw is one sentence and exit code 1."""
    from nlsf.errors import NLSFError

    try:
        app()
    except (NLSFError, OSError) as error:
        if _debug:
            raise
        typer.echo(f"nlsf: {error}", err=True)
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"nlsf {version('nlsf')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    global _debug
    _debug = debug


@app.command()
def spectrum(
    data: Annotated[str, typer.Argument(help=f"Data set: {', '.join(_DATA)}.")],
    rate: Annotated[float, typer.Option("--rate", "-r", help="Decay rate of the bands.")] = 0.5,
    bands: Annotated[int, typer.Option("--bands", "-S", help="Number of dyadic bands.")] = 6,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Picture to write (.svg, .png, .pdf); by default in ./nlsf-out."
        ),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep spectra on disk for the next time.")] = True,
) -> None:
    """Compute the spectrum of a graph for L and N, print what is in its bands, and draw it."""
    if data not in _DATA:
        _unknown("data set", data, _DATA)
    from rich.console import Console

    from nlsf.spectral import DyadicBands

    console = Console()
    path = output or Path("nlsf-out") / f"{data}-spectrum.svg"
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that nothing is lost
    dyadic = DyadicBands(r=rate, S=bands)
    with console.status("Loading PyTorch and the data ..."):
        from nlsf.data import digits
        from nlsf.spectral import laplacian, partial_eigh

        graph = digits()
    console.print(
        f"[bold]{data}[/]: {graph.num_nodes:,} nodes, {graph.num_edges // 2:,} edges, "
        f"{graph.num_features} features"
    )
    spectra = []
    for normalization in (None, "sym"):
        shift = laplacian(graph, normalization=normalization)
        with console.status(f"Eigendecomposition of {shift.name} ..."):
            spectra.append(partial_eigh(shift, cache=cache))
        _print_spectrum(console, spectra[-1], dyadic, graph.x)
    try:
        from nlsf.plotting import plot_spectra

        with console.status("Drawing ..."):
            plot_spectra(
                spectra, dyadic, graph.x, path, title=f"{data}, {bands} dyadic bands (r = {rate:g})"
            )
        console.print(f"Picture: [bold]{path}[/]")
    except ModuleNotFoundError as error:
        console.print(f"No picture: {error.name} is missing. pip install 'nlsf\\[plot]'")


def _print_spectrum(console: Console, spectrum: Spectrum, bands: Bands, x: Tensor) -> None:
    from rich.table import Table

    from nlsf.spectral.summary import summarize

    repeated = spectrum.multiplicities[spectrum.multiplicities > 1]
    console.print(
        f"\n[bold]{spectrum.name}[/]: {spectrum.nullity} component(s), "
        f"largest eigenvalue {spectrum.lam_max:.6g}, {spectrum.num_eigenspaces:,} eigenspaces "
        f"({len(repeated):,} of them repeated, the largest of dimension "
        f"{int(spectrum.multiplicities.max())}), "
        f"largest residual {float(spectrum.residuals.max()):.1e}"
    )
    table = Table("band", "frequencies", "eigenvalues", "share of the features' energy")
    for column in table.columns[2:]:
        column.justify = "right"
    for j, row in enumerate(summarize(spectrum, bands, x), start=1):
        table.add_row(str(j), row.label, f"{row.dimension:,}", f"{100 * row.energy:.2f} %")
    console.print(table)


def _unknown(what: str, name: str, known: tuple[str, ...]) -> NoReturn:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."
    raise typer.BadParameter(f"there is no {what} {name!r}.{hint}")


if __name__ == "__main__":
    main()
