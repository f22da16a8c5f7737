"""Who draws progress: `progress_for` chooses bars for a terminal, lines for a pipe or a log.

A notebook gets one output that is written anew. `active` finds who draws at the moment.
"""

from __future__ import annotations

import math
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nlsf.display.progress import ACTIVE, Phase, Progress

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.spinner import Spinner


def progress_for(console: Console | None = None, *, quiet: bool = False) -> Progress:
    """Whoever draws progress on a console.

    Args:
        console: where to; by default the standard output.
        quiet: show nothing.
    """
    if quiet:
        return Progress()
    from rich.console import Console

    console = console or Console()
    if console.is_jupyter:
        return Notebook()
    if console.is_terminal and not console.is_dumb_terminal:
        return Bars(console)
    return Lines(console)


def active() -> Progress:
    """Who draws at the moment, for work that is too deep to be told; else one on standard error."""
    found = ACTIVE.get()
    if found is None or type(found) is Progress:  # a download is not hidden from anybody
        from rich.console import Console

        found = progress_for(Console(stderr=True))
    return found


class Lines(Progress):
    """Plain lines: when a phase begins, when it ends, and every few seconds between.

    Args:
        console: where to.
        every: seconds between two lines; by default as the phase says.
    """

    def __init__(self, console: Console, every: float | None = None) -> None:
        super().__init__()
        self._console, self._every = console, every
        self._printed: dict[Phase, tuple[int, float]] = {}

    def say(self, text: str) -> None:
        """Prints the text as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def started(self, phase: Phase) -> None:
        """Prints the title and what is to do."""
        if phase.title and (phase.total is not None or phase.detail):
            self.say(phase.opening)
        self._printed[phase] = phase.first, -math.inf

    def advanced(self, phase: Phase) -> None:
        """Prints a line if it is time for one."""
        now = time.monotonic()
        if phase.item:
            self.say(", ".join([phase.label, *phase.pace]))
        elif now >= self._printed[phase][1]:
            every = phase.every if self._every is None else self._every
            self._printed[phase] = phase.done, now + every
            self._line(phase)

    def ended(self, phase: Phase) -> None:
        """Prints where it ended, if that was not printed yet."""
        printed, _ = self._printed.pop(phase)
        if not phase.item and phase.total is not None and phase.done != printed:
            self._line(phase)

    def _line(self, phase: Phase) -> None:
        note = [phase.note] if phase.note else []
        self.say("  ".join([phase.count, *phase.figures, *note, *phase.pace]))


class Bars(Progress):
    """A bar a phase, with the newest numbers below, drawn over themselves a few times a second.

    Events only leave their numbers, and a thread draws them, so that epochs of a millisecond are
    not slowed down. The last drawing of a phase stays, if it has a total and a title. While a phase
    goes on, print through `say`: two threads that print at once leave torn drawings behind.

    Args:
        console: a terminal.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._lock, self._over = threading.RLock(), threading.Event()
        self._live: Live | None = None
        self._thread: threading.Thread | None = None
        self._spinners: dict[Phase, Spinner] = {}

    def say(self, text: str) -> None:
        """Prints the text above the bars."""
        with self._lock:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def started(self, phase: Phase) -> None:
        """Draws the bar."""
        from rich.live import Live

        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._render,
                auto_refresh=False,
                transient=True,
            )
            self._live.start(refresh=True)
            self._over.clear()
            self._thread = threading.Thread(target=self._redraw, args=[self._live], daemon=True)
            self._thread.start()

    def ended(self, phase: Phase) -> None:
        """Draws a last time; with the last phase the cursor is given back."""
        self._spinners.pop(phase, None)
        if not self.phases and self._live is not None and self._thread is not None:
            live, self._live = self._live, None
            self._over.set()
            self._thread.join()
            live.stop()
        if phase.title and phase.total is not None and phase.done > phase.first:
            with self._lock:
                self._console.print(self._drawn(phase))

    def _redraw(self, live: Live) -> None:
        while not self._over.wait(1 / 8):
            with self._lock:
                live.refresh()

    def _render(self) -> Group:
        from rich.console import Group

        return Group(*(self._drawn(phase) for phase in tuple(self.phases)))

    def _drawn(self, phase: Phase) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        if phase.total is None:
            return self._spinners.setdefault(phase, Spinner("dots", Text(f"{phase.title} ...")))
        label = Text(phase.label, style="bold")
        right = Text("  ".join([*([] if phase.item else [phase.count]), *phase.pace]))
        bar = ProgressBar(total=max(phase.total, 1), completed=phase.done)
        row, above = Table.grid(padding=(0, 1), expand=True), []
        # A name is never cut: where there is no room beside the bar, it stands above.
        if label.cell_len + right.cell_len + 8 > self._console.width:
            above = [label]
        else:
            row.add_column(no_wrap=True)
        row.add_column(ratio=1)
        row.add_column(no_wrap=True)
        row.add_row(*([] if above else [label]), bar, right)
        # Columns, because a narrow terminal must not part a name from its number.
        words = [Text(word) for word in (*phase.figures, phase.note) if word]
        return Group(*above, row, *([Columns(words, padding=(0, 2))] if words else []))


class Notebook(Progress):
    """One output of a notebook's cell that is written anew, at most four times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._output: Any = None
        self._next = -math.inf

    def say(self, text: str) -> None:
        """Prints the text."""
        print(text)

    def started(self, phase: Phase) -> None:
        """Shows all that goes on."""
        self._draw(self.phases)

    def advanced(self, phase: Phase) -> None:
        """Shows the newest numbers, if it is time."""
        if time.monotonic() >= self._next:
            self._draw(self.phases)

    def noted(self, phase: Phase) -> None:
        """Shows the note, if it is time."""
        self.advanced(phase)

    def ended(self, phase: Phase) -> None:
        """The last state of the outermost phase stays."""
        self._draw(self.phases or [phase])
        if not self.phases:
            self._output = None

    def _draw(self, phases: list[Phase]) -> None:
        self._next = time.monotonic() + 0.25
        lines = []
        for phase in phases:
            count = [] if phase.item or phase.total is None else [phase.count]
            note = [phase.note] if phase.note else []
            lines.append("  ".join([phase.label, *count, *phase.figures, *note, *phase.pace]))
        shown = {"text/plain": "\n".join(lines)}
        if self._output is None:
            display = import_module("IPython.display").display  # a notebook has it
            self._output = display(shown, raw=True, display_id=True)
        else:
            self._output.update(shown, raw=True)
