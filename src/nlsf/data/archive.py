"""Archives from elsewhere, read in memory within limits: `read_members` and `gunzip`.

Nothing is extracted to disk, so a name in an archive can never become a path. Whatever an archive
declares about its size, reading stops at the limit.
"""

from __future__ import annotations

import gzip
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from nlsf.errors import FormatError

# The largest archive of the catalogue, COLLAB, holds 364 MB in 59 MB. Members of a few kilobytes
# reach a ratio of 300, whole archives 11: so the ratio is that of the archive, and small ones pass.
MAX_BYTES = 2 << 30
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
    max_bytes: int = MAX_BYTES,
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


def gunzip(path: Path, *, max_bytes: int = MAX_BYTES, max_ratio: float = MAX_RATIO) -> bytes:
    """The content of a gzip file.

    Args:
        path: the file.
        max_bytes: the most that it may hold.
        max_ratio: the most that it may hold for each of its bytes, above 1 MB.

    Raises:
        FormatError: the file is damaged or too large.
    """
    limit = min(max_bytes, max(_SMALL, int(max_ratio * path.stat().st_size)))
    try:
        with gzip.open(path) as file:
            return _read(file, limit, f"{path}")
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise FormatError(f"{path} is not a whole gzip file ({error}): fetch it again.") from error


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


def _read(file: IO[bytes] | gzip.GzipFile, limit: int, where: str) -> bytes:
    parts: list[bytes] = []
    while part := file.read(_CHUNK):
        limit -= len(part)
        if limit < 0:
            raise FormatError(f"{where} holds more than its limit: do not trust it.")
        parts.append(part)
    return b"".join(parts)
