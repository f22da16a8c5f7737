"""What the choices of each setting were worth in a search: `choice_charts`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Protocol

from nlsf.data.metrics import higher_is_better
from nlsf.report.charts import BarChart, Chart, DataTable
from nlsf.report.wording import is_share, metric_value

_WHAT = ("kind", "name")
"""Keys of a table whose value says by itself what it is."""


class TrialLike(Protocol):
    """What the page of a search asks of a trial."""

    @property
    def number(self) -> int:
        """Counted from 0, the trial of the defaults."""

    @property
    def point(self) -> Mapping[str, Any]:
        """The value of each setting, by its path."""

    @property
    def value(self) -> float | None:
        """The mean validation metric, where it is known."""

    @property
    def state(self) -> str:
        """``"complete"``, ``"pruned"``, ``"failed"``, ``"running"`` or ``"waiting"``."""

    @property
    def seconds(self) -> float | None:
        """That it took."""

    @property
    def epochs(self) -> int | None:
        """That it trained."""

    @property
    def error(self) -> str | None:
        """Why it failed."""

    @property
    def worker(self) -> str | None:
        """Who ran it."""


Done = Sequence[tuple[TrialLike, float]]
"""Complete trials with their values, by number."""


def choice_charts(
    metric: str, trials: Sequence[TrialLike], done: Done, importances: Mapping[str, float]
) -> list[Chart]:
    """A chart a setting with several choices, the most important first, and one table of all.

    Args:
        metric: of the values.
        trials: all of them.
        done: the complete ones.
        importances: by setting; may be empty.
    """
    names = sorted(settings(done), key=lambda name: -importances.get(name, 0.0))
    found = {name: by_choice(name, done) for name in names}
    several = {name: choices for name, choices in found.items() if len(choices) > 1}
    if not several:
        return []
    bars = [_bars(metric, name, choices, done) for name, choices in several.items()]
    return [*bars, _table(metric, several, trials)]


def settings(done: Done) -> list[str]:
    """The settings of complete trials, in their order."""
    return list(dict.fromkeys(name for trial, _ in done for name in trial.point))


def by_choice(name: str, done: Done) -> dict[str, list[float]]:
    """The values of the complete trials with each choice of a setting, numbers in their order."""
    found: dict[str, tuple[Any, list[float]]] = {}
    for trial, value in done:
        if name in trial.point:
            choice = trial.point[name]
            found.setdefault(choice_text(choice), (choice, []))[1].append(value)
    if all(type(choice) in (int, float) for choice, _ in found.values()):
        found = dict(sorted(found.items(), key=lambda item: item[1][0]))
    return {text: values for text, (_, values) in found.items()}


def choice_text(choice: Any) -> str:
    """A value of a setting as text.

    Example:
        >>> choice_text(0.05), choice_text(None), choice_text({"kind": "uniform", "S": 20})
        ('0.05', 'none', 'uniform, S=20')
    """
    if choice is None:
        return "none"
    if isinstance(choice, Mapping):
        texts = {key: choice_text(value) for key, value in choice.items()}
        return ", ".join(v if k in _WHAT else f"{k}={v}" for k, v in texts.items())
    return choice if isinstance(choice, str) else json.dumps(choice, default=str)


def unbroken(metric: str, value: float) -> str:
    """A metric's value for a narrow column, which leaves the unit in its line."""
    return metric_value(metric, value).replace(" ", "\u00a0")


def _bars(metric: str, name: str, choices: Mapping[str, list[float]], done: Done) -> BarChart:
    """Differences, because bars from zero on would all look alike."""
    scale, unit = (100.0, " (points)") if is_share(metric) else (1.0, "")
    best = max if higher_is_better(metric) else min
    middle = median(value for _, value in done)
    return BarChart(
        name,
        "",
        "choice",
        f"difference to the median of all trials{unit}",
        [f"{text} ({len(values)})" for text, values in choices.items()],
        [
            ("best", [scale * (best(values) - middle) for values in choices.values()]),
            ("median", [scale * (median(values) - middle) for values in choices.values()]),
        ],
    )


def _table(
    metric: str, several: Mapping[str, Mapping[str, list[float]]], trials: Sequence[TrialLike]
) -> DataTable:
    stopped = Counter(
        (name, choice_text(choice))
        for trial in trials
        if trial.state in ("pruned", "failed")
        for name, choice in trial.point.items()
    )
    best = max if higher_is_better(metric) else min
    return DataTable(
        "Every choice",
        "Best and median validation value of the complete trials with that choice.",
        ["setting", "choice", "complete", "pruned or failed", "best", "median"],
        [
            [
                name,
                choice,
                str(len(values)),
                str(stopped[name, choice]),
                unbroken(metric, best(values)),
                unbroken(metric, median(values)),
            ]
            for name, choices in several.items()
            for choice, values in choices.items()
        ],
    )
