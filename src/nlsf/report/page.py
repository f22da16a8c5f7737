"""One HTML file that needs nothing else: `Page`, written by `write_page`.

The charts lie in the file as JSON, and the file's own script draws them. A content security
policy lets no other script run and no request leave, whatever the names in the data are.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import webbrowser
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from nlsf.errors import ConfigError
from nlsf.report.charts import (
    BarChart,
    Chart,
    DataTable,
    GraphDrawing,
    HeatMap,
    LineChart,
    Pictures,
    Tiles,
    chart_data,
)
from nlsf.store.files import write_text

_SCRIPTS = (
    "elements", "scales", "marks", "readout", "textures",
    "chart", "plot", "lines", "bars", "heat_map", "pictures", "graph",
    "page",
)  # fmt: skip
"""The parts of the page's script, in the order in which they need each other."""

_NUMBER = re.compile(r"([-\u2212]?\d[-\d.,:e\u00b1%\s]*[a-zA-Z]{0,3})?")
"""A cell that reads better against the right edge of its column."""

_RIGHT = ' class="number"'


class Page:
    """A page of sections with charts.

    Args:
        title: the heading and the name of the browser's tab.
        subtitle: one line below it.

    Example:
        >>> page = Page("Cora", "2,708 papers")
        >>> page.section("Overview", "What came out.", Tiles([("Accuracy", "81 %", "")]))
        >>> "Overview</h2>" in page.html()
        True
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._sections: list[tuple[str, str, Sequence[Chart]]] = []

    def section(self, heading: str, text: str, *charts: Chart) -> None:
        """Adds a section.

        Args:
            heading: its name, also in the navigation.
            text: one or two plain sentences for a newcomer; may be empty. An empty line starts a
                new paragraph.
            charts: shown in this order.
        """
        self._sections.append((heading, text, charts))

    def html(self) -> str:
        """The whole file."""
        script = "\n".join(_asset(f"charts/{name}.js") for name in _SCRIPTS)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        links = (
            f'<li><a href="#section-{i}">{escape(heading)}</a></li>'
            for i, (heading, _, _) in enumerate(self._sections)
        )
        return Template(_asset("page.html")).substitute(
            script_hash=digest,
            title=escape(self.title),
            subtitle=_paragraph(self.subtitle, "subtitle"),
            style=_asset("page.css"),
            links="\n".join(links),
            sections="\n".join(self._section_html(i) for i in range(len(self._sections))),
            script=script,
        )

    def write(self, path: Path) -> Path:
        """Writes the file, all of it or nothing, and returns its path.

        Raises:
            OSError: the file cannot be written.
        """
        write_text(path, self.html())
        return path

    def _section_html(self, i: int) -> str:
        heading, text, charts = self._sections[i]
        wide = _wide(charts)
        shown = "\n".join(
            _chart_html(chart, f"chart-{i}-{j}", wide[j]) for j, chart in enumerate(charts)
        )
        lead = "\n".join(_paragraph(part, "lead") for part in text.split("\n\n"))
        body = f'<div class="charts">\n{shown}\n</div>\n' if charts else ""
        return (
            f'<section id="section-{i}" aria-labelledby="heading-{i}">\n'
            f'<h2 id="heading-{i}">{escape(heading)}</h2>\n{lead}\n'
            f"{body}</section>"
        )


def write_page(page: Page, path: Path, *, open: bool = False) -> Path:
    """Writes a page, in a new folder if need be, and shows it in the browser if asked to."""
    check_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.write(path)
    if open:
        webbrowser.open(path.resolve().as_uri())
    return path


def check_name(path: Path) -> None:
    """Refuses a path that a page cannot have.

    Raises:
        ConfigError: it does not end in .html, or is a folder.
    """
    if path.suffix.lower() != ".html" or path.is_dir():
        raise ConfigError(f"{path} is not the name of a page: it must end in .html.")


def _asset(name: str) -> str:
    return (files("nlsf.report") / "assets" / name).read_text(encoding="utf-8")


def _paragraph(text: str, name: str = "caption") -> str:
    return f'<p class="{name}">{escape(text)}</p>' if text else ""


def _wide(charts: Sequence[Chart]) -> list[bool]:
    """Which charts get a row of their own: lines and bars share one, two by two."""
    wide: list[bool] = []
    waiting = False
    for chart in charts:
        pairs = isinstance(chart, LineChart | BarChart)
        if waiting and not pairs:
            wide[-1] = True
        waiting = pairs and not waiting
        wide.append(not pairs)
    if waiting:
        wide[-1] = True
    return wide


def _chart_html(chart: Chart, key: str, wide: bool) -> str:
    if isinstance(chart, Tiles):
        return _tiles_html(chart)
    if isinstance(chart, DataTable):
        body = _table_html(chart)
    else:
        # The script finds the data beside the place that it draws into.
        body = f'<div class="drawn"></div>\n<script type="application/json">{_json(chart)}</script>'
    kind = "chart wide" if wide else "chart"
    return (
        f'<figure class="{kind}" id="{key}" aria-labelledby="{key}-title">\n'
        f'<figcaption><h3 id="{key}-title">{escape(chart.title)}</h3>'
        f"{_paragraph(chart.caption)}</figcaption>\n{body}\n</figure>"
    )


def _json(chart: LineChart | BarChart | HeatMap | GraphDrawing | Pictures) -> str:
    """The chart's data, with nothing in it that could end the element it stands in."""
    text = json.dumps(chart_data(chart), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _tiles_html(tiles: Tiles) -> str:
    items = (
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd>"
        f'<dd class="small">{escape(explanation)}</dd></div>'
        for label, value, explanation in tiles.items
    )
    return '<dl class="tiles wide">\n' + "\n".join(items) + "\n</dl>"


def _table_html(table: DataTable) -> str:
    numeric = [
        all(_NUMBER.fullmatch(row[i]) for row in table.rows) and bool(table.rows)
        for i in range(len(table.header))
    ]
    head = _cells("th", table.header, numeric, ' scope="col"')
    rows = "\n".join(f"<tr>{_cells('td', row, numeric)}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">\n'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _cells(tag: str, texts: Sequence[str], numeric: Iterable[bool], more: str = "") -> str:
    return "".join(
        f"<{tag}{more}{_RIGHT if number else ''}>{escape(text)}</{tag}>"
        for text, number in zip(texts, numeric, strict=True)
    )
