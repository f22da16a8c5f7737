"""A table of times as ratios to GCN, ours beside the paper's: `TimeTable`, `sheet`, `to_csv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nlsf.display.text_table import Cell, Form, Head, Sheet, TextTable, csv_text
from nlsf.tables.fill.results import Published
from nlsf.tables.fill.timing import Timings
from nlsf.tables.spec.experiment import Column, Experiment, Method

_KINDS = {
    "epoch": "One epoch: training step and validation",
    "total": "Total: preparation with the spectrum, and all epochs until early stopping",
}
"""What is shown."""

_UNITS = {"epoch": "epoch_ms", "total": "total_s"}
"""The units of the paper's numbers."""

_CSV = (
    "method",
    "model",
    "data",
    "protocol",
    "epoch_ratio",
    "paper_epoch_ratio",
    "total_ratio",
    "paper_total_ratio",
    "epoch_cpu_seconds",
    "epoch_seconds",
    "epochs",
    "prepare_cpu_seconds",
    "prepare_seconds",
    "total_cpu_seconds",
    "total_seconds",
    "parameters",
    "threads",
    "rounds",
    "error",
)


@dataclass(frozen=True)
class TimeEntry:
    """What was measured of one method on one data set.

    Attributes:
        row: the row of `Timings`.
        epoch: the time of an epoch over that of GCN, in seconds of the processor; ``None`` where
            GCN could not be measured.
        total: the same of the whole training with its preparation.
    """

    row: Mapping[str, Any]
    epoch: float | None
    total: float | None


@dataclass(frozen=True)
class TimeTable:
    """Methods x data sets.

    Attributes:
        experiment: what was asked for.
        entries: by method label and column label; absent where nothing was measured.
        published: the paper's ratios by method label, column label, and ``"epoch"`` or
            ``"total"``; absent where it has none.
        failures: "method on data set" with the reason why there is no number.
    """

    experiment: Experiment
    entries: Mapping[tuple[str, str], TimeEntry]
    published: Mapping[tuple[str, str, str], float]
    failures: Sequence[tuple[str, str]]

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        timings: Timings,
        published: Published,
        shown: Experiment | None = None,
    ) -> TimeTable:
        """Reads the rows of all data sets.

        Args:
            experiment: the table, whole: with the methods that were measured together.
            timings: has the rows.
            published: the paper's numbers.
            shown: the part of the table that is shown; all by default.

        Raises:
            FormatError: a file of rows is not as it should be.
        """
        shown = shown or experiment
        reference = next(m for m in experiment.methods if m.model == "gcn")
        entries: dict[tuple[str, str], TimeEntry] = {}
        papers: dict[tuple[str, str, str], float] = {}
        failures: list[tuple[str, str]] = []
        for column in shown.columns:
            rows = timings.rows(experiment, column)
            base = rows.get(reference.label, {})
            for method in shown.methods:
                for kind in _KINDS:
                    ratio = _paper_ratio(experiment, method, reference, column, published, kind)
                    if ratio is not None:
                        papers[method.label, column.label, kind] = ratio
                row = rows.get(method.label)
                if row is None:
                    continue
                if row["error"] is not None:
                    failures.append((f"{method.label} on {column.label}", row["error"]))
                    continue
                ratios = {kind: _ratio(row, base, f"{kind}_cpu_seconds") for kind in _KINDS}
                entries[method.label, column.label] = TimeEntry(row, **ratios)
        return cls(shown, entries, papers, failures)

    def ratio(self, method: str, column: str, kind: str) -> float | None:
        """Our ratio of a kind, ``"epoch"`` or ``"total"``."""
        entry = self.entries.get((method, column))
        found: float | None = None if entry is None else getattr(entry, kind)
        return found


def sheet(table: TimeTable, form: Form) -> Sheet:
    """A table of epochs and one of whole trainings, and lines that say what they show."""
    below = form is Form.terminal
    notes = _legend(table, "Below ours" if below else "In parentheses")
    tables = []
    for kind, title in _KINDS.items():
        columns = [column.label for column in table.experiment.columns]
        rows = [
            [
                [[(method.label, "bold" if method.ours else "")]],
                *(_cell(table, method.label, column, kind, below) for column in columns),
            ]
            for method in table.experiment.methods
        ]
        heads = [Head("Method"), *(Head(column, number=True) for column in columns)]
        tables.append(TextTable(heads, rows, title, notes if kind == "total" else ()))
    return Sheet(table.experiment.title, tables)


def _cell(table: TimeTable, method: str, column: str, kind: str, below: bool) -> Cell:
    """Our ratio, and the paper's."""
    ours, paper = table.ratio(method, column, kind), table.published.get((method, column, kind))
    lines = [[(_times(ours), "")]]
    if paper is not None:
        lines.append([(_times(paper), "dim") if below else (f"({_times(paper)})", "")])
    return lines


def to_csv(table: TimeTable) -> str:
    """One line a method and data set, also where nothing was measured; the unknown is empty."""
    rows = []
    reasons = dict(table.failures)
    for method in table.experiment.methods:
        for column in table.experiment.columns:
            entry = table.entries.get((method.label, column.label))
            row: dict[str, Any] = dict(entry.row) if entry else {}
            row |= {"method": method.label, "model": method.model, "data": column.label}
            row |= {"protocol": column.protocol}
            row["error"] = reasons.get(f"{method.label} on {column.label}", "")
            for kind in _KINDS:
                row[f"{kind}_ratio"] = table.ratio(method.label, column.label, kind)
                paper = table.published.get((method.label, column.label, kind))
                row[f"paper_{kind}_ratio"] = paper
            rows.append(row)
    return csv_text(_CSV, rows)


def _legend(table: TimeTable, place: str) -> list[str]:
    rows = [entry.row for entry in table.entries.values()]
    threads = sorted({row["threads"] for row in rows})
    rounds = sorted({row["rounds"] for row in rows})
    sentences = [
        "Processor time over that of GCN on the same data, with default settings.",
        f"Threads: {', '.join(map(str, threads))}. An epoch is the median of "
        f"{', '.join(map(str, rounds))} rounds in which all methods took turns."
        if rows
        else "",
        f"{place}: the paper's ratio." if table.published else "",
        "Empty: not measured.",
        table.experiment.note.strip(),
    ]
    failed = [f"No number for {name}: {reason}" for name, reason in table.failures]
    return [" ".join(sentence for sentence in sentences if sentence), *failed]


def _times(ratio: float | None) -> str:
    """``2.31x``; three digits are enough for large ones."""
    if ratio is None:
        return ""
    return f"{ratio:.2f}x" if ratio < 100 else f"{ratio:.0f}x"


def _ratio(row: Mapping[str, Any], base: Mapping[str, Any], key: str) -> float | None:
    reference = base.get(key)
    return row[key] / reference if reference else None


def _paper_ratio(
    experiment: Experiment,
    method: Method,
    reference: Method,
    column: Column,
    published: Published,
    kind: str,
) -> float | None:
    if None in (experiment.paper, method.paper, reference.paper, column.paper):
        return None
    both = [
        published.value(str(experiment.paper), str(one.paper), str(column.paper), _UNITS[kind])
        for one in (method, reference)
    ]
    if both[0] is None or both[1] is None:
        return None
    return both[0].value / both[1].value
