"""``nlsf data``: what data sets there are, what is known of them, and whether files are whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlsf.cli.options import DataRoot, Offline, say
from nlsf.display.text_table import TextTable

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.data.catalogue import CheckRow
    from nlsf.data.catalogue.entry import Entry

data_app = typer.Typer(
    help="Data sets: list them, tell about one, check files, write splits.", no_args_is_help=True
)

_STYLES = {"ok": "green", "wrong": "bold red", "missing": "yellow"}

Name = Annotated[str, typer.Argument(help="A data set of 'nlsf data list'.", show_default=False)]


@data_app.command("list")
def list_(data_root: DataRoot = None) -> None:
    """List all data sets, and which of them are here."""
    from rich.console import Console

    from nlsf.data.catalogue.entries import CATALOGUE
    from nlsf.data.catalogue.files import data_root as found_root

    root = found_root(data_root)
    rows = []
    for entry in CATALOGUE.values():
        counts = entry.statistics
        numbers = (counts.examples, counts.edges, counts.features, counts.classes)
        rows.append(
            [
                entry.name,
                entry.level,
                *("" if n is None else f"{n:,}" for n in numbers),
                {True: "yes", False: "no", None: ""}[entry.homophilous],
                entry.protocol,
                _whereabouts(entry, root),
            ]
        )
    heads = ("name", "level", "examples>", "edges>", "features>", "classes>")
    console = Console()
    TextTable.of(*heads, "homophilous", "protocol", "here", rows=rows).print(console)
    say(console, f"Data root: {root}")


@data_app.command()
def info(name: Name, data_root: DataRoot = None) -> None:
    """Tell everything that the catalogue knows of a data set."""
    import dataclasses

    from rich.console import Console

    from nlsf.data.catalogue import find, options
    from nlsf.data.catalogue.files import data_root as found_root
    from nlsf.data.catalogue.files import is_present

    entry = find(name)
    root = found_root(data_root)
    homophilous = {True: "yes", False: "no", None: "it depends"}[entry.homophilous]
    facts = {
        "level": entry.level,
        "task": entry.task,
        "metric": entry.metric,
        "protocol": entry.protocol,
        "homophilous": homophilous if entry.level == "node" else "",
        **{key: _number(n) for key, n in dataclasses.asdict(entry.statistics).items()},
        "options": ", ".join(f"{key} = {value!r}" for key, value in options(entry).items()),
        "also called": ", ".join(entry.aliases),
        "source": entry.source,
        "licence": entry.licence,
        "note": entry.note,
        "here": _whereabouts(entry, root),
    }
    console = Console()
    say(console, "", entry.name)
    for key, value in facts.items():
        if value:
            say(console, f"  {key.replace('_', ' '):14}{value}")
    for file in entry.all_files:
        state = "present" if is_present(file, root) else "missing"
        size = "" if file.size is None else f"{file.size:,} bytes"
        say(console, f"  {state:14}{file.at(root)}  {size}")


@data_app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets; by default all.", show_default=False)
    ] = None,
    data_root: DataRoot = None,
    load: Annotated[
        bool, typer.Option("--load/--no-load", help="Load what is whole and count its nodes.")
    ] = True,
) -> None:
    """Verify files by their checksums, and data sets by their counts.

    Exit code 1 if anything is wrong, or if a data set that you named is not here.
    """
    from rich.console import Console

    from nlsf.data.catalogue import check as checked
    from nlsf.data.catalogue.files import data_root as found_root

    console = Console()
    root = found_root(data_root)
    tally: Counter[str] = Counter()
    for row in checked(root, names or None, loading=load):
        tally[row.state] += 1
        _print_row(console, row)
    found = ", ".join(f"{count} {state}" for state, count in tally.items())
    say(console, f"{root}: {found or 'nothing to check'}.")
    if tally["wrong"] or (names and tally["missing"]):
        raise typer.Exit(1)


@data_app.command()
def split(
    name: Name,
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", help="How to divide; by default as the catalogue says."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", min=1, help="How many, seeds from 0; by default 10, or all that are given."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write to; it is made.")
    ] = Path("splits"),
    data_root: DataRoot = None,
    offline: Offline = False,
) -> None:
    """Write splits of a data set as files that can be committed."""
    from rich.console import Console

    from nlsf.data.catalogue import find, load
    from nlsf.data.protocols import draw, write_split

    entry = find(name)
    how = protocol or entry.protocol
    if how.endswith(".json"):
        raise typer.BadParameter("a split file is written already.", param_hint="'--protocol'")
    dataset = load(entry.name, data_root, offline=offline)
    count = seeds or len(dataset.given.get(how, ())) or 10
    splits = [draw(dataset, how, seed) for seed in range(count)]
    output.mkdir(parents=True, exist_ok=True)
    console = Console()
    for drawn in splits:
        path = output / f"{entry.name.replace(' ', '-')}-{how}-{drawn.seed}.json"
        write_split(path, drawn, dataset)
        sizes = " / ".join(f"{part.numel():,}" for part in drawn.parts)
        say(console, f"{path}: {sizes}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}"


def _print_row(console: Console, row: CheckRow) -> None:
    what = f"{row.name}, {row.item}" if row.item == "statistics" else row.item
    detail = f": {row.detail}" if row.detail else ""
    say(console, f"{row.state:18}{what}{detail}", style=_STYLES.get(row.state, ""))


def _whereabouts(entry: Entry, root: Path) -> str:
    from nlsf.data.catalogue.files import is_present

    if not entry.files:
        return "embedded"
    here = sum(is_present(file, root) for file in entry.files)
    if here == len(entry.files):
        return "present"
    return f"{here} of {len(entry.files)} files" if here else "missing"
