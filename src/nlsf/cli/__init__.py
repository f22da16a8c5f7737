"""The command line: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Annotated

import typer

from nlsf.cli.compare import compare
from nlsf.cli.data import data_app
from nlsf.cli.lab import lab_app
from nlsf.cli.options import is_follower
from nlsf.cli.runs import predict, report
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

_TRIM, _MMAP = -1, -3  # of malloc.h
_LARGEST = 32 * 2**20  # the highest that glibc takes
_UNUSED = 2**30


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


def keep_freed_memory() -> bool:
    """Asks the C library to use freed blocks of up to 32 MB again, and not to give them back.

    A training step allocates tensors of some megabytes and frees them at once. By default each
    comes fresh from the system, page by page: on collections of graphs a fifth of the time. Where
    the user has said something in ``MALLOC_...`` it is left at that.

    Returns:
        Whether it was done; other libraries than glibc have no such option.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc; no C library by that name
        return False
    return bool(mallopt(_MMAP, _LARGEST) and mallopt(_TRIM, _UNUSED))
