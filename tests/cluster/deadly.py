"""Bands that kill the process which asks what they need, once or always."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nlsf.spectral import IndexBands


@dataclass(frozen=True)
class DeadlyBands(IndexBands):
    """Ends the first worker that solves with them; ``spared`` is the process that may.

    Args:
        marker: a file that exists from the one death on.
        spared: number of the process that is not killed.
    """

    marker: str = ""
    spared: int = 0

    def demand(self):
        if os.getpid() != self.spared:
            with suppress(FileExistsError):
                Path(self.marker).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return super().demand()
