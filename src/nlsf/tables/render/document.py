"""Tables in any form: `written` gives one, `update` writes those inside a document anew.

A document marks the place of a table by a line ``<!-- table NAME -->``, and its end by a line
``<!-- end -->``. What stands between belongs to `update`.

A table of results shows our mean +- spread with the paper's value beside it. The best of our means
in a column is highlighted. A second table has the differences of every method to the first one of
ours on the same splits. A place without a number of ours was not run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nlsf.data.metrics import higher_is_better
from nlsf.display.text_table import Cell, Form, Head, Piece, Sheet, TextTable, csv_text
from nlsf.errors import FormatError
from nlsf.tables.fill.results import Published, Store
from nlsf.tables.fill.timing import Timings
from nlsf.tables.render import time_table
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
    sheet, to_csv = partial(result_sheet, table), partial(result_csv, table)
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


_CSV = (
    "method",
    "model",
    "data",
    "protocol",
    "n",
    "mean",
    "spread_kind",
    "spread",
    "floor",
    "paper",
    "paper_spread",
    "difference",
    "paired_to",
    "paired_n",
    "paired_mean",
    "paired_half",
    "trials",
    "cell",
)

_PAPER = {
    Form.terminal: "Below ours: the paper's value, and ours minus it.",
    Form.markdown: "In parentheses: the paper's value.",
    Form.latex: "In parentheses: the paper's value.",
}
_LABEL = 24
"""The width down to which the names of methods may be broken into lines."""


def result_sheet(table: ResultTable, form: Form) -> Sheet:
    """The results, and below them the differences where two methods share a split.

    A terminal shows one decimal, and the difference to the paper in colour; other forms show two.
    """
    writing = _Writing(table, form)
    tables = [writing.table("Method", writing.result, [*writing.floors()], _legend(table, form))]
    differences = writing.table(f"Minus {table.reference}", writing.difference, [], _behind(table))
    # Only methods that share a split with the reference.
    rows = [row for row in differences.rows if row and any(row[1:])]
    if rows:
        notes = differences.notes
        tables.append(TextTable(differences.columns, rows, notes=notes))
    return Sheet(table.experiment.title, tables)


class _Writing:
    """The cells of a table in a form."""

    def __init__(self, results: ResultTable, form: Form) -> None:
        self.results, self.form = results, form
        self.columns = [column.label for column in results.experiment.columns]

    def table(
        self, corner: str, cell: Callable[[str, str], Cell], more: list[list[Cell]], note: str
    ) -> TextTable:
        """A row a method, and some more."""
        columns = [Head(corner, least=_LABEL), *(Head(c, number=True) for c in self.columns)]
        rows = [
            [
                [[(method.label, "bold" if method.ours else "")]],
                *(cell(method.label, column) for column in self.columns),
            ]
            for method in self.results.experiment.methods
        ]
        return TextTable(columns, [*rows, *more], notes=[note])

    def number(self, value: float | None) -> str:
        return _number(self.results, value, 1 if self.form is Form.terminal else 2)

    def spread(self, mean: str, half: float) -> str:
        """``81.50 +- 1.24``, or the mean alone where it has no spread."""
        shown = self.number(half)
        return f"{mean} +- {shown}" if shown else mean

    def splits(self, n: int) -> list[list[Piece]]:
        """How many splits, where they are not as many as the experiment asks for."""
        return [] if n == self.results.experiment.seeds else [[(f"n = {n}", "")]]

    def result(self, method: str, column: str) -> Cell:
        """Ours, and the paper's."""
        entry = self.results.entries[method, column]
        paper = self.results.published.get((method, column))
        lines: list[list[Piece]] = [[]]
        if entry is not None:
            best = "best" if entry.mean == self.results.best(column) else ""
            text = self.spread(self.number(entry.mean), entry.spread)
            lines = [[(text, best)], *self.splits(entry.n)]
        if paper is None:
            return lines if entry is not None else ""
        value = self.number(paper.value)
        if self.form is not Form.terminal:
            word = "paper " if self.form is Form.markdown else ""
            return [*lines, [(f"({word}{value})", "")]]
        beside: list[Piece] = [(value, "dim")]
        if entry is not None and entry.difference is not None:
            better = (entry.difference > 0) == higher_is_better(self.results.experiment.metric)
            beside.append((_signed(self.number(entry.difference)), "green" if better else "red"))
        return [*lines, beside]

    def difference(self, method: str, column: str) -> Cell:
        """The method minus the reference."""
        pair = self.results.behind(method, column)
        if pair is None:
            return ""
        text = self.spread(_signed(self.number(pair.mean)), pair.half)
        return [[(text, "best" if pair.is_clear else "")], *self.splits(pair.n)]

    def floors(self) -> list[list[Cell]]:
        """What the size of the test sets alone adds, if that is known of any column."""
        floors = [self.results.floor(column) for column in self.columns]
        if all(floor is None for floor in floors):
            return []
        return [[[[(text, "dim")]] for text in ("Floor", *map(self.number, floors))]]


