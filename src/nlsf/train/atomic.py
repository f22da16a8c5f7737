"""Files that are whole or absent: `write_bytes`, `write_text`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

TEMPORARY = ".*.tmp"
"""The pattern of the names under which files are written before they are renamed."""


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, also after a power cut, finds the old or the new content.

    Raises:
        OSError: the disk is full, or the folder cannot be written; ``filename`` is ``path``. The
            old file, if there was one, is as before.
    """
    # Not tempfile: its files are readable by their owner only, and keep that when renamed.
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(6)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise naming(error, path) from error


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of the text in UTF-8; line ends stay as they are."""
    write_bytes(path, text.encode())


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
