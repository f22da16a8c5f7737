"""Freed memory stays with the process: `keep_freed_memory`."""

from __future__ import annotations

import ctypes
import os

_TRIM, _MMAP = -1, -3  # of malloc.h
_LARGEST = 32 * 2**20  # the highest that glibc takes
_UNUSED = 2**30


def keep_freed_memory() -> bool:
    """Asks the C library to use freed blocks of up to 32 MB again, and not to give them back.

    A training step allocates tensors of some megabytes and frees them at once. By default each
    comes fresh from the system, page by page: on collections of graphs a fifth of the time. Where
    the user has said something in ``MALLOC_...`` it is left at that.

    Returns:
        Whether it was done; other libraries than glibc have no such option.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc; no C library by that name
        return False
    return bool(mallopt(_MMAP, _LARGEST) and mallopt(_TRIM, _UNUSED))
