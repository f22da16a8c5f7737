"""What a page can show: lines, bars, heat maps, graphs, pictures, tables and headline numbers.

Charts are data without looks: `nlsf.report.page` writes them into a page, and its script draws
them. All text is plain (the page escapes it). A number that is not finite counts as missing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from nlsf.errors import ConfigError, unknown_name

DIGITS = 6
"""Significant digits of the numbers in a page."""

Kind: TypeAlias = Literal["count", "share", "gain"]


@dataclass(frozen=True)
class Series:
    """A line, or with ``points`` a cloud of markers.

    Attributes:
        name: for the legend.
        x: finite numbers.
        y: as many; a missing one leaves a gap.
        points: markers only.
        faint: drawn thin and pale, for what is there to compare with.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    points: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Region:
    """A shaded stretch of the x axis, for example a band."""

    start: float
    end: float
    name: str


@dataclass(frozen=True)
class LineChart:
    """Series over a common x axis.

    Attributes:
        marks: vertical marks ``(x, text)``, for example the best epoch.
        log_x: logarithmic axis; numbers that are not positive are left out, and the page says so.
        log_y: likewise.
    """

    title: str
    caption: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    regions: Sequence[Region] = ()
    log_x: bool = False
    log_y: bool = False
    marks: Sequence[tuple[float, str]] = ()

    def __post_init__(self) -> None:
        for series in self.series:
            _same(self.title, f"x of series {series.name!r}", series.x, "y", series.y)
            _finite(self.title, f"x of series {series.name!r}", series.x)
        for region in self.regions:
            _finite(self.title, f"the region {region.name!r}", (region.start, region.end))
        _finite(self.title, "the marks", [x for x, _ in self.marks])


@dataclass(frozen=True)
class BarChart:
    """Bars in groups: a group a category, in it a bar a series.

    Attributes:
        series: pairs ``(name, values)``, a value a category.
        percent: values are shares of 1, shown in percent.
        ranges: for each series, for each category, ``(low, high)`` of a whisker or ``None``; empty
            for no whiskers.
    """

    title: str
    caption: str
    x_label: str
    y_label: str
    categories: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    percent: bool = False
    log_y: bool = False
    ranges: Sequence[Sequence[tuple[float, float] | None]] = ()

    def __post_init__(self) -> None:
        for name, values in self.series:
            _same(self.title, f"series {name!r}", values, "categories", self.categories)
        if len(self.ranges):
            _same(self.title, "ranges", self.ranges, "series", self.series)
            for ranges in self.ranges:
                _same(self.title, "ranges of a series", ranges, "categories", self.categories)


@dataclass(frozen=True)
class HeatMap:
    """A table of numbers shown as colours.

    Attributes:
        values: a sequence a row, with a number a column.
        kind: ``"count"`` and ``"share"`` (of 1, shown in percent) go from pale to strong;
            ``"gain"`` has two colours that meet at 1.
    """

    title: str
    caption: str
    x_label: str
    y_label: str
    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float | None]]
    kind: Kind = "count"

    def __post_init__(self) -> None:
        _same(self.title, "values", self.values, "rows", self.rows)
        for row in self.values:
            _same(self.title, "a row of values", row, "columns", self.columns)
        if self.kind not in get_args(Kind):
            raise ConfigError(unknown_name("kind of heat map", self.kind, get_args(Kind)))


@dataclass(frozen=True)
class GraphDrawing:
    """A graph whose nodes have a place and a group.

    Attributes:
        positions: ``(x, y)`` of each node, on any scale; y grows upwards.
        edges: pairs of node numbers.
        group: the group of each node, an index into ``groups``; it gives colour and marker.
        groups: names for the legend.
        texts: what is read out of each node.
        wrong: nodes to outline: their prediction differs from the label.
    """

    title: str
    caption: str
    positions: Sequence[tuple[float, float]]
    edges: Sequence[tuple[int, int]]
    group: Sequence[int]
    groups: Sequence[str]
    texts: Sequence[str]
    wrong: Sequence[bool]

    def __post_init__(self) -> None:
        for name in ("group", "texts", "wrong"):
            _same(self.title, name, getattr(self, name), "positions", self.positions)
        for position in self.positions:
            _finite(self.title, "positions", position)
        ends = [end for edge in self.edges for end in edge]
        _indices(self.title, "edges", ends, "nodes", len(self.positions))
        _indices(self.title, "group", self.group, "groups", len(self.groups))


@dataclass(frozen=True)
class Pictures:
    """Small images in rows and columns, all on one scale of colours; two colours if signs differ.

    Attributes:
        rows: the name of each row.
        columns: the name of each column.
        images: for each row, for each column, the image: its rows of pixels, from the top.
        moving: one column is shown at a time, and a button plays them as a film.
    """

    title: str
    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    images: Sequence[Sequence[Sequence[Sequence[float]]]]
    moving: bool = False

    def __post_init__(self) -> None:
        _same(self.title, "images", self.images, "rows", self.rows)
        for row in self.images:
            _same(self.title, "a row of images", row, "columns", self.columns)
            for image in row:
                _same(self.title, "an image", image, "the first image", self.images[0][0])
                for line in image:
                    _same(self.title, "a line of pixels", line, "the first line", image[0])


@dataclass(frozen=True)
class DataTable:
    """A table of texts."""

    title: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            _same(self.title, "a row", row, "header", self.header)


@dataclass(frozen=True)
class Tiles:
    """The headline numbers: triples ``(label, value, small explanation)``."""

    items: Sequence[tuple[str, str, str]]


Chart: TypeAlias = LineChart | BarChart | HeatMap | GraphDrawing | Pictures | DataTable | Tiles


def chart_data(chart: Chart) -> dict[str, Any]:
    """The fields of a chart as JSON values, with its class name under ``"type"``.

    Numbers keep `DIGITS` significant digits; a number that is not finite becomes ``None``.

    Example:
        >>> chart_data(Tiles([("Accuracy", "81 %", "on 1,000 nodes")]))
        {'type': 'Tiles', 'items': [['Accuracy', '81 %', 'on 1,000 nodes']]}
    """
    return {"type": type(chart).__name__, **_plain(chart)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return _rounded(float(value))
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return [_plain(item) for item in value]


def _rounded(number: float) -> float | int | None:
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{DIGITS}g}")
    # 3 instead of 3.0: half of a large page are such numbers.
    return int(short) if short.is_integer() and abs(short) < 10**DIGITS else short


def _same(title: str, a: str, first: Sequence[Any], b: str, second: Sequence[Any]) -> None:
    if len(first) != len(second):
        raise ConfigError(
            f"The chart {title!r} has {len(first)} entries in {a} and {len(second)} in {b}: "
            "give as many of each."
        )


def _finite(title: str, what: str, numbers: Sequence[float]) -> None:
    if not all(math.isfinite(number) for number in numbers):
        raise ConfigError(
            f"The chart {title!r} has a number that is not finite in {what}: leave it out."
        )


def _indices(title: str, what: str, numbers: Sequence[int], of: str, size: int) -> None:
    bad = next((number for number in numbers if not 0 <= number < size), None)
    if bad is not None:
        raise ConfigError(
            f"The chart {title!r} names {bad} in {what}, but its {size} {of} are numbered from 0."
        )
