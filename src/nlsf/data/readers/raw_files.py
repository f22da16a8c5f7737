"""From files of unknown content to bytes, numbers and named arrays, within limits.

Archives are read in memory and nothing is extracted to disk, so a name in one can never become a
path. Whatever an archive declares about itself is checked, and checked again while it is read.
"""

from __future__ import annotations

import csv
import hashlib
import os
import stat
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlsf.errors import DataError, FormatError

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

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


def published(entry: Entry, path: Path) -> bytes:
    """The content of a file that is, byte for byte, the one that the catalogue knows.

    Such content needs no further check: it is what it was when its reader was written.

    Raises:
        FormatError: the file is another.
    """
    checksums = {file.path.rpartition("/")[2]: file.sha256 for file in entry.files}
    known = checksums.get(path.name)
    content = existing(path).read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != known:
        raise FormatError(
            f"{path} is not the published file of {entry.name}: its SHA-256 is {found}, not "
            f"{known}. Remove it, and it is fetched again."
        )
    return content


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The numbers and cells of the lines of a comma-separated table, without blank lines.

    Raises:
        FormatError: it is no such table in UTF-8.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                if row:
                    yield rows.line_num, [cell.strip() for cell in row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not a comma-separated table in UTF-8.") from error


@dataclass(frozen=True)
class CsvTable:
    """A comma-separated table with a header.

    Attributes:
        path: the file.
        header: the names of its columns.
        lines: the number of the line of each row.
        rows: cells, as many in each row as in the header.
    """

    path: Path
    header: list[str]
    lines: list[int]
    rows: list[list[str]]

    @classmethod
    def read(cls, path: Path) -> CsvTable:
        """The table in a file.

        Raises:
            FormatError: a row has more or fewer cells than the header; names its line.
        """
        lines, rows = [], []
        content = csv_rows(path)
        _, header = next(content, (1, [""]))
        for line, row in content:
            if len(row) != len(header):
                raise FormatError(
                    f"{path}, line {line} has {len(row)} cells; expected {len(header)}."
                )
            lines.append(line)
            rows.append(row)
        return cls(path, header, lines, rows)

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def parsed(self, name: str, parse: Callable[[str], float], what: str) -> NDArray[np.float64]:
        """The cells of a column as numbers.

        Args:
            name: of the column.
            parse: makes a number of a cell, or raises a ``ValueError``.
            what: what a cell must be, in words.

        Raises:
            FormatError: a cell is something else; names its line and column.
        """
        found = np.empty(len(self.rows))
        for k, text in enumerate(self.column(name)):
            try:
                found[k] = parse(text)
            except (ValueError, OverflowError) as error:
                where = f"{self.path}, line {self.lines[k]}, column {name!r}"
                raise FormatError(f"{where}: {text!r} is not {what}.") from error
        return found


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


# The largest archive of the catalogue, COLLAB, holds 364 MB in 59 MB. Members of a few kilobytes
# reach a ratio of 300, whole archives 11: so the ratio is that of the archive, and small ones pass.
MAX_ARCHIVE_BYTES = 2 << 30
MAX_FILES = 10_000
MAX_RATIO = 200.0
_SMALL = 1 << 20
_CHUNK = 1 << 20
# A damaged directory sends the reader to any offset: that is an OSError, which names no file.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    NotImplementedError,
    OSError,
    ValueError,
)


def read_members(
    path: Path,
    wanted: Callable[[str], bool] | None = None,
    *,
    max_bytes: int = MAX_ARCHIVE_BYTES,
    max_files: int = MAX_FILES,
    max_ratio: float = MAX_RATIO,
) -> dict[str, bytes]:
    """The files in a zip archive, by their names there.

    Args:
        path: the archive.
        wanted: takes a name, says whether to read it; by default all are read.
        max_bytes: the most that all files together may hold.
        max_files: the most members that the archive may have.
        max_ratio: the most that all files may hold for each byte of the archive, above 1 MB.

    Raises:
        FormatError: the archive is damaged or too large, or a member is encrypted, a link, there
            twice, or would lie outside the folder of the archive.
    """
    limit = min(max_bytes, max(_SMALL, int(max_ratio * path.stat().st_size)))
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(path, members, limit, max_files)
            contents: dict[str, bytes] = {}
            for member in members:
                if member.is_dir() or (wanted is not None and not wanted(member.filename)):
                    continue
                with archive.open(member) as file:
                    where = f"{path}, member {member.filename!r},"
                    contents[member.filename] = _read(file, limit, where)
                limit -= len(contents[member.filename])
            return contents
    except FormatError:
        raise
    except _DAMAGE as error:
        raise FormatError(
            f"{path} is not a whole zip archive ({error}): fetch it again."
        ) from error


def _check_members(path: Path, members: list[zipfile.ZipInfo], limit: int, max_files: int) -> None:
    if len(members) > max_files:
        raise FormatError(f"{path} has {len(members):,} members; at most {max_files:,} are read.")
    seen: set[str] = set()
    for member in members:
        name = member.filename
        fault = _fault(member)
        if fault is None and name in seen:
            fault = "is there twice"
        if fault is not None:
            raise FormatError(f"{path}: the member {name!r} {fault}; do not trust this archive.")
        seen.add(name)
    total = sum(member.file_size for member in members)
    if total > limit:
        raise FormatError(f"{path} declares {total:,} bytes of content; at most {limit:,} fit it.")


def _fault(member: zipfile.ZipInfo) -> str | None:
    """What is wrong with a member, if anything."""
    if not member.filename:
        return "has no name"
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or set(member.filename) & set("\\:"):
        return "would lie outside its folder"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if member.flag_bits & 0x1:
        return "is encrypted"
    # The other methods give what they like for each chunk that they take, past any limit.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is not compressed by the method 'deflate'"
    return None


def _read(file: IO[bytes], limit: int, where: str) -> bytes:
    parts: list[bytes] = []
    while part := file.read(_CHUNK):
        limit -= len(part)
        if limit < 0:
            raise FormatError(f"{where} holds more than its limit: do not trust it.")
        parts.append(part)
    return b"".join(parts)
