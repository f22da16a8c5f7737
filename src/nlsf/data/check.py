"""Whether files are the publishers' and hold what the catalogue says: `check`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from nlsf.data.catalogue import CATALOGUE, Entry, Statistics, find, load
from nlsf.data.files import RemoteFile, is_present
from nlsf.errors import NLSFError
from nlsf.store.files import file_checksum

if TYPE_CHECKING:
    from nlsf.data.dataset import Dataset

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
