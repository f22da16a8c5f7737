"""What a training costs: `Usage`, measured by a `Meter`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

if sys.platform != "win32":
    import resource


@dataclass(frozen=True)
class Usage:
    """Time and memory, as they stand in checkpoints and in rows of results.

    Attributes:
        seconds: of the clock.
        cpu_seconds: of all threads of the process, in user and system mode; ``None`` where a part
            was not measured.
        peak_memory: the largest resident size of the process, in bytes. It is an upper bound: all
            that the process has done before, such as loading data and computing spectra, is in it.
            ``None`` where the system does not tell.
    """

    seconds: float = 0.0
    cpu_seconds: float | None = 0.0
    peak_memory: int | None = None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Usage:
        """Reads the keys of `to_table`; those that an older checkpoint lacks are not known."""
        return cls(table["seconds"], table.get("cpu_seconds"), table.get("peak_memory"))

    def to_table(self) -> dict[str, Any]:
        """The three numbers by name."""
        return asdict(self)


class Meter:
    """Measures from its making on, and adds what was spent before.

    Args:
        before: by processes that were interrupted.
    """

    def __init__(self, before: Usage | None = None) -> None:
        self.before = before or Usage()
        self._clock, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Usage:
        """What was spent so far."""
        cpu = self.before.cpu_seconds
        peaks = [p for p in (self.before.peak_memory, peak_memory()) if p is not None]
        return Usage(
            self.before.seconds + time.perf_counter() - self._clock,
            None if cpu is None else cpu + time.process_time() - self._cpu,
            max(peaks, default=None),
        )


def peak_memory() -> int | None:
    """The largest resident size of this process so far, in bytes, where the system tells it."""
    if sys.platform == "win32":
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
