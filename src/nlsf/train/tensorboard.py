"""Scalars for TensorBoard: `TensorBoardWriter`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from nlsf.errors import ConfigError


class TensorBoardWriter:
    """Writes event files that ``tensorboard --logdir`` shows.

    Args:
        folder: where the event files go; it is made.
        done: epochs that are done already. Later ones, which a run wrote before it was killed, are
            hidden: all of them, where it left no checkpoint.
    """

    def __init__(self, folder: Path, *, done: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                "TensorBoard is not installed: pip install 'nlsf[tensorboard]', or leave its "
                "option out."
            ) from error
        self._writer: Any = SummaryWriter(str(folder), purge_step=done + 1)

    def write(self, epoch: int, values: Mapping[str, float]) -> None:
        """Adds one point to the curve of each name; what is not finite is left out."""
        for name, value in values.items():
            if math.isfinite(value):
                self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Writes what is left."""
        self._writer.close()

    def __enter__(self) -> TensorBoardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
