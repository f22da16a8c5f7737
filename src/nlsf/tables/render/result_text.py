"""A result table as text: `to_markdown`, `to_csv`, `to_latex`, `terminal`.

All show our mean +- spread with the paper's value beside it, the best of our means in a column in
bold, and the differences of every method to the first one of ours on the same splits. A place
without a number of ours was not run.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from nlsf.data.metrics import higher_is_better
from nlsf.tables.render.result_table import (
    Difference,
    ResultTable,
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

__all__ = ["terminal", "to_csv", "to_latex", "to_markdown"]

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
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def to_markdown(table: ResultTable) -> str:
    """Two tables of GitHub's Markdown, a line below each that says what it shows."""
    style = _Style("**{}**", " +- ", "-", "(paper {})", markdown_escaped)
    blocks = [markdown_table(_results(table, style)), markdown_escaped(legend(table))]
    differences = _differences(table, style)
    if differences:
        blocks += [markdown_table(differences), markdown_escaped(paired_legend(table))]
    return "\n\n".join(blocks) + "\n"


def to_latex(table: ResultTable) -> str:
    """One ``table`` of LaTeX, which needs the package booktabs."""
    style = _Style("\\textbf{{{}}}", r" $\pm$ ", "$-$", "({})", latex_escaped)
    note = legend(table)
    blocks = [latex_table(_results(table, style))]
    differences = _differences(table, style)
    if differences:
        blocks += ["\\medskip", latex_table(differences)]
        note += f" {paired_legend(table)}"
    caption = latex_escaped(f"{table.experiment.title}. {note}").replace("+-", r"$\pm$")
    start = f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}"
    return "\n\n".join([start, *blocks, "\\end{table}\n"])


def to_csv(table: ResultTable) -> str:
    """One line a cell, also where nothing was run (n = 0); what is unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _CSV, lineterminator="\n")
    writer.writeheader()
    for method, column in table.cells:
        writer.writerow(_csv_row(table, method, column))
    return text.getvalue()


@dataclass(frozen=True)
class _Style:
    """How a format writes bold text, signs, the paper's value, and any text."""

    bold: str
    plus_minus: str
    minus: str
    paper: str
    escaped: Callable[[str], str]


def _results(table: ResultTable, style: _Style) -> list[list[str]]:
    """A header, a row a method, and the floors."""
    columns = [column.label for column in table.experiment.columns]
    rows = [["Method", *map(style.escaped, columns)]]
    for method in table.experiment.methods:
        cells = [_result(table, method.label, column, style) for column in columns]
        rows.append([style.escaped(method.label), *cells])
    floors = [table.floor(column) for column in columns]
    if any(floor is not None for floor in floors):
        rows.append(["Floor", *(number(table, floor) for floor in floors)])
    return rows


def _result(table: ResultTable, method: str, column: str, style: _Style) -> str:
    entry, paper = table.entries[method, column], table.published.get((method, column))
    parts = []
    if entry is not None:
        text = ours(table, entry, style.plus_minus)
        parts.append(style.bold.format(text) if entry.mean == table.best(column) else text)
        parts.append(other_n(table, entry.n))
    if paper is not None:
        parts.append(style.paper.format(number(table, paper.value)))
    return " ".join(part for part in parts if part)


def _differences(table: ResultTable, style: _Style) -> list[list[str]]:
    """A header and a row a method; nothing where no two methods share a split."""
    columns = [column.label for column in table.experiment.columns]
    rows = []
    for method in table.experiment.methods:
        pairs = [pair_of(table, method.label, column) for column in columns]
        if any(pairs):
            cells = [_difference(table, pair, style) for pair in pairs]
            rows.append([style.escaped(method.label), *cells])
    if not rows:
        return []
    return [[f"Minus {style.escaped(str(table.reference))}", *map(style.escaped, columns)], *rows]


def _difference(table: ResultTable, pair: Difference | None, style: _Style) -> str:
    if pair is None:
        return ""
    text = difference(table, pair, style.plus_minus)
    text = style.minus + text[1:] if text.startswith("-") else text
    text = style.bold.format(text) if is_clear(pair) else text
    return f"{text} {other_n(table, pair.n)}".rstrip()


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    line = ["---"] + ["---:"] * (len(rows[0]) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], line, *rows[1:]))


def markdown_escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", " ".join(text.split()))


def latex_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = (f"{' & '.join(row)} \\\\" for row in rows)
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", "\\toprule", head, "\\midrule"]
    return "\n".join([*lines, *body, "\\bottomrule", "\\end{tabular}"])


def latex_escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _csv_row(table: ResultTable, method: str, column: str) -> dict[str, str | int]:
    cell, entry = table.cells[method, column], table.entries[method, column]
    paper, pair = table.published.get((method, column)), pair_of(table, method, column)
    row: dict[str, str | int] = {
        "method": method,
        "model": cell.model,
        "data": column,
        "protocol": cell.protocol,
        "n": 0,
        "cell": cell.id,
    }
    if paper is not None:
        row |= {
            "paper": number(table, paper.value),
            "paper_spread": number(table, paper.spread),
        }
    if entry is not None:
        row |= {
            "n": entry.n,
            "mean": number(table, entry.mean),
            "spread_kind": table.experiment.spread,
            "spread": number(table, entry.spread),
            "floor": number(table, entry.floor),
            "difference": signed(table, entry.difference),
            "trials": entry.trials,
        }
    if pair is not None:
        row |= {
            "paired_to": str(table.reference),
            "paired_n": pair.n,
            "paired_mean": signed(table, pair.mean),
            "paired_half": number(table, pair.half),
        }
    return row


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
        yield from _tables(table, "Method", _terminal_results(table), width)
        yield Text(legend(table, _PAPER), style="dim")
        differences = _terminal_differences(table)
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


def _terminal_results(table: ResultTable) -> list[Row]:
    rows = _rows(table, lambda method, column: _terminal_result(table, method, column))
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


def _terminal_result(table: ResultTable, method: str, column: str) -> Text:
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


def _terminal_differences(table: ResultTable) -> list[Row]:
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
