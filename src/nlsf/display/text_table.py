"""Tables for people: a `Sheet` of `TextTable`, in a terminal, in Markdown and in LaTeX.

`csv_text` is for programs. A cell is a text, or lines of styled pieces: in a terminal they stand
below each other, elsewhere beside each other.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Piece: TypeAlias = tuple[str, str]
"""A text and its style: ``"best"`` is highlighted everywhere, any other style in a terminal."""

Cell: TypeAlias = str | Sequence[Sequence[Piece]]


class Form(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    latex = "latex"


_GAP = 2
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class Head:
    """A column of a table.

    Attributes:
        label: its head; a line break is one in a terminal only.
        number: whether its texts stand at the right.
        least: the width down to which its texts may be broken into lines in a narrow terminal;
            0 where they must stay whole, as names and numbers.
    """

    label: str
    number: bool = False
    least: int = 0


@dataclass(frozen=True)
class TextTable:
    """One table; its first column has the names of the rows.

    Attributes:
        columns: their heads.
        rows: a cell for every column; ``None`` is a line between rows, in a terminal.
        title: what stands above it.
        notes: sentences that stand below it.
    """

    columns: Sequence[Head]
    rows: Sequence[Sequence[Cell] | None]
    title: str = ""
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, *labels: str, rows: Sequence[Sequence[Cell] | None]) -> TextTable:
        """A table of short texts: a head that ends with ``>`` is one of numbers."""
        columns = [Head(label.rstrip(">"), label.endswith(">")) for label in labels]
        return cls(columns, rows)

    def print(self, console: Console) -> None:
        """Prints the table alone."""
        Sheet("", [self]).print(console)


@dataclass(frozen=True)
class Sheet:
    """Tables that belong together.

    Attributes:
        title: of all.
        tables: from above to below.
    """

    title: str
    tables: Sequence[TextTable]

    def print(self, console: Console) -> None:
        """Prints to a console.

        No name and no number is cut. A terminal that is too narrow breaks the texts that may be
        broken, and then shows the last columns below the first ones. What is no terminal gets
        lines of any length.
        """
        from rich.text import Text

        width = console.width if console.is_terminal else None
        if self.title:
            console.print(Text(self.title, "bold"), soft_wrap=width is None)
        for number, table in enumerate(self.tables):
            if number and self.tables[number - 1].notes:
                console.print()
            if table.title:
                console.print(Text(f"{table.title}:"), soft_wrap=width is None)
            for line in _Layout(table, console, width).lines():
                console.print(line, soft_wrap=True)
            for note in table.notes:
                console.print(Text(note, "dim"), soft_wrap=width is None)

    def markdown(self) -> str:
        """Tables of GitHub's Markdown, each with its notes below, without the title of all."""
        blocks = []
        for table in self.tables:
            blocks += [_markdown_escaped(table.title)] if table.title else []
            head, *body = _rows(table, "**{}**", _markdown_escaped)
            line = ["---:" if column.number else "---" for column in table.columns]
            blocks.append("\n".join(f"| {' | '.join(row)} |" for row in (head, line, *body)))
            blocks += map(_markdown_escaped, table.notes)
        return "\n\n".join(blocks) + "\n"

    def latex(self) -> str:
        """One ``table`` of LaTeX, which needs the package booktabs; its notes are the caption."""
        notes = [note for table in self.tables for note in table.notes]
        caption = _latex_escaped(" ".join([f"{self.title}.", *notes]))
        blocks = [f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}"]
        for number, table in enumerate(self.tables):
            if table.title or number:
                blocks.append(_latex_escaped(table.title) or "\\medskip")
            rows = [" & ".join(row) for row in _rows(table, "\\textbf{{{}}}", _latex_number)]
            head, *body = (f"{row} \\\\" for row in rows)
            kinds = "".join("r" if column.number else "l" for column in table.columns)
            start = f"\\begin{{tabular}}{{{kinds}}}"
            lines = [start, "\\toprule", head, "\\midrule", *body, "\\bottomrule"]
            blocks.append("\n".join([*lines, "\\end{tabular}"]))
        return "\n\n".join([*blocks, "\\end{table}\n"])