def result_csv(table: ResultTable) -> str:
    """One line a cell, also where nothing was run (n = 0); what is unknown is empty."""
    return csv_text(_CSV, [_csv_row(table, method, column) for method, column in table.cells])


def _csv_row(table: ResultTable, method: str, column: str) -> dict[str, str | int]:
    cell, entry = table.cells[method, column], table.entries[method, column]
    paper, pair = table.published.get((method, column)), table.behind(method, column)
    row: dict[str, str | int] = {
        "method": method,
        "model": cell.model,
        "data": column,
        "protocol": cell.protocol,
        "n": 0,
        "cell": cell.id,
    }
    if paper is not None:
        row |= {"paper": _number(table, paper.value), "paper_spread": _number(table, paper.spread)}
    if entry is not None:
        row |= {
            "n": entry.n,
            "mean": _number(table, entry.mean),
            "spread_kind": table.experiment.spread,
            "spread": _number(table, entry.spread),
            "floor": _number(table, entry.floor),
            "difference": _signed(_number(table, entry.difference)),
            "trials": entry.trials,
        }
    if pair is not None:
        row |= {
            "paired_to": str(table.reference),
            "paired_n": pair.n,
            "paired_mean": _signed(_number(table, pair.mean)),
            "paired_half": _number(table, pair.half),
        }
    return row


def _number(table: ResultTable, value: float | None, decimals: int = 2) -> str:
    """Decimals of a percentage, or four digits of an error; empty where there is no number."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.{decimals}f}" if table.is_share else f"{value:.4g}"


def _signed(text: str) -> str:
    """The number with its sign; one that is shown as zero has none."""
    if not text or float(text) == 0:
        return text.lstrip("-")
    return text if text[0] == "-" else f"+{text}"


def _legend(table: ResultTable, form: Form) -> str:
    """What the numbers of the table are."""
    experiment = table.experiment
    spread = {
        "interval": "half the width of the 95 % interval of the mean",
        "deviation": "the standard deviation over splits",
    }[experiment.spread]
    unit = " in percent" if table.is_share else ""
    splits = "1 split" if experiment.seeds == 1 else f"{experiment.seeds} splits"
    floors = any(table.floor(column.label) is not None for column in experiment.columns)
    sentences = [
        f"Test {experiment.metric.replace('_', ' ')}{unit}: mean over {splits} (or n, where it is "
        f"given) +- {spread}.",
        _trials(table),
        _PAPER[form] if table.published else "",
        "Bold: the best of our means in a column.",
        "Floor: what the size of the test sets alone adds to the spread of the best method."
        if floors
        else "",
        "Empty: not run.",
        experiment.note.strip(),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _behind(table: ResultTable) -> str:
    """What the numbers of the second table are."""
    unit = " in points" if table.is_share else ""
    return (
        f"Every method minus {table.reference} on the same splits{unit}: mean +- half the width of "
        f"its 95 % interval, n = {table.experiment.seeds} where no other n is given. Bold: the "
        "interval leaves out 0."
    )


def _trials(table: ResultTable) -> str:
    counts = {entry.trials for entry in table.entries.values() if entry is not None}
    if not counts:
        return ""
    if counts == {0}:
        return "Nothing was tuned."
    low, high = min(counts), max(counts)
    count = f"{high}" if low == high else f"{low} to {high}"
    trials = f"{count} {'trial' if high == 1 else 'trials'} a cell"
    return (
        f"Tuned with {trials}, on validation data of tuning splits: other splits of the same "
        "examples, or the given ones where there are no others."
    )
