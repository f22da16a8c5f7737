"""The command line: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nlsf.cli.compare import compare
from nlsf.cli.data import data_app
from nlsf.cli.kept_memory import keep_freed_memory
from nlsf.cli.lab import lab_app
from nlsf.cli.options import is_follower
from nlsf.cli.predict import predict
from nlsf.cli.report import report
from nlsf.cli.spectrum import spectrum
from nlsf.cli.table import table
from nlsf.cli.train import train
from nlsf.cli.tune import tune

app = typer.Typer(
    name="nlsf",
    help="Nonlinear spectral filters on graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(train)
app.command()(predict)
app.command()(compare)
app.command()(tune)
app.command()(table)
app.command()(report)
app.command()(spectrum)
app.add_typer(data_app, name="data")
app.add_typer(lab_app, name="lab")

_debug = False


def main() -> None:
    """Runs the program; an error that we foresaw is one sentence and exit code 1."""
    from nlsf.errors import GroupError, NLSFError

    keep_freed_memory()
    try:
        app()
    except (NLSFError, OSError) as error:
        if _debug:
            raise
        # The processes of a group fail together: one of them says why.
        if isinstance(error, GroupError) or not is_follower():
            typer.echo(f"nlsf: {_sentence(error)}", err=True)
        sys.exit(1)


def _sentence(error: Exception) -> str:
    """What the system says of a file, without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error)


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
