"""One graph of the user's own from two tables: ``edges.csv`` and ``features.csv``."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.data.own.arrays import given_splits
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import existing
from nlsf.errors import DataError, FormatError

_LABELS = ("label", "class", "y", "target")
_SPLIT = "split"


def open_csv(path: Path, *, features: Path | None = None) -> Dataset:
    """One graph from a table of edges and a table of nodes, comma-separated, in UTF-8.

    Edges: the ids of two nodes and, if there are three columns, a positive weight; a first line
    whose ids are neither nodes nor numbers is a header.

    Nodes: a header; the first column is the id, any text. A column ``label``, ``class``, ``y`` or
    ``target`` is what is learned: text or whole numbers from 0 name classes, other numbers (and any
    in ``target``) are a regression; an empty cell, or -1 for a class, is not known. A column
    ``split`` holds train, val, test or nothing. All other columns are numbers.

    Args:
        path: the table of edges, or the folder with ``edges.csv`` and ``features.csv``.
        features: the table of nodes; by default the file beside the edges with "features" in its
            name in place of "edges".
    """
    if path.is_dir():
        name, path = path.resolve().name, path / "edges.csv"
    else:
        name = path.resolve().parent.name if path.stem == "edges" else path.stem
    nodes = _read_nodes(_beside(path) if features is None else existing(features))
    ends, weight = _read_edges(existing(path), nodes)
    source = str(nodes.path)
    x = None
    if nodes.columns:
        x = torch.from_numpy(np.array(nodes.values, dtype=np.float32))
    y, classes = _labels(nodes)
    given = given_splits(source, _masks(nodes), y)
    return checks.network(source, name, ends, x, (y, classes), weight=weight, given=given)


@dataclass
class _Nodes:
    """The table of nodes, row by row."""

    path: Path
    columns: list[str] = field(default_factory=list)
    label: str | None = None
    ids: dict[str, int] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)

    def at(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"


def _beside(path: Path) -> Path:
    name = path.name.replace("edges", "features") if "edges" in path.name else "features.csv"
    features = path.with_name(name)
    if features == path:
        raise FormatError(f"{path} is the table of nodes: give that of the edges, edges.csv.")
    if not features.is_file():
        raise DataError(
            f"{features} is missing: put the table of nodes (id, features, label) beside the edges."
        )
    return existing(features)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells, without blank lines."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                if row:
                    yield rows.line_num, [cell.strip() for cell in row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not a comma-separated table in UTF-8.") from error


def _number(where: str, text: str) -> float:
    try:
        # Python takes 1_000 for a number; tables mean something else by it.
        number = math.nan if "_" in text else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or abs(number) > np.finfo(np.float32).max:
        raise FormatError(f"{where}: {text!r} is not a number.")
    return number


def _is_number(text: str, kind: type[int] | type[float]) -> bool:
    try:
        return "_" not in text and math.isfinite(kind(text))
    except (ValueError, OverflowError):
        return False


def _read_nodes(path: Path) -> _Nodes:
    rows = _rows(path)
    _, header = next(rows, (1, [""]))
    header = _check_header(path, header)
    learned = [name for name in header[1:] if name.lower() in _LABELS]
    if len(learned) > 1:
        raise FormatError(
            f"{path}, line 1: {learned[0]!r} and {learned[1]!r} are labels, keep one."
        )
    nodes = _Nodes(path, label=learned[0] if learned else None)
    places = [k for k in range(1, len(header)) if header[k] not in (*learned, _SPLIT)]
    nodes.columns = [header[k] for k in places]
    for line, row in rows:
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise FormatError(f"{where} has {len(row)} cells; expected {len(header)}.")
        if row[0] in nodes.ids:
            raise FormatError(f"{where}: the node {row[0]!r} is there twice.")
        nodes.ids[row[0]] = len(nodes.ids)
        nodes.lines.append(line)
        nodes.values.append(
            [_number(f"{where}, column {header[k]!r}", row[k]) for k in places],
        )
        if nodes.label is not None:
            nodes.labels.append(row[header.index(nodes.label)])
        if _SPLIT in header:
            nodes.splits.append(_part(where, row[header.index(_SPLIT)]))
    if not nodes.ids:
        raise FormatError(f"{path} has no nodes: expected a header and a line for each.")
    return nodes


def _check_header(path: Path, header: list[str]) -> list[str]:
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise FormatError(f"{path}, line 1: the column {twice!r} is there twice.")
    if not header[0] or all(_is_number(name, float) for name in header):
        raise FormatError(f"{path}, line 1 must name the columns, the first of which is the id.")
    return header


def _part(where: str, text: str) -> str:
    if text not in (*checks.PARTS, ""):
        raise FormatError(
            f"{where}, column {_SPLIT!r}: {text!r} is not train, val, test or nothing."
        )
    return text


def _read_edges(path: Path, nodes: _Nodes) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Ends (2, E) and weights (E,), if there is a third column."""
    ends: list[tuple[int, int]] = []
    weights: list[float] = []
    width = 0
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        width = width or len(row)
        if len(row) != width or width not in (2, 3):
            expected = "2 or 3" if width not in (2, 3) else str(width)
            raise FormatError(f"{where} has {len(row)} cells; expected {expected}.")
        if line == 1 and not any(c in nodes.ids or _is_number(c, float) for c in row[:2]):
            continue
        for node in row[:2]:
            if node not in nodes.ids:
                raise FormatError(f"{where}: the node {node!r} is not in {nodes.path}.")
        ends.append((nodes.ids[row[0]], nodes.ids[row[1]]))
        if width == 3:
            weights.append(_positive(where, row[2]))
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return pairs, np.array(weights, dtype=np.float64) if width == 3 else None


def _positive(where: str, text: str) -> float:
    weight = _number(where, text)
    if weight <= 0:
        raise FormatError(f"{where}: the weight {text} is not positive.")
    return weight


def _labels(nodes: _Nodes) -> tuple[Tensor, tuple[str, ...]]:
    count = len(nodes.ids)
    if nodes.label is None:
        return checks.unknown(count)
    known = [text for text in nodes.labels if text]
    whole = all(_is_number(text, int) for text in known)
    if nodes.label.lower() == "target" or (
        not whole and all(_is_number(text, float) for text in known)
    ):
        return torch.tensor([[_target(nodes, k)] for k in range(count)]), ()
    if not whole:
        return checks.classes(str(nodes.path), nodes.label, np.array(nodes.labels), count)
    numbers = [int(text) if text else -1 for text in nodes.labels]
    for row, number in enumerate(numbers):
        if not -1 <= number <= count:
            raise FormatError(
                f"{nodes.at(row)}, column {nodes.label!r}: {number} is not the number of a class, "
                "which are counted from 0."
            )
    return checks.classes(str(nodes.path), nodes.label, np.array(numbers), count)


def _target(nodes: _Nodes, row: int) -> float:
    text = nodes.labels[row]
    where = f"{nodes.at(row)}, column {nodes.label!r}"
    return _number(where, text) if text else math.nan


def _masks(nodes: _Nodes) -> dict[str, NDArray[np.bool_]]:
    if not any(nodes.splits):
        return {}
    parts = np.array(nodes.splits)
    return {f"{part}_mask": parts == part for part in checks.PARTS}
