"""Tables in any form: `written` gives one, `update` writes those inside a document anew.

A document marks the place of a table by a line ``<!-- table NAME -->``, and its end by a line
``<!-- end -->``. What stands between belongs to `update`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nlsf.display.text_table import Form, Sheet
from nlsf.errors import FormatError
from nlsf.tables.fill.results import Published, Store
from nlsf.tables.fill.timing import Timings
from nlsf.tables.render import result_text, time_table
from nlsf.tables.render.result_table import ResultTable
from nlsf.tables.render.time_table import TimeTable
from nlsf.tables.spec.experiment import Experiment
from nlsf.tables.spec.spec_file import find_experiment

_START = re.compile(r"<!-- table (\S+) -->")
_END = "<!-- end -->"


@dataclass(frozen=True)
class Written:
    """A table of results or of times.

    Attributes:
        sheet: gives it for people, in a form.
        to_csv: gives it for programs.
        is_empty: whether nothing was run.
    """

    sheet: Callable[[Form], Sheet]
    to_csv: Callable[[], str]
    is_empty: bool


def written(
    whole: Experiment,
    rows: Path,
    published: Published,
    shown: Experiment | None = None,
    against: str | None = None,
) -> Written:
    """The table of an experiment, as its rows make it now.

    Args:
        whole: the experiment, with all methods that were measured together.
        rows: the folder of all rows.
        published: the paper's numbers.
        shown: the part that is shown; all by default.
        against: the label or model that the other methods are compared with.
    """
    if whole.measure == "time":
        times = TimeTable.of(whole, Timings(rows), published, shown)
        sheet, to_csv = partial(time_table.sheet, times), partial(time_table.to_csv, times)
        return Written(sheet, to_csv, not times.entries)
    table = ResultTable.of(shown or whole, Store(rows), published, against)
    sheet, to_csv = partial(result_text.sheet, table), partial(result_text.to_csv, table)
    return Written(sheet, to_csv, not any(table.entries.values()))


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
    table = written(experiment, store.path, Published.beside(experiments, experiment))
    if table.is_empty:
        return "Not run yet."
    return table.sheet(Form.markdown).markdown().rstrip("\n")
