"""Numbers as people read them."""

from __future__ import annotations

import math

_SHARES = ("accuracy", "macro_f1", "roc_auc")
_METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "roc_auc": "area under the ROC curve",
    "rmse": "root mean square error",
    "mae": "mean absolute error",
}


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


def percent(share: float) -> str:
    """A share of 1: ``"81.25 %"``."""
    return f"{100 * share:.2f} %"


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
