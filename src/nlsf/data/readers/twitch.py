"""Twitch-Gamers: streamers who follow each other."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.edges import undirected
from nlsf.data.readers._tables import table
from nlsf.data.readers.raw_files import ending
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.data.entry import Entry

_TASK = "mature"
_ID = "numeric_id"


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """The network; a streamer's class is whether the content is for adults.

    Features as in LINKX, seven: views, life_time, created_at and updated_at (a day as the number
    YYYYMMDD), dead_account, language (numbered in the order of first appearance) and affiliate,
    each shifted and scaled to mean 0 and standard deviation 1.

    Args:
        entry: names the data set.
        paths: ``twitch-gamer_feat.csv`` and ``twitch-gamer_edges.csv``, in any order.
    """
    path = ending(paths, "_feat.csv")
    columns = _columns(path)
    y = columns.pop(_TASK).astype(np.int64)
    ids = columns.pop(_ID).astype(np.int64)
    num_nodes = len(ids)
    if not num_nodes or not np.array_equal(np.sort(ids), np.arange(num_nodes)):
        raise FormatError(f"{path}: {_ID!r} does not number the rows from 0, each once.")
    if not np.isin(y, (0, 1)).all():
        line = int((~np.isin(y, (0, 1))).argmax()) + 2
        raise FormatError(f"{path}, line {line}: {_TASK!r} is {y[line - 2]}; expected 0 or 1.")
    x = np.stack(list(columns.values()), axis=1)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0, ddof=1) if num_nodes > 1 else np.ones(x.shape[1])
    x = x / np.where(spread > 0, spread, 1.0)
    order = np.argsort(ids)
    start, end = _edges(ending(paths, "_edges.csv"), num_nodes)
    graph = Data(
        x=torch.from_numpy(x[order].astype(np.float32)),
        edge_index=undirected(start, end, num_nodes),
        num_nodes=num_nodes,
    )
    return Dataset(
        name=entry.name,
        level="node",
        graphs=(graph,),
        y=torch.from_numpy(y[order]),
        classes=("0", "1"),
        metric=entry.metric,
    )


class _Languages(dict[str, float]):
    """Numbers names in the order in which they are first asked for."""

    def __missing__(self, name: str) -> float:
        self[name] = float(len(self))
        return self[name]


def _day(text: str) -> float:
    return float(date.fromisoformat(text).strftime("%Y%m%d"))


def _parsers() -> Mapping[str, Callable[[str], float]]:
    return {
        "views": int,
        _TASK: int,
        "life_time": int,
        "created_at": _day,
        "updated_at": _day,
        _ID: int,
        "dead_account": int,
        "language": _Languages().__getitem__,
        "affiliate": int,
    }


def _columns(path: Path) -> dict[str, NDArray[np.float64]]:
    """The columns of the table of streamers by name, as numbers."""
    parsers = _parsers()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            if set(header) != set(parsers) or len(header) != len(parsers):
                raise FormatError(f"{path}, line 1: expected the columns {', '.join(parsers)}.")
            values: list[list[float]] = []
            for row in rows:
                values.append(_numbers(path, rows.line_num, header, row, parsers))
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not a CSV file in UTF-8.") from error
    together = np.array(values, dtype=np.float64).reshape(-1, len(header))
    return {name: together[:, header.index(name)] for name in parsers}


def _numbers(
    path: Path,
    line: int,
    header: Sequence[str],
    row: Sequence[str],
    parsers: Mapping[str, Callable[[str], float]],
) -> list[float]:
    if len(row) != len(header):
        raise FormatError(f"{path}, line {line} has {len(row)} values; expected {len(header)}.")
    found: list[float] = []
    for name, text in zip(header, row, strict=True):
        try:
            found.append(float(parsers[name](text)))
        except (ValueError, OverflowError) as error:
            what = "a date YYYY-MM-DD" if name.endswith("_at") else "a whole number"
            raise FormatError(
                f"{path}, line {line}, column {name!r}: {text!r} is not {what}."
            ) from error
    return found


def _edges(path: Path, num_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    header, _, body = path.read_bytes().partition(b"\n")
    if b"numeric_id" not in header:
        raise FormatError(f"{path}, line 1: expected the columns numeric_id_1, numeric_id_2.")
    # The line of the header stays, empty, so that messages count lines as editors do.
    start, end = table(str(path), b"\n" + body, kind=int, columns=2).T
    bad = (start < 0) | (end < 0) | (start >= num_nodes) | (end >= num_nodes)
    if bad.any():
        line = int(bad.argmax()) + 2
        raise FormatError(
            f"{path}, line {line} names a node outside 0 to {num_nodes - 1}, the nodes of the "
            "table of features."
        )
    return start, end
