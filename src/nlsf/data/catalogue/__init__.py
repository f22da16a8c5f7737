"""Data sets by name: `find` an entry of the catalogue, `load` it, `check` its files."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from nlsf.data.catalogue.entries import CATALOGUE
from nlsf.data.catalogue.entry import Entry, Statistics
from nlsf.data.catalogue.files import RemoteFile, data_root, is_present, locate_all
from nlsf.errors import ConfigError, NLSFError, unknown_name
from nlsf.store.files import file_checksum

if TYPE_CHECKING:
    from nlsf.data.dataset import Dataset


def find(name: str) -> Entry:
    """The entry of this name or alias; case, spaces, ``-`` and ``_`` do not matter.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    entry = _BY_KEY.get(_key(name))
    if entry is None:
        raise ConfigError(unknown_name("data set", name, CATALOGUE))
    return entry


def knows(name: str) -> bool:
    """Whether the catalogue has this name or alias."""
    return _key(name) in _BY_KEY


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    offline: bool = False,
    **chosen: Any,
) -> Dataset:
    """Reads a data set of the catalogue; what is missing is downloaded first.

    Args:
        name: see `find`.
        root: see `nlsf.data.catalogue.files.data_root`.
        offline: download nothing.
        **chosen: options of the reader; see `options`.

    Raises:
        ConfigError: there is no such data set or option.
        DataError: a file is missing; says where to put it.
        FormatError: a file does not hold what it should.
    """
    entry = find(name)
    check_options(entry, chosen)
    files = entry.all_files if chosen.get("directed") else entry.files
    paths = locate_all(files, data_root(root), offline=offline)
    return cast("Dataset", _reader(entry)(entry, paths, **chosen))


def check_options(entry: Entry, chosen: Iterable[str]) -> None:
    """Refuses options that the reader of an entry does not take."""
    known = options(entry)
    for option in chosen:
        if option not in known:
            what = f"option of {entry.name}"
            sentence = f"{entry.name} has no options, so not {option!r}."
            raise ConfigError(unknown_name(what, option, known) if known else sentence)


def options(entry: Entry) -> dict[str, Any]:
    """The options that the reader of an entry takes, with their defaults."""
    parameters = inspect.signature(_reader(entry)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _reader(entry: Entry) -> Callable[..., Any]:
    module, _, function = entry.reader.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), function))


def _key(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


_BY_KEY = {_key(n): entry for entry in CATALOGUE.values() for n in (entry.name, *entry.aliases)}


State: TypeAlias = Literal["ok", "wrong", "missing", "no checksum known", "unknown"]


@dataclass(frozen=True)
class CheckRow:
    """What was found about one file, or about the counts of one data set.

    Attributes:
        name: the data set; empty for a file that belongs to none.
        item: the path of the file below the data root, or ``"statistics"``.
        state: ``"wrong"`` is an error; ``"unknown"`` a file that no data set needs.
        detail: what is wrong, or the counts.
    """

    name: str
    item: str
    state: State
    detail: str = ""


def check(
    root: Path, names: Sequence[str] | None = None, *, loading: bool = True
) -> Iterator[CheckRow]:
    """Verifies files by their checksums, then loads the data sets and counts.

    Args:
        root: the data root.
        names: data sets; by default all, and then files that belong to none are listed, too.
        loading: load what is whole and compare its counts with the catalogue's.

    Yields:
        A row for each file and, for each data set that is there, one for its counts.

    Raises:
        ConfigError: there is no such data set; before anything is read.
    """
    entries = CATALOGUE.values() if names is None else [find(name) for name in names]
    return _rows(root, list(entries), loading, everything=names is None)


def statistics(dataset: Dataset) -> Statistics:
    """The counts of a data set, in the form of the catalogue."""
    sizes = [int(graph.num_nodes or 0) for graph in dataset.graphs]
    many = dataset.level == "graph"
    return Statistics(
        nodes=None if many else sum(sizes),
        edges=sum(graph.edge_index.shape[1] for graph in dataset.graphs) // 2,
        features=dataset.num_features,
        classes=None if dataset.is_regression else len(dataset.classes),
        examples=dataset.num_examples,
        min_nodes=min(sizes, default=0) if many else None,
        max_nodes=max(sizes, default=0) if many else None,
        average_nodes=round(sum(sizes) / max(len(sizes), 1), 2) if many else None,
    )


def _rows(
    root: Path, entries: Sequence[Entry], loading: bool, *, everything: bool
) -> Iterator[CheckRow]:
    for entry in entries:
        states = {}
        for file in entry.all_files:
            row = _file_row(root, entry, file)
            states[file] = row.state
            yield row
        if loading and all(states[file] not in ("missing", "wrong") for file in entry.files):
            yield _count_row(root, entry)
    if everything:
        yield from _unknown_files(root)


def _file_row(root: Path, entry: Entry, file: RemoteFile) -> CheckRow:
    path = file.at(root)
    if not is_present(file, root):
        return CheckRow(entry.name, file.path, "missing")
    if file.sha256 is None:
        return CheckRow(entry.name, file.path, "no checksum known")
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        detail = f"{size:,} bytes, expected {file.size:,}"
        return CheckRow(entry.name, file.path, "wrong", detail)
    found = file_checksum(path)
    if found != file.sha256:
        detail = f"SHA-256 {found}, expected {file.sha256}"
        return CheckRow(entry.name, file.path, "wrong", detail)
    return CheckRow(entry.name, file.path, "ok")


def _count_row(root: Path, entry: Entry) -> CheckRow:
    try:
        found = statistics(load(entry.name, root, offline=True))
    except NLSFError as error:
        return CheckRow(entry.name, "statistics", "wrong", str(error))
    differences, counts = [], []
    for field in dataclasses.fields(Statistics):
        what, expected = field.name.replace("_", " "), getattr(entry.statistics, field.name)
        value = getattr(found, field.name)
        if value is not None:
            counts.append(f"{value:,} {what}")
        if expected is not None and value != expected:
            differences.append(f"{value} {what}, expected {expected}")
    if differences:
        return CheckRow(entry.name, "statistics", "wrong", "; ".join(differences))
    return CheckRow(entry.name, "statistics", "ok", ", ".join(counts))


def _unknown_files(root: Path) -> Iterator[CheckRow]:
    """Files beside those of the catalogue; other folders are not looked into."""
    known = {file.path for entry in CATALOGUE.values() for file in entry.all_files}
    folders = {path.rpartition("/")[0] for path in known} | {""}
    for folder in sorted(folders):
        if not (root / folder).is_dir():
            continue
        for path in sorted((root / folder).iterdir()):
            item = path.relative_to(root).as_posix()
            if path.is_file() and item not in known:
                yield CheckRow("", item, "unknown")
