"""Files with one JSON object a line: `write`, `append`, `read`, `mend`, `sync`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nlsf.errors import FormatError
from nlsf.store.files import check_size, naming, write_bytes


def encode(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """One line a row: keys in their order, floats by ``repr``, NaN and infinities as ``null``."""
    lines = [json.dumps(_finite(row), ensure_ascii=False, allow_nan=False) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a file of these rows, whole or not at all, in the place of the one that was there."""
    write_bytes(path, encode(rows))


def append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Appends rows in one write, so that a killed process leaves at most one torn line, the last.

    Raises:
        OSError: the disk is full, or the file cannot be written; it has its old size.
    """
    data = encode(rows)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            size = os.fstat(handle).st_size
            try:
                written = os.write(handle, data)
                # A disk that fills up takes a part, and gives its reason only at the next write.
                while written < len(data):
                    written += os.write(handle, data[written:])
            except OSError:
                os.ftruncate(handle, size)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise naming(error, path) from error


def read(path: Path, *, torn: bool = False, limit: int | None = None) -> list[dict[str, Any]]:
    """The rows of a file.

    Args:
        path: the file.
        torn: leave out a last line without line end, which a killed process left.
        limit: bytes that a file of this kind has at most; any number by default.

    Raises:
        FormatError: a line is not a JSON object, or the file is too large.
    """
    if limit is not None:
        check_size(path, limit)
    *lines, rest = path.read_bytes().split(b"\n")
    if rest and not torn:
        raise FormatError(f"{path}, line {len(lines) + 1}: the line is cut off.")
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}, line {number}: expected a JSON object.") from error
        if not isinstance(row, dict):
            raise FormatError(f"{path}, line {number}: expected a JSON object.")
        rows.append(row)
    return rows


def mend(path: Path) -> None:
    """Cuts off a last line without line end, which a killed process left; nobody else may write."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        file.seek(size - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def sync(path: Path) -> None:
    """Waits until what was appended would outlast a power cut; nothing to do without a file."""
    if not path.exists():
        return
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        raise naming(error, path) from error
    finally:
        os.close(handle)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
