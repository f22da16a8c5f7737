"""Refusing what will not fit, before the work starts."""

from __future__ import annotations

import os
from pathlib import Path

from nlsf.errors import MemoryBudgetError


def available_memory() -> int:
    """Bytes that can be used without swapping, or all physical memory where that is not told."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_budget(limit: int | None) -> int:
    """The limit that was given, or 80 % of what is available."""
    return int(0.8 * available_memory()) if limit is None else limit


def require_memory(needed: int, limit: int | None, what: str, instead: str) -> None:
    """Raises `MemoryBudgetError` with the estimate if ``needed`` bytes exceed the limit.

    Args:
        needed: estimated bytes.
        limit: bytes that may be used; 80 % of what is available by default.
        what: what would need them, the subject of the message.
        instead: what the user can do.
    """
    limit = memory_budget(limit)
    if needed > limit:
        raise MemoryBudgetError(
            f"{what} would need about {needed / 1e9:.3g} GB, and {limit / 1e9:.3g} GB may be used. "
            f"{instead}",
            needed=needed,
            limit=limit,
        )
