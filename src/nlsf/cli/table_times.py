"""The part of ``nlsf table --run`` that measures times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

if TYPE_CHECKING:
    from rich.console import Console

    from nlsf.tables.fill.timing import Timings
    from nlsf.tables.spec.experiment import Experiment


def run_times(
    console: Console,
    experiment: Experiment,
    timings: Timings,
    work: Path,
    budget: float | None,
    quiet: bool,
) -> bool:
    """Measures what is missing, and says what is not measured.

    Args:
        console: where to.
        experiment: the table, with all of its methods.
        timings: has the rows, and gets them.
        work: the folder of locks.
        budget: seconds after which no data set is begun.
        quiet: whether to say nothing on the way.

    Returns:
        Whether every method could be measured.
    """
    from nlsf.display.sinks import progress_for
    from nlsf.tables.fill.timing import time_all

    try:
        with progress_for(console, quiet=quiet) as display:
            timed = time_all(experiment, timings, work, budget=budget, display=display)
    except KeyboardInterrupt as stopped:
        console.print(
            f"\nStopped: what is measured is kept in {escape(str(timings.path))}. Go on "
            "with the same command.",
            soft_wrap=True,
            highlight=False,
        )
        raise typer.Exit(1) from stopped
    for labels, why in (
        (timed.held, "Another process is at"),
        (timed.left, "No time was left for"),
    ):
        if labels:
            console.print(f"{why} {', '.join(labels)}.", markup=False, soft_wrap=True)
    return not timed.failed
