"""What a person sees while a table is filled: `FillDisplay`, `ConsoleFillDisplay`."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape

from nlsf.data.metrics import higher_is_better
from nlsf.experiments.tune_display import TuneDisplay, tune_display_for
from nlsf.train.run.display import Display, SilentDisplay, display_for
from nlsf.train.run.train import RunResult


class FillDisplay:
    """Shows nothing; the base of one that does."""

    def begin(self, number: int, total: int, name: str) -> None:
        """A cell begins.

        Args:
            number: which, counted from 1.
            total: of how many.
            name: its method and data set.
        """

    def filled(self, name: str, result: RunResult) -> None:
        """A cell has its rows."""

    def failed(self, name: str, reason: str) -> None:
        """A cell cannot be run."""

    def training(self) -> Display:
        """What shows the training of a cell."""
        return SilentDisplay()

    def tuning(self) -> TuneDisplay:
        """What shows the tuning of a cell."""
        return TuneDisplay()


class ConsoleFillDisplay(FillDisplay):
    """A line a cell, with the displays of the tuner and of the trainer below it.

    Args:
        console: where to; on a terminal the line goes over its width.
        budget: seconds that may be used, to be shown beside those that were.
    """

    def __init__(self, console: Console, budget: float | None = None) -> None:
        self._console, self._budget = console, budget
        self._began = time.monotonic()

    def begin(self, number: int, total: int, name: str) -> None:
        """Prints which cell it is, and the time since the first began."""
        used = duration(time.monotonic() - self._began)
        of = "" if self._budget is None else f" of {duration(self._budget)}"
        text = f"cell {number} of {total}: {name}, {used}{of}"
        if self._console.is_terminal:
            self._console.rule(escape(text))
        else:
            self._print(text)

    def filled(self, name: str, result: RunResult) -> None:
        """Prints the mean on the test examples."""
        mean, half = result.summary()
        scale, unit = (100.0, " %") if higher_is_better(result.metric) else (1.0, "")
        spread = "" if half != half else f" +- {scale * half:.4g}"
        self._print(f"{name}: test {result.metric} {scale * mean:.4g}{spread}{unit}")

    def failed(self, name: str, reason: str) -> None:
        """Prints the reason."""
        self._print(f"{name}: {reason}")

    def training(self) -> Display:
        """A live display on a terminal, plain lines elsewhere."""
        return display_for(self._console)

    def tuning(self) -> TuneDisplay:
        """A live display on a terminal, plain lines elsewhere."""
        return tune_display_for(self._console)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: ``1:05:09``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
