"""What several commands share: their options, and `say`, which prints a line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.data.dataset import Dataset

DATA_HELP = "A data set (see 'nlsf data list'), or a path: .npz, .mat, edges.csv, TU folder or zip."
DataArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help=DATA_HELP,
        show_default=False,
    ),
]
DataRoot: TypeAlias = Annotated[
    Path | None,
    typer.Option("--data-root", help="Folder of raw data files; else $NLSF_DATA, or your own."),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Never download; name what is missing instead.")
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any key of the run's TOML; may repeat."),
]
Protocol: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        "-p",
        help="How examples are split: public, random, sparse, dense, 60-20-20, a split file.",
    ),
]
Cache: TypeAlias = Annotated[bool, typer.Option(help="Keep spectra on disk for the next time.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]


def is_follower() -> bool:
    """Whether this is a process of a group that ``torchrun`` started, but not the first one."""
    return os.environ.get("RANK", "0") != "0" and "WORLD_SIZE" in os.environ


def data_table(
    data: str | None, root: Path | None, offline: bool, settings: Sequence[str] | None
) -> dict[str, Any]:
    """The settings of the command line as the tables of a run's TOML."""
    from nlsf.train.settings.config import apply_settings

    table: dict[str, Any] = {"data": {}}
    if data is not None:
        table["data"]["name"] = data
    if root is not None:
        table["data"]["root"] = str(root)
    if offline:
        table["data"]["offline"] = True
    return apply_settings(table, settings or [])


def load_named(
    data: str, root: Path | None, offline: bool, settings: Sequence[str] | None
) -> Dataset:
    """The data that a command names; only ``--set data.KEY=VALUE`` can be set."""
    from nlsf.errors import ConfigError
    from nlsf.train.run.job import load_data
    from nlsf.train.settings.config import DataConfig

    table = data_table(data, root, offline, settings)
    if others := [key for key in table if key != "data"]:
        raise ConfigError(f"Only data.KEY can be set here, not {', '.join(others)}.")
    return load_data(DataConfig.from_table(table["data"]))


def parse_size(text: str) -> int:
    """A number of bytes, as in 8GB, 500MB or 1.5GiB."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b\s*", text.lower())
    size = 0
    if match is not None:
        number, prefix, binary = match.groups()
        size = int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix or " "))
    if size <= 0:
        raise typer.BadParameter(f"a size is expected, as in 8GB or 500MB, not {text!r}.")
    return size


def out_folder(output: Path | None, stem: str) -> Path:
    """The folder that a command writes to: that which is named, or a new one in ``runs``."""
    from nlsf.errors import ConfigError
    from nlsf.train.run.folder import RunFolder

    if output is None:
        return RunFolder.create(Path("runs"), stem).path
    try:
        output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError(
            f"{output} cannot be a folder, because a file is in its place: choose another --output."
        ) from error
    return output


def say(console: Console, text: str, strong: object = "", style: str = "") -> None:
    """Prints a line as it is, however long; what is strong stands at its end, in bold."""
    from rich.text import Text

    console.print(Text.assemble((text, style), (str(strong), "bold")), soft_wrap=True)
