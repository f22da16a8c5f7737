"""What a person sees while a model is tuned: `TuneDisplay`, `tune_display_for`."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nlsf.tables.tune.trials import Trial
from nlsf.train.run.display import Stopping


class TuneDisplay(Stopping):
    """Shows nothing; the base of those that do."""

    def start(self, title: str, total: int, metric: str, done: int) -> None:
        """Tuning begins, or goes on.

        Args:
            title: what is tuned.
            total: trials.
            metric: of the validation examples.
            done: trials that are over.
        """

    def epoch(self, number: int, epoch: int, value: float) -> None:
        """A trial has trained an epoch; the value that it has reached."""

    def trial(self, trial: Trial, done: int, best: Trial | None) -> None:
        """A trial is over: how many are, and which was best."""

    def preparing(self, text: str) -> None:
        """A trial computes this before it trains."""

    def message(self, text: str) -> None:
        """Something else that the person should read."""

    def stop(self) -> None:
        """Tuning is over; a second call does nothing."""


def tune_display_for(console: Console, *, quiet: bool = False) -> TuneDisplay:
    """A live display on a terminal, plain lines elsewhere, nothing if asked to be quiet."""
    if quiet:
        return TuneDisplay()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveTuneDisplay(console)
    return PlainTuneDisplay(console)


class PlainTuneDisplay(TuneDisplay):
    """One line a trial.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._total, self._metric = 0, ""

    def start(self, title: str, total: int, metric: str, done: int) -> None:
        """Prints the title."""
        self._total, self._metric = total, metric
        after = f", {done} of them done" if done else ""
        self.message(f"{title}: {total} trial{'' if total == 1 else 's'}{after}")

    def trial(self, trial: Trial, done: int, best: Trial | None) -> None:
        """Prints how it ended, and the best so far."""
        self.message(
            "  ".join([f"{done}/{self._total}", *_ended(trial), *_best(best, self._metric)])
        )

    def message(self, text: str) -> None:
        """Prints the text as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveTuneDisplay(TuneDisplay):
    """A bar, the best trial and the one that runs, drawn over themselves by a thread.

    Args:
        console: a terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._title, self._metric, self._total, self._done = "", "", 0, 0
        self._began, self._first = 0.0, 0
        self._best: Trial | None = None
        self._last: Trial | None = None
        self._running = ""

    def start(self, title: str, total: int, metric: str, done: int) -> None:
        """Draws the bar."""
        self.stop()
        self._title, self._metric, self._total = title, metric, total
        self._done = self._first = done
        self._began = time.monotonic()
        self._live = Live(console=self._console, get_renderable=self._render, refresh_per_second=4)
        self._live.start(refresh=True)

    def epoch(self, number: int, epoch: int, value: float) -> None:
        """Leaves the numbers for the next drawing."""
        self._running = f"trial {number}: epoch {epoch}, {value:.4f}"

    def preparing(self, text: str) -> None:
        """Leaves the text for the next drawing."""
        self._running = text

    def trial(self, trial: Trial, done: int, best: Trial | None) -> None:
        """Leaves the numbers for the next drawing; a reason for a failure stays above."""
        self._done, self._best, self._last, self._running = done, best, trial, ""
        if trial.error:
            self.message("  ".join(_ended(trial)))

    def message(self, text: str) -> None:
        """Prints the text above the bar."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Draws a last time, and gives the cursor back."""
        live, self._live = self._live, None
        if live is not None:
            self._running = ""
            live.stop()

    def _render(self) -> Group:
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True)
        bar.add_row(
            Text(self._title, style="bold"),
            ProgressBar(total=max(self._total, 1), completed=self._done),
            Text("  ".join([f"trial {self._done}/{self._total}", *self._pace()])),
        )
        last = _ended(self._last) if self._last is not None else []
        words = [*_best(self._best, self._metric), self._running or "  ".join(last)]
        return Group(bar, *(Text(line) for line in words if line))

    def _pace(self) -> list[str]:
        ended = self._done - self._first
        if ended < 1:
            return []
        seconds = (time.monotonic() - self._began) / ended
        left = int(seconds * (self._total - self._done))
        return [
            f"{seconds:.3g} s/trial",
            f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left",
        ]


def _ended(trial: Trial) -> list[str]:
    words = [f"trial {trial.number} {trial.state}"]
    if trial.value is not None and trial.state != "failed":
        words.append(f"{trial.value:.4f}")
    if trial.epochs:
        words.append(f"{trial.epochs} epochs")
    if trial.seconds is not None:
        words.append(f"{trial.seconds:.1f} s")
    return [*words, trial.error] if trial.error else words


def _best(best: Trial | None, metric: str) -> list[str]:
    if best is None or best.value is None:
        return []
    return [f"best val {metric} {best.value:.4f} (trial {best.number})"]
