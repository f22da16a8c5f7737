"""Numbers as a page shows them: in words, with their spread, and few enough to draw."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SHARES = ("accuracy", "macro_f1", "roc_auc")
_METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "roc_auc": "area under the ROC curve",
    "rmse": "root mean square error",
    "mae": "mean absolute error",
}

_POINTS = 2_000
"""Points of a series: more than a screen has columns."""


def metric_name(metric: str) -> str:
    """A metric in words."""
    return _METRICS.get(metric, metric)


def is_share(metric: str) -> bool:
    """Whether a metric lies between 0 and 1, and is read as a percentage."""
    return metric in _SHARES


def metric_value(metric: str, value: float | None) -> str:
    """A metric's value: ``"81.25 %"``, or four digits of an error."""
    if value is None or not math.isfinite(value):
        return "unknown"
    return percent(value) if is_share(metric) else f"{value:.4g}"


def metric_spread(metric: str, mean: float | None, half: float = math.nan) -> str:
    """A mean and half the width of its interval; the mean alone where that is not known.

    Example:
        >>> metric_spread("accuracy", 0.8125, 0.004), metric_spread("rmse", 1.5)
        ('81.25 ± 0.40 %', '1.5')
    """
    if mean is None or not math.isfinite(mean) or not math.isfinite(half):
        return metric_value(metric, mean)
    if is_share(metric):
        return f"{100 * mean:.2f} ± {100 * half:.2f} %"
    return f"{mean:.4g} ± {half:.2g}"


def metric_difference(metric: str, value: float, sign: str = "") -> str:
    """The difference of two values, in points where a metric is a percentage.

    Args:
        metric: of both.
        value: the difference.
        sign: ``"+"`` for a sign before gains too.
    """
    return f"{100 * value:{sign}.2f} points" if is_share(metric) else f"{value:{sign}.4g}"


def percent(share: float, digits: int = 2) -> str:
    """A share of 1: ``"81.25 %"``."""
    return f"{100 * share:.{digits}f} %"


def unbroken(text: str) -> str:
    """The same for a narrow column, which leaves the unit in its line."""
    return text.replace(" ", "\u00a0")


def seconds(duration: float) -> str:
    """A duration: ``"0.42 s"``, ``"3 min 5 s"``, ``"2 h 10 min"``.

    Example:
        >>> seconds(0.42), seconds(185), seconds(7800)
        ('0.42 s', '3 min 5 s', '2 h 10 min')
    """
    if duration < 10:
        return f"{duration:.2f} s"
    whole = round(duration)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def plural(count: int, noun: str) -> str:
    """A count of things.

    Example:
        >>> plural(1, "seed"), plural(1200, "class")
        ('1 seed', '1,200 classes')
    """
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def evenly_chosen(count: int, *always: int, limit: int = _POINTS) -> NDArray[np.int64]:
    """Which of ``count`` points to show: at most ``limit``, evenly, the first and last among them.

    Args:
        count: how many there are.
        always: points that must be shown, beyond the limit if need be.
        limit: at most so many, at least 2.
    """
    even = np.linspace(0, count - 1, min(count, limit)).round().astype(np.int64)
    return np.union1d(even, np.array(always, dtype=np.int64))


def histogram(values: ArrayLike, bins: int = 40) -> tuple[list[float], list[int]]:
    """Edges (bins + 1) and counts (bins) of numbers; one bin where all are equal.

    Args:
        values: any shape, finite.
        bins: how many, of equal width.
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size == 0 or array.min() == array.max():
        middle = float(array[0]) if array.size else 0.0
        return [middle - 0.5, middle + 0.5], [array.size]
    counts, edges = np.histogram(array, bins=bins)
    return edges.tolist(), counts.tolist()
