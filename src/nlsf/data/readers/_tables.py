"""Text tables of numbers, fast for tens of millions of lines: `table`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlsf.errors import FormatError

_NO_MARKS = bytes(character for character in range(256) if character not in b",\n")


def table(
    source: str, content: bytes, *, kind: type[int] | type[float], columns: int | None = None
) -> NDArray[Any]:
    """Lines of comma-separated numbers.

    Args:
        source: the name of the file in messages.
        content: its bytes; blank lines at its ends are skipped.
        kind: int (gives int64) or float (float64).
        columns: numbers a line; by default as many as the first line has.

    Returns:
        (lines, columns).

    Raises:
        FormatError: a line has another number of columns or holds something else; names it.
    """
    skipped = content[: len(content) - len(content.lstrip())].count(b"\n")
    content = content.strip()
    if not content:
        return np.empty((0, columns or 1), dtype=kind)
    if columns is None:
        columns = content.split(b"\n", 1)[0].count(b",") + 1
    values = _parsed(content, kind) if _is_regular(content, columns) else None
    if values is None or values.size % columns or values.size // columns != _lines(content):
        raise FormatError(_first_fault(source, content, kind, columns, skipped))
    return values.reshape(-1, columns)


def _lines(content: bytes) -> int:
    return content.count(b"\n") + 1


def _is_regular(content: bytes, columns: int) -> bool:
    """Whether each line has this many columns."""
    marks = content.translate(None, delete=_NO_MARKS) + b"\n"
    return marks == (b"," * (columns - 1) + b"\n") * _lines(content)


def _parsed(content: bytes, kind: type[int] | type[float]) -> NDArray[Any] | None:
    with warnings.catch_warnings():
        # Older versions of NumPy warn where newer ones raise.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            found: NDArray[Any] = np.fromstring(content.replace(b",", b" "), dtype=kind, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    return found


def _first_fault(
    source: str, content: bytes, kind: type[int] | type[float], columns: int, skipped: int
) -> str:
    expected = "a whole number" if kind is int else "a number"
    for number, line in enumerate(content.split(b"\n"), start=skipped + 1):
        cells = line.split(b",")
        if len(cells) != columns:
            return f"{source}, line {number} has {len(cells)} values; expected {columns}."
        for cell in cells:
            try:
                kind(cell)
            except ValueError:
                text = cell.strip()[:40].decode("utf-8", "replace")
                return f"{source}, line {number}: {text!r} is not {expected}."
    return f"{source} is not a table of {columns} columns of numbers."
