"""Further processes of ``nlsf tune`` on one machine: `Workers`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from typing import IO

from nlsf.errors import ConfigError

_PATIENCE = 30.0
"""Seconds that a process has to put its trial back."""


class Workers:
    """Processes that run the same command, as helpers, on the same storage.

    The cores are divided among them and this process.

    Args:
        count: how many processes there will be, this one included.
        storage: of the trials; it is handed over in the environment, where no other user sees it.
    """

    def __init__(self, count: int, storage: str) -> None:
        self._count, self._storage = count, storage
        self._running: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []

    def start(self, arguments: list[str]) -> None:
        """Starts them with the arguments of ``nlsf tune``."""
        if self._count == 1:
            return
        import torch

        threads = max(1, torch.get_num_threads() // self._count)
        torch.set_num_threads(threads)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "NLSF_STORAGE": self._storage,
        }
        for _ in range(self._count - 1):
            said = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe, which blocks when it is full
            process = subprocess.Popen(
                [sys.executable, "-m", "nlsf.cli", "tune", *arguments, "--helper"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            self._running.append((process, said))

    def wait(self) -> None:
        """Until all have ended.

        Raises:
            ConfigError: one failed, with what it said.
        """
        for process, said in self._running:
            if process.wait():
                said.seek(0)
                lines = said.read().decode(errors="replace").strip().splitlines()
                reason = lines[-1] if lines else f"it ended with {process.returncode}."
                raise ConfigError(f"A worker failed: {reason.removeprefix('nlsf: ')}")

    def stop(self) -> None:
        """Interrupts those that run, as Ctrl-C does, and waits for them."""
        for process, _ in self._running:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process, _ in self._running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
