"""A result table on a console: `terminal`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from nlsf.data.metrics import higher_is_better
from nlsf.experiments.result_table import ResultTable
from nlsf.experiments.table_text import (
    difference,
    is_clear,
    legend,
    number,
    other_n,
    ours,
    pair_of,
    paired_legend,
    signed,
)

_DECIMALS = 1
_PADDING = 2
"""Characters between two columns."""

_LABEL = 22
"""Characters of a method's name before it is broken into lines."""

_PAPER = "Below ours: the paper's value, and ours minus it."

Row = tuple[Text, list[Text]]
"""A label, and a text a column."""


def terminal(table: ResultTable) -> RenderableType:
    """The table for a console of any width: columns that do not fit go into a table below.

    Numbers have one decimal. Below ours stand the paper's and the difference between them.
    """
    return _Terminal(table)


@dataclass(frozen=True)
class _Terminal:
    table: ResultTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Table]:
        table, width = self.table, options.max_width
        yield Text(table.experiment.title, style="bold")
        yield from _tables(table, "Method", _results(table), width)
        yield Text(legend(table, _PAPER), style="dim")
        differences = _differences(table)
        if differences:
            yield Text("")
            yield from _tables(table, f"Minus {table.reference}", differences, width)
            yield Text(paired_legend(table), style="dim")


def _tables(
    table: ResultTable, corner: str, rows: Sequence[Row], width: int
) -> Iterator[Table | Text]:
    """As many tables below each other as the columns need."""
    heads = [Text(column.label, style="bold") for column in table.experiment.columns]
    sizes = [
        max(_width(texts[i]) for texts in (heads, *(cells for _, cells in rows)))
        for i in range(len(heads))
    ]
    label = min(_LABEL, max(len(corner), *(_width(name) for name, _ in rows)))
    start = 0
    while start < len(heads):
        if start:
            yield Text("")
        end, used = start + 1, label + _PADDING + sizes[start]
        while end < len(heads) and used + _PADDING + sizes[end] <= width:
            used += _PADDING + sizes[end]
            end += 1
        # The box itself has one character between columns.
        shown = Table(
            box=SIMPLE_HEAD, padding=(0, _PADDING - 1, 0, 0), pad_edge=False, show_edge=False
        )
        shown.add_column(Text(corner), width=label)
        for head, size in zip(heads[start:end], sizes[start:end], strict=True):
            shown.add_column(head, justify="right", width=size)
        for name, cells in rows:
            shown.add_row(name, *cells[start:end])
        yield shown
        start = end


def _width(text: Text) -> int:
    return max((line.cell_len for line in text.split()), default=0)


def _results(table: ResultTable) -> list[Row]:
    rows = _rows(table, lambda method, column: _result(table, method, column))
    floors = [table.floor(column.label) for column in table.experiment.columns]
    if any(floor is not None for floor in floors):
        cells = [Text(number(table, floor, _DECIMALS), style="dim") for floor in floors]
        rows.append((Text("Floor", style="dim"), cells))
    return rows


def _rows(table: ResultTable, cell: Callable[[str, str], Text]) -> list[Row]:
    columns = [column.label for column in table.experiment.columns]
    return [
        (
            Text(method.label, style="bold" if method.ours else ""),
            [cell(method.label, column) for column in columns],
        )
        for method in table.experiment.methods
    ]


def _result(table: ResultTable, method: str, column: str) -> Text:
    entry, paper = table.entries[method, column], table.published.get((method, column))
    text = Text()
    if entry is not None:
        best = entry.mean == table.best(column)
        text.append(ours(table, entry, decimals=_DECIMALS), "bold" if best else "")
        text.append(_below(other_n(table, entry.n)))
    if paper is not None:
        text.append(f"\n{number(table, paper.value, _DECIMALS)}", "dim")
        if entry is not None and entry.difference is not None:
            better = (entry.difference > 0) == higher_is_better(table.experiment.metric)
            shown = signed(table, entry.difference, _DECIMALS)
            text.append(f" {shown}", "green" if better else "red")
    return text


def _differences(table: ResultTable) -> list[Row]:
    """Only methods that share a split with the reference."""

    def cell(method: str, column: str) -> Text:
        pair = pair_of(table, method, column)
        if pair is None:
            return Text()
        text = Text(difference(table, pair, decimals=_DECIMALS), "bold" if is_clear(pair) else "")
        return text.append(_below(other_n(table, pair.n)))

    return [(name, cells) for name, cells in _rows(table, cell) if any(map(len, cells))]


def _below(text: str) -> str:
    return f"\n{text}" if text else ""
