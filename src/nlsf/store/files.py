"""Files that are whole or absent: `write_text`, `write_bytes`, `whole_file`, `whole_file_at`.

Each writes under a temporary name in the same folder, waits for the disk, and renames. A reader
finds the old content or the new one, also after a power cut. Permissions are those of any new file
in that folder: the umask's, and the folder's group where the folder says so.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from nlsf.errors import FormatError, NLSFError

TEMPORARY = f".*-{'[0-9a-f]' * 12}.tmp"
"""The pattern of the names under which files are written before they are renamed."""

DAY = 86_400.0
"""Seconds after which no process is still writing one file."""

_NAME = 48
"""Characters of a file's name that its temporary name repeats: a name may have 255 bytes."""


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of the text in UTF-8; line ends stay as they are."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file; a reader finds the old content or the new one, never a part.

    Raises:
        OSError: the disk is full, or the folder cannot be written; ``filename`` is ``path``. The
            old file, if there was one, is as before.
    """
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file when the block ends, and vanishes when it fails.

    Args:
        path: the file; its folder exists.
        sync: wait for the disk. Only what carries a checksum, and can be made again, can do
            without: a power cut may leave it torn.

    Raises:
        OSError: as `write_bytes`. Errors about other files, and those of this package, pass as
            they are.

    Example:
        >>> path = getfixture("tmp_path") / "rows.txt"
        >>> with whole_file(path) as file:
        ...     _ = file.write(b"one")
        ...     path.exists()
        False
        >>> path.read_bytes()
        b'one'
    """
    # Not tempfile: its files are readable by their owner only, and keep that when renamed.
    temporary = path.with_name(f".{path.name[:_NAME]}-{secrets.token_hex(6)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if sync:
            _sync_folder(path.parent)
    except NLSFError:
        raise
    except OSError as error:
        if error.filename is None or Path(error.filename) == temporary:
            raise naming(error, path) from error
        raise


@contextmanager
def whole_file_at(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """`whole_file` for libraries that want a name: gives the path of an empty file to fill.

    Example:
        >>> path = getfixture("tmp_path") / "rows.txt"
        >>> with whole_file_at(path) as temporary:
        ...     _ = temporary.write_bytes(b"one")
        >>> path.read_bytes()
        b'one'
    """
    with whole_file(path, sync=sync) as file:
        temporary = Path(file.name)
        yield temporary
        # Who filled it may have put a file of its own in its place, with other permissions.
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if stat.S_IMODE(temporary.stat().st_mode) != mode:
            temporary.chmod(mode)
        if sync:
            with temporary.open("rb+") as filled:
                os.fsync(filled.fileno())


def remove_leftovers(
    folder: Path, *, age: float = 0.0, patterns: Sequence[str] = (TEMPORARY,)
) -> None:
    """Removes temporary files of processes that were killed while they wrote.

    Args:
        folder: where they wrote; other files in it stay.
        age: seconds since they were last written; `DAY` where others may be writing now.
        patterns: of their names, which are hidden, where libraries have temporary files of their
            own.
    """
    oldest = time.time() - age
    with suppress(OSError), os.scandir(folder) as entries:
        # By hand, because a shared folder may have many files, and this runs at every write.
        hidden = [entry for entry in entries if entry.name.startswith(".")]
        for entry in hidden:
            if any(fnmatchcase(entry.name, pattern) for pattern in patterns):
                # Another process may be faster, and another user's file may stay.
                with suppress(OSError):
                    if entry.stat().st_mtime <= oldest:
                        os.unlink(entry.path)


def read_text(path: Path, *, limit: int) -> str:
    """The text of a small file in UTF-8.

    Args:
        path: the file.
        limit: bytes that a file of this kind has at most.

    Raises:
        FormatError: it is larger, or something else than text.
    """
    check_size(path, limit)
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not text in UTF-8.") from error


def check_size(path: Path, limit: int) -> None:
    """Refuses a file that is larger than any that this package writes there."""
    if path.stat().st_size > limit:
        raise FormatError(f"{path} is larger than {limit // 2**20} MiB, so it is not one of ours.")


def file_checksum(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_checksum(text: str) -> str:
    """The SHA-256 of a text in UTF-8.

    Example:
        >>> text_checksum("")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def naming(error: OSError, path: Path) -> OSError:
    """The same error (errno, reason and type) with this path as its only file name."""
    return OSError(error.errno, error.strerror or str(error), str(path))


def _sync_folder(folder: Path) -> None:
    """Makes a rename last through a power cut; only POSIX lets a folder be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