def csv_text(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """A CSV file; what is unknown (absent, ``None`` or NaN) is empty, other keys are left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({key: _csv_value(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _csv_value(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return f"{value:.6g}" if value == value else ""


def _rows(table: TextTable, best: str, escaped: Callable[[str], str]) -> Iterator[list[str]]:
    """The head and the rows, as texts of a format."""
    yield [escaped(column.label) for column in table.columns]
    for row in table.rows:
        if row is None:
            continue
        texts = []
        for cell in row:
            pieces = [piece for line in _lines(cell) for piece in line if piece[0]]
            marked = (
                best.format(escaped(text)) if style == "best" else escaped(text)
                for text, style in pieces
            )
            texts.append(" ".join(marked))
        yield texts


def _lines(cell: Cell) -> Sequence[Sequence[Piece]]:
    return [[(cell, "")]] if isinstance(cell, str) else cell


def _markdown_escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", " ".join(text.split()))


def _latex_escaped(text: str) -> str:
    escaped = "".join(_LATEX.get(character, character) for character in " ".join(text.split()))
    return escaped.replace("+-", r"$\pm$")


def _latex_number(text: str) -> str:
    return re.sub(r"^-(?=\d)", "$-$", _latex_escaped(text))


class _Layout:
    """A table in a console of some width; without a width, every column has what it needs."""

    def __init__(self, table: TextTable, console: Console, width: int | None) -> None:
        self.table, self.console, self.width = table, console, width
        self.heads = [_styled(column.label, "bold") for column in table.columns]
        self.rows = [None if row is None else list(map(_text, row)) for row in table.rows]
        columns = list(zip(self.heads, *(row for row in self.rows if row is not None), strict=True))
        self.sizes = [max(map(_width, texts)) for texts in columns]
        self.least = [
            min(size, max([column.least, *(_width(word) for t in texts for word in t.split(" "))]))
            if column.least
            else size
            for column, size, texts in zip(table.columns, self.sizes, columns, strict=True)
        ]

    def lines(self) -> Iterator[Text]:
        """The lines of all blocks of columns."""
        for number, (columns, sizes) in enumerate(self._blocks()):
            if number:
                yield _styled("")
            rule = _styled("─" * (sum(sizes) + _GAP * (len(sizes) - 1)), "dim")
            yield from self._row([self.heads[j] for j in columns], columns, sizes)
            yield rule
            for row in self.rows:
                if row is None:
                    yield rule
                else:
                    yield from self._row([row[j] for j in columns], columns, sizes)

    def _blocks(self) -> Iterator[tuple[list[int], list[int]]]:
        """Columns that stand beside each other, and their widths; the first one is in every block.

        Texts are broken first, the longest before the others; then columns go below.
        """
        every, sizes = list(range(len(self.sizes))), list(self.sizes)
        if self.width is None:
            yield every, sizes
            return
        room = self.width - _GAP * (len(sizes) - 1)
        while sum(sizes) > room and sizes != self.least:
            loose = [j for j in every if sizes[j] > self.least[j]]
            sizes[max(loose, key=lambda j: sizes[j])] -= 1
        if sum(sizes) <= room:
            yield every, sizes
            return
        first, start = self.least[0], 1
        while start < len(sizes):
            left, end = self.width - first, start
            while end < len(sizes) and (end == start or self.sizes[end] + _GAP <= left):
                left -= self.sizes[end] + _GAP
                end += 1
            inner = [max(self.least[j], self.sizes[j] + min(left, 0)) for j in range(start, end)]
            yield [0, *range(start, end)], [first, *inner]
            start = end

    def _row(self, cells: Sequence[Text], columns: list[int], sizes: list[int]) -> Iterator[Text]:
        wrapped = [
            list(cell.wrap(self.console, size) if _width(cell) > size else cell.split("\n"))
            for cell, size in zip(cells, sizes, strict=True)
        ]
        for number in range(max(map(len, wrapped))):
            line = _styled("")
            for place, (lines, j, size) in enumerate(zip(wrapped, columns, sizes, strict=True)):
                text = lines[number].copy() if number < len(lines) else _styled("")
                text.rstrip()
                if self.table.columns[j].number:
                    text.pad_left(size - text.cell_len)
                elif place < len(columns) - 1:
                    text.pad_right(size - text.cell_len)
                line.append_text(_styled(" " * _GAP) + text if place else text)
            line.rstrip()
            yield line


def _styled(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style)


def _text(cell: Cell) -> Text:
    """The lines of a cell below each other."""
    lines = []
    for line in _lines(cell):
        pieces = (_styled(text, "bold" if style == "best" else style) for text, style in line)
        lines.append(_styled(" ").join(piece for piece in pieces if piece))
    return _styled("\n").join(lines)


def _width(text: Text) -> int:
    return max((line.cell_len for line in text.split("\n")), default=0)
