"""What a person sees while models train: `Display`, `display_for`."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text


class Stopping(ABC):
    """Something that is shown; as a context manager it gives the terminal back in any case."""

    @abstractmethod
    def stop(self) -> None:
        """It is over; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Display(Stopping):
    """Shows a training."""

    @abstractmethod
    def start(self, total_epochs: int, models: int, title: str) -> None:
        """A training of this many models begins, for at most this many epochs."""

    @abstractmethod
    def epoch(self, epoch: int, summary: Mapping[str, float], best: Mapping[str, float]) -> None:
        """An epoch is over.

        Args:
            epoch: counted from 1; a training that continues begins with a later one.
            summary: losses and metrics by name, means over the models.
            best: the same of what was best until now; ``"running"``, if it is there, is the number
                of models that have not stopped.
        """

    @abstractmethod
    def message(self, text: str) -> None:
        """Something else that the person should read."""


def display_for(console: Console, *, quiet: bool = False) -> Display:
    """A live display on a terminal, plain lines elsewhere, nothing if asked to be quiet."""
    if quiet:
        return SilentDisplay()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console)
    return PlainDisplay(console)


class SilentDisplay(Display):
    """Shows nothing."""

    def start(self, total_epochs: int, models: int, title: str) -> None:
        """Shows nothing."""

    def epoch(self, epoch: int, summary: Mapping[str, float], best: Mapping[str, float]) -> None:
        """Shows nothing."""

    def message(self, text: str) -> None:
        """Shows nothing."""

    def stop(self) -> None:
        """Shows nothing."""


class PlainDisplay(Display):
    """One line for the first epoch, then one every few seconds, and one for the last epoch.

    Args:
        console: where to.
        seconds: between two lines.
    """

    def __init__(self, console: Console, seconds: float = 10.0) -> None:
        self._console, self._seconds = console, seconds
        self._state: _State | None = None
        self._printed, self._next = 0, -math.inf

    def start(self, total_epochs: int, models: int, title: str) -> None:
        """Prints the title."""
        self.stop()
        self._state = _State(total_epochs, models, title)
        self._printed, self._next = 0, -math.inf
        self.message(f"{title}: {self._state.counted_models}, at most {total_epochs} epochs")

    def epoch(self, epoch: int, summary: Mapping[str, float], best: Mapping[str, float]) -> None:
        """Prints a line if it is time for one."""
        if self._state is None:
            return
        self._state.update(epoch, summary, best)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._seconds
            self._line(self._state)

    def message(self, text: str) -> None:
        """Prints the text as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Prints the last epoch, if it was not printed yet."""
        state, self._state = self._state, None
        if state is not None and state.epoch != self._printed:
            state.stopped = True
            self._line(state)

    def _line(self, state: _State) -> None:
        self._printed = state.epoch
        self.message("  ".join([state.counted_epochs, *state.numbers, *state.pace]))


class LiveDisplay(Display):
    """A bar and the newest numbers, drawn over themselves a few times a second.

    An epoch only leaves its numbers here, and a thread draws them, so that epochs of a millisecond
    are not slowed down.

    Args:
        console: a terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._state: _State | None = None
        self._live: Live | None = None

    def start(self, total_epochs: int, models: int, title: str) -> None:
        """Draws an empty bar."""
        self.stop()
        self._state = _State(total_epochs, models, title)
        self._live = Live(console=self._console, get_renderable=self._render, refresh_per_second=8)
        self._live.start(refresh=True)

    def epoch(self, epoch: int, summary: Mapping[str, float], best: Mapping[str, float]) -> None:
        """Leaves the numbers for the next drawing."""
        if self._state is not None:
            self._state.update(epoch, summary, best)

    def message(self, text: str) -> None:
        """Prints the text above the bar."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Draws the last epoch, which stays, and gives the cursor back."""
        live, self._live = self._live, None
        if live is not None:
            if self._state is not None:
                self._state.stopped = True
            live.stop()

    def _render(self) -> Group:
        state = self._state
        if state is None:
            return Group()
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True)
        bar.add_row(
            Text(state.title, style="bold"),
            ProgressBar(total=max(state.total, 1), completed=state.epoch),
            Text("  ".join([state.counted_epochs, *state.pace])),
        )
        # Columns, because a narrow terminal must not part a name from its number.
        return Group(bar, Columns([Text(words) for words in state.numbers], padding=(0, 2)))


class _State:
    """The newest numbers of a training, and their words."""

    def __init__(self, total: int, models: int, title: str) -> None:
        self.total, self.models, self.title = total, models, title
        self.epoch, self.stopped = 0, False
        self.summary: Mapping[str, float] = {}
        self.best: Mapping[str, float] = {}
        self._start = time.monotonic()
        self._times: deque[tuple[int, float]] = deque(maxlen=100)
        self._seconds: float | None = None

    def update(self, epoch: int, summary: Mapping[str, float], best: Mapping[str, float]) -> None:
        self.epoch, self.summary, self.best = epoch, dict(summary), dict(best)
        self._times.append((epoch, time.monotonic()))
        (first, start), (last, end) = self._times[0], self._times[-1]
        # Here and not where it is shown: the drawing thread must not read what changes meanwhile.
        self._seconds = (end - start) / (last - first) if last > first else None

    @property
    def counted_models(self) -> str:
        return f"{self.models} model{'' if self.models == 1 else 's'}"

    @property
    def counted_epochs(self) -> str:
        return f"epoch {self.epoch}/{self.total}"

    @property
    def numbers(self) -> list[str]:
        """``train loss 0.1234``, ..., ``best val accuracy 0.8100``, ``7 of 10 models training``."""
        words = [f"{name.replace('_', ' ')} {value:.4f}" for name, value in self.summary.items()]
        best = dict(self.best)
        running = best.pop("running", None)
        words += [f"best {name.replace('_', ' ')} {value:.4f}" for name, value in best.items()]
        if running is not None and self.models > 1 and not self.stopped:
            words.append(f"{running:g} of {self.models} models training")
        return words

    @property
    def pace(self) -> list[str]:
        """The time an epoch, over the last hundred, and how long the rest can take."""
        words = []
        seconds = self._seconds
        if seconds is not None:
            words.append(f"{seconds * 1e3:.3g} ms/epoch")
        if self.stopped:
            words.append(f"{_duration(time.monotonic() - self._start)} in all")
        elif seconds is not None:
            # Early stopping mostly ends a training before this.
            words.append(f"at most {_duration(seconds * (self.total - self.epoch))} left")
        return words


def _duration(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
