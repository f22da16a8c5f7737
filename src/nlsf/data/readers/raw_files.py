"""From a file to named arrays, for formats that several readers share."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlsf.errors import DataError, FormatError

MAX_BYTES = 8 << 30


def ending(paths: Sequence[Path], suffix: str) -> Path:
    """The one of the paths whose name ends so.

    Raises:
        DataError: there is none.
    """
    for path in paths:
        if path.name.endswith(suffix):
            return existing(path)
    raise DataError(f"No file whose name ends with {suffix!r} was given.")


def existing(path: Path) -> Path:
    """The path, if a file is there that can be read and is not too large.

    Raises:
        DataError: there is no file, or it may not be read.
        FormatError: it is larger than 8 GiB.
    """
    try:
        if not path.is_file():
            raise DataError(f"{path} is missing: put the file there.")
        if not os.access(path, os.R_OK):
            raise PermissionError
        size = path.stat().st_size
    except PermissionError as error:
        raise DataError(f"{path} may not be read: change its permissions.") from error
    if size > MAX_BYTES:
        raise FormatError(f"{path} is larger than {MAX_BYTES >> 30} GiB, the most that is read.")
    return path


def read_npz(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Arrays of a NumPy archive, by name.

    Args:
        path: the ``.npz`` file.
        names: those to read, if they are there.

    Raises:
        FormatError: the archive is damaged or too large, or an array holds Python objects.
    """
    existing(path)
    field = ""
    try:
        _check_declared(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {}
            for field in archive.files:
                if field in names:
                    arrays[field] = np.asarray(archive[field])
            return arrays
    except FormatError:
        raise
    # Damaged bytes make the readers of archives and of headers, which are Python, stumble in any
    # way.
    except Exception as error:
        if "allow_pickle" in str(error) and field:
            raise FormatError(
                f"{path}: {field!r} holds Python objects; save it as an array of numbers."
            ) from error
        raise FormatError(f"{path} is not a whole .npz archive{_at(field)}.") from error


def need(path: Path, found: Collection[str], names: Iterable[str]) -> None:
    """Checks that a file has these fields.

    Raises:
        FormatError: one is not there; names it and what is there.
    """
    for name in names:
        if name not in found:
            others = ", ".join(map(repr, sorted(found)))
            beside = f"; it has {others}" if others else ""
            raise FormatError(f"{path} has no {name!r}, which it needs{beside}.")


def _at(field: str) -> str:
    return f" (reading {field!r})" if field else ""


def _check_declared(path: Path) -> None:
    """A zip archive never gives more than it declares: so this bounds what is read."""
    with zipfile.ZipFile(path) as archive:
        total = sum(member.file_size for member in archive.infolist())
    if total > MAX_BYTES:
        raise FormatError(
            f"{path} declares {total:,} bytes of arrays; at most {MAX_BYTES >> 30} GiB are read."
        )
