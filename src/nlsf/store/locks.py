"""Locks between processes, which no killed process leaves behind: `FileLock`, `is_held`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from nlsf.store.files import naming

if sys.platform != "win32":
    import fcntl


class FileLock:
    """A lock on a file, held by one process (and one thread of it) at a time.

    It is ``flock``, which the system frees when the process ends, however it ends. The file is made
    where there is none, and stays. Systems without ``flock`` have no lock: whoever asks gets it.

    Args:
        path: the file; its folder exists.

    Example:
        >>> lock = FileLock(getfixture("tmp_path") / "lock")
        >>> with lock:
        ...     FileLock(lock.path).acquire(wait=False)
        False
    """

    def __init__(self, path: Path) -> None:
        self.path, self._handle = path, -1

    def acquire(self, *, wait: bool = True) -> bool:
        """Takes the lock; whether it could.

        Args:
            wait: until it is free; otherwise ``False`` is the answer where another holds it.

        Raises:
            OSError: the file cannot be made; ``filename`` is ``path``.
        """
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                taken = _take(handle, wait=wait)
            except BaseException:
                os.close(handle)
                raise
        except OSError as error:
            raise naming(error, self.path) from error
        if taken:
            self._handle = handle
        else:
            os.close(handle)
        return taken

    def release(self) -> None:
        """Frees it."""
        # Forgotten before it is closed: a thread that waits sets its own right after.
        handle, self._handle = self._handle, -1
        os.close(handle)

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a process holds the `FileLock` of this path; it may, on systems without locks."""
    if sys.platform == "win32":
        return True
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _take(handle, wait=False)
    finally:
        os.close(handle)


def _take(handle: int, *, wait: bool) -> bool:
    """Locks an open file; the lock ends when the handle is closed."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
