"""What a person sees while one of several models trains: `model_display`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nlsf.train.run.display import Display, LiveDisplay, display_for


@dataclass
class Progress:
    """How far a comparison is.

    Attributes:
        total: models in all.
        number: the one that trains, counted from 1.
        name: of that one.
        began: when the comparison began, by `time.monotonic`.
    """

    total: int
    number: int = 0
    name: str = ""
    began: float = field(default_factory=time.monotonic)

    def next(self, name: str) -> None:
        """The next model begins."""
        self.number, self.name = self.number + 1, name

    @property
    def place(self) -> str:
        """``model 2 of 3: gcn``."""
        return f"model {self.number} of {self.total}: {self.name}"

    @property
    def elapsed(self) -> str:
        """``1:05 elapsed``, minutes and seconds."""
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        return f"{minutes}:{seconds:02d} elapsed"


def model_display(console: Console, progress: Progress, *, quiet: bool) -> Display:
    """The display of one model's training, below the place of the model among all.

    On a terminal that place is a bar, elsewhere a line.
    """
    display = display_for(console, quiet=quiet)
    if isinstance(display, LiveDisplay):
        return LiveModelDisplay(console, progress)
    display.message(f"{progress.place}, {progress.elapsed}")
    return display


class LiveModelDisplay(LiveDisplay):
    """The bar of the models above that of the epochs; only the latter stays when it stops.

    As a context manager it shows the first bar already while data and spectra are prepared.

    Args:
        console: a terminal.
        progress: which model it is.
    """

    def __init__(self, console: Console, progress: Progress) -> None:
        super().__init__(console)
        self._progress = progress

    def __enter__(self) -> Self:
        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._render,
                refresh_per_second=8,
                transient=True,
            )
            self._live.start(refresh=True)
        return self

    def _render(self) -> Group:
        epochs = super()._render()
        if self._state is not None and self._state.stopped:
            return epochs
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True)
        bar.add_row(
            Text(self._progress.place, style="bold"),
            ProgressBar(total=self._progress.total, completed=self._progress.number - 1),
            Text(self._progress.elapsed),
        )
        return Group(bar, epochs)
