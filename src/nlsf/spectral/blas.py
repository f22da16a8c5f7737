"""One thread of linear algebra in every thread of ours: `one_blas_thread`."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, BLAS and LAPACK use one thread a call, in the whole process.

    Many graphs keep the cores busy without it, and how a product is divided among threads changes
    the last bits of eigenvectors. Several threads may be inside at once: the limit ends with the
    last one that leaves.
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@functools.cache
def _controller() -> Any:
    # To find the libraries takes milliseconds, so once: NumPy and SciPy have loaded theirs by now.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
