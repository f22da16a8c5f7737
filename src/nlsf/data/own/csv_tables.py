"""One graph of the user's own from two tables: ``edges.csv`` and ``features.csv``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.data.own.arrays import given_splits
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import CsvTable, csv_rows, existing
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
    nodes = CsvTable.read(_beside(path) if features is None else existing(features))
    label = _label_of(nodes)
    ids = _ids(nodes)
    ends, weight = _read_edges(existing(path), ids, nodes.path)
    columns = [name for name in nodes.header[1:] if name not in (label, _SPLIT)]
    x = None
    if columns:
        values = np.stack([nodes.parsed(name, _number, "a number") for name in columns], axis=1)
        x = torch.from_numpy(values.astype(np.float32))
    source = str(nodes.path)
    y, classes = checks.unknown(len(ids)) if label is None else _labels(nodes, label)
    given = given_splits(source, _masks(nodes), y)
    return checks.network(source, name, ends, x, (y, classes), weight=weight, given=given)


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


def _number(text: str) -> float:
    """A number that is finite in 32 bits."""
    # Python takes 1_000 for a number; tables mean something else by it.
    number = math.nan if "_" in text else float(text)
    if not abs(number) <= np.finfo(np.float32).max:
        raise ValueError(text)
    return number


def _is_number(text: str, kind: type[int] | type[float]) -> bool:
    try:
        return "_" not in text and math.isfinite(kind(text))
    except (ValueError, OverflowError):
        return False


def _label_of(nodes: CsvTable) -> str | None:
    """The column that is learned, if there is one, of a header that fits."""
    header = nodes.header
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise FormatError(f"{nodes.path}, line 1: the column {twice!r} is there twice.")
    if not header[0] or all(_is_number(name, float) for name in header):
        raise FormatError(
            f"{nodes.path}, line 1 must name the columns, the first of which is the id."
        )
    learned = [name for name in header[1:] if name.lower() in _LABELS]
    if len(learned) > 1:
        raise FormatError(
            f"{nodes.path}, line 1: {learned[0]!r} and {learned[1]!r} are labels, keep one."
        )
    return learned[0] if learned else None


def _ids(nodes: CsvTable) -> dict[str, int]:
    """The number of each node by its id."""
    ids: dict[str, int] = {}
    for line, (node, *_) in zip(nodes.lines, nodes.rows, strict=True):
        if node in ids:
            raise FormatError(f"{nodes.path}, line {line}: the node {node!r} is there twice.")
        ids[node] = len(ids)
    if not ids:
        raise FormatError(f"{nodes.path} has no nodes: expected a header and a line for each.")
    return ids


def _read_edges(
    path: Path, ids: Mapping[str, int], of_nodes: Path
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Ends (2, E) and weights (E,), if there is a third column."""
    ends: list[tuple[int, int]] = []
    weights: list[float] = []
    width = 0
    for line, row in csv_rows(path):
        where = f"{path}, line {line}"
        width = width or len(row)
        if len(row) != width or width not in (2, 3):
            expected = "2 or 3" if width not in (2, 3) else str(width)
            raise FormatError(f"{where} has {len(row)} cells; expected {expected}.")
        if line == 1 and not any(c in ids or _is_number(c, float) for c in row[:2]):
            continue
        for node in row[:2]:
            if node not in ids:
                raise FormatError(f"{where}: the node {node!r} is not in {of_nodes}.")
        ends.append((ids[row[0]], ids[row[1]]))
        if width == 3:
            weights.append(_weight(where, row[2]))
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return pairs, np.array(weights, dtype=np.float64) if width == 3 else None


def _weight(where: str, text: str) -> float:
    try:
        weight = _number(text)
    except ValueError as error:
        raise FormatError(f"{where}: {text!r} is not a number.") from error
    if weight <= 0:
        raise FormatError(f"{where}: the weight {text} is not positive.")
    return weight


def _labels(nodes: CsvTable, label: str) -> tuple[Tensor, tuple[str, ...]]:
    texts = nodes.column(label)
    known = [text for text in texts if text]
    whole = all(_is_number(text, int) for text in known)
    if label.lower() == "target" or (not whole and all(_is_number(text, float) for text in known)):
        found = nodes.parsed(label, lambda text: _number(text) if text else math.nan, "a number")
        return torch.from_numpy(found[:, None].astype(np.float32)), ()
    if not whole:
        return checks.classes(str(nodes.path), label, np.array(texts), len(texts))

    def class_number(text: str) -> int:
        number = int(text) if text else -1
        if not -1 <= number <= len(texts):
            raise ValueError(text)
        return number

    what = "the number of a class, which are counted from 0"
    numbers = nodes.parsed(label, class_number, what).astype(np.int64)
    return checks.classes(str(nodes.path), label, numbers, len(texts))


def _masks(nodes: CsvTable) -> dict[str, NDArray[np.bool_]]:
    """Masks (N,) by their names, if a node is in any part."""
    if _SPLIT not in nodes.header:
        return {}
    choices = (*checks.PARTS, "")
    codes = nodes.parsed(_SPLIT, choices.index, "train, val, test or nothing")
    if (codes == len(checks.PARTS)).all():
        return {}
    return {f"{part}_mask": codes == k for k, part in enumerate(checks.PARTS)}
