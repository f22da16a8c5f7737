"""Tables inside documents: `update` writes them anew.

A document marks the place of a table by a line ``<!-- table NAME -->``, and its end by a line
``<!-- end -->``. What stands between belongs to `update`.
"""

from __future__ import annotations

import re
from pathlib import Path

from nlsf.display.text_table import Form
from nlsf.errors import FormatError
from nlsf.tables.fill.results import Published, Store
from nlsf.tables.fill.timing import Timings
from nlsf.tables.render import result_text, time_table
from nlsf.tables.render.result_table import ResultTable
from nlsf.tables.render.time_table import TimeTable
from nlsf.tables.spec.spec_file import find_experiment

_START = re.compile(r"<!-- table (\S+) -->")
_END = "<!-- end -->"
_NOT_RUN = "Not run yet."


def update(text: str, experiments: Path, store: Store) -> str:
    """A document with all of its tables as the rows make them now.

    Args:
        text: Markdown with any number of marked tables.
        experiments: the folder of the experiments and of ``published.csv``.
        store: has the rows.

    Raises:
        FormatError: a table has no end, or an end no table; names the line.
        ConfigError: there is no such experiment.
    """
    lines: list[str] = []
    opened = 0
    for number, line in enumerate(text.split("\n"), start=1):
        start, is_end = _START.fullmatch(line), line == _END
        if start and opened:
            raise FormatError(f"Line {number} begins a table, but that of line {opened} is open.")
        if is_end and not opened:
            raise FormatError(f"Line {number} is {_END!r}, but no table is open.")
        if opened and not is_end:
            continue
        lines.append(line)
        opened = number if start else 0
        if start:
            lines += ["", _markdown(start[1], experiments, store), ""]
    if opened:
        raise FormatError(f"The table of line {opened} has no end: write {_END!r} below it.")
    return "\n".join(lines)


def _markdown(name: str, experiments: Path, store: Store) -> str:
    experiment = find_experiment(name, experiments)
    published = Published.beside(experiments, experiment)
    if experiment.measure == "time":
        times = TimeTable.of(experiment, Timings(store.path), published)
        text = time_table.sheet(times, Form.markdown).markdown() if times.entries else _NOT_RUN
    else:
        table = ResultTable.of(experiment, store, published)
        text = _NOT_RUN
        if any(table.entries.values()):
            text = result_text.sheet(table, Form.markdown).markdown()
    return text.rstrip("\n")
