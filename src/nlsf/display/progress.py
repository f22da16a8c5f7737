"""How far work is: `Progress` is told, and its subclasses in `nlsf.display.sinks` draw it.

Code that works opens a `Phase`, advances it, and says lines of text. It does not know who looks.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass(eq=False)
class Phase:
    """A piece of work that is going on; `Progress.phase` makes it.

    Attributes:
        progress: is told of every change.
        title: what is done; empty where `next` names one thing after another.
        total: how many units there are; ``None`` where nobody knows.
        unit: what is counted, as ``"epoch"``; ``"byte"`` is shown in megabytes.
        done: how many units are over, those from before the phase began among them.
        at_most: whether the phase may end before its last unit.
        detail: what the first line says beside the title.
        every: seconds between two lines, where lines are printed.
        limit: seconds that all of it may take; ``None`` for as long as it needs.
        numbers: the newest numbers by name; underscores are shown as spaces.
        note: what happens at this moment; forgotten at the end.
        item: what is being worked on, where one thing comes after another.
        over: whether the phase has ended.
    """

    progress: Progress
    title: str
    total: int | None = None
    unit: str = ""
    done: int = 0
    at_most: bool = False
    detail: str = ""
    every: float = 10.0
    limit: float | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    item: str = ""
    over: bool = False

    def __post_init__(self) -> None:
        self.first, self._began = self.done, time.monotonic()
        self._times = deque([(self.done, self._began)], maxlen=100)
        self._seconds: float | None = None

    def advance(
        self, done: int, numbers: Mapping[str, float] | None = None, note: str = ""
    ) -> None:
        """So many units are over, and this is what is known now."""
        self.done, self.note = done, note
        if numbers is not None:
            self.numbers = numbers
        self._times.append((done, time.monotonic()))
        (first, start), (last, end) = self._times[0], self._times[-1]
        # Here and not where it is shown: the drawing thread must not read what changes meanwhile.
        self._seconds = (end - start) / (last - first) if last > first else None
        self.progress.advanced(self)

    def next(self, item: str, number: int | None = None) -> None:
        """The next thing begins; its number is counted from 1."""
        self.done = (self.done + bool(self.item)) if number is None else number - 1
        self.item, self.note = item, ""
        self.progress.advanced(self)

    def tell(self, note: str) -> None:
        """This happens now; nothing is counted."""
        self.note = note
        self.progress.noted(self)

    @property
    def label(self) -> str:
        """The title, or ``model 2 of 3: gcn``."""
        if not self.item:
            return self.title
        return f"{self.unit} {self.done + 1} of {self.total}: {self.item}"

    @property
    def opening(self) -> str:
        """``cora, gcn: 3 models, at most 500 epochs``."""
        words = [self.detail] if self.detail else []
        if self.total is not None:
            count = _size(self.total) if self.unit == "byte" else _plural(self.total, self.unit)
            words.append(f"at most {count}" if self.at_most else count)
        if self.first:
            words.append(f"{self.first} of them done")
        return f"{self.title}: {', '.join(words)}" if words else self.title

    @property
    def count(self) -> str:
        """``epoch 3/500``, or ``1.5 of 3.0 MB``."""
        if self.unit == "byte":
            return _size(self.done) + ("" if self.total is None else f" of {_size(self.total)}")
        return f"{self.unit} {self.done}/{self.total}"

    @property
    def figures(self) -> list[str]:
        """``train loss 0.1234``, and so on."""
        return [f"{name.replace('_', ' ')} {value:.4f}" for name, value in self.numbers.items()]

    @property
    def pace(self) -> list[str]:
        """The time of a unit, over the last hundred, and how long the rest can take."""
        gone = _clock(math.floor(time.monotonic() - self._began))
        if self.item:
            return [f"{gone} elapsed" + ("" if self.limit is None else f" of {_clock(self.limit)}")]
        seconds, words = self._seconds, []
        if seconds and self.unit == "byte":
            words.append(f"{_size(round(1 / seconds))}/s")
        elif seconds is not None:
            # From 999.5 on three digits of milliseconds would be written as 1e+03.
            long = seconds >= 0.9995
            time_of_one = f"{seconds:.3g} s" if long else f"{1e3 * seconds:.3g} ms"
            words.append(f"{time_of_one}/{self.unit}")
        if self.over:
            words.append(f"{gone} in all")
        elif seconds is not None and (left := (self.total or 0) - self.done) > 0:
            # Early stopping mostly ends a training before this.
            words.append(f"{'at most ' if self.at_most else ''}{_clock(seconds * left)} left")
        return words


ACTIVE: ContextVar[Progress | None] = ContextVar("progress", default=None)
"""Who draws at the moment; `nlsf.display.sinks.active` reads it."""


class Progress:
    """Is told how far work is. This one shows nothing; others draw what the events say.

    As a context manager it is the one that `nlsf.display.sinks.active` finds.
    """

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self._tokens: list[Token[Progress | None]] = []

    @contextmanager
    def phase(self, title: str = "", total: int | None = None, **known: Any) -> Iterator[Phase]:
        """A phase, inside of the one that is going on; it ends with the block.

        Args:
            title: what is done.
            total: how many units there are; without, a terminal shows that something happens, and
                other places show nothing.
            **known: further attributes of the `Phase`.
        """
        phase = Phase(self, title, total, **known)
        self.phases.append(phase)
        self.started(phase)
        try:
            yield phase
        finally:
            phase.over, phase.note = True, ""
            self.phases.remove(phase)
            self.ended(phase)

    def say(self, text: str) -> None:
        """Something that the person should read."""

    def started(self, phase: Phase) -> None:
        """Event: a phase begins."""

    def advanced(self, phase: Phase) -> None:
        """Event: units are done, or the next thing begins."""

    def noted(self, phase: Phase) -> None:
        """Event: a phase has another note."""

    def ended(self, phase: Phase) -> None:
        """Event: a phase is over; it is not among the `phases` any more."""

    def __enter__(self) -> Self:
        self._tokens.append(ACTIVE.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ACTIVE.reset(self._tokens.pop())


def _plural(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _clock(seconds: float) -> str:
    """``1:05`` or ``1:01:38``."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
