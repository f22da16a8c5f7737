"""How a search for settings went: `tuning_page`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Any, Protocol

from nlsf.data.metrics import higher_is_better
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Series, Tiles
from nlsf.report.numbers import (
    is_share,
    metric_difference,
    metric_name,
    metric_value,
    plural,
    seconds,
    unbroken,
)
from nlsf.report.page import Page

_BEST = 10
"""Trials in the table of the best."""

_FAILED = 50
"""Failed trials that are listed."""

_NEEDED = 4
"""Complete trials from which on importance is estimated."""

_STATES = ("complete", "pruned", "failed", "running", "waiting")
_SPEAKING = ("kind", "name")
"""Keys of a setting whose value says by itself what it is."""

_NOTHING = "-"


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


def tuning_page(
    title: str, metric: str, trials: Sequence[TrialLike], importances: Mapping[str, float]
) -> Page:
    """A page on all trials of a search, finished or not.

    Args:
        title: what was tuned.
        metric: what was made as good as possible on validation examples.
        trials: in any order.
        importances: the share of each setting in what makes trials differ; may be empty.
    """
    search = _Search.of(metric, trials)
    done = search.done
    failed = [trial for trial in search.trials if trial.state == "failed"]
    page = Page(title, f"{plural(len(trials), 'trial')}, validation {metric_name(metric)}")
    page.section("Overview", _overview(search), _tiles(search))
    if done:
        text = "What each trial reached, and the best one until then."
        page.section("History", text, _history(search))
        page.section("Importance", *_importance(importances, len(done)))
        page.section("Choices", *_choices(search, importances))
        text = "Settings that the best trials agree on are likely to matter."
        page.section("Best trials", text if len(done) > 1 else "", _best(search))
    if failed:
        text = "Trials whose model could not be built or trained; they have no value."
        page.section("Failed trials", text, _failures(failed))
    return page


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
        return ", ".join(v if k in _SPEAKING else f"{k}={v}" for k, v in texts.items())
    return choice if isinstance(choice, str) else json.dumps(choice, default=str)


@dataclass(frozen=True)
class _Search:
    """The trials of a search by number, and those of them that are complete."""

    metric: str
    trials: Sequence[TrialLike]
    done: Done

    @classmethod
    def of(cls, metric: str, trials: Sequence[TrialLike]) -> _Search:
        trials = sorted(trials, key=lambda trial: trial.number)
        complete = [(trial, trial.value) for trial in trials if trial.state == "complete"]
        known = [(t, value) for t, value in complete if value is not None and math.isfinite(value)]
        return cls(metric, trials, known)

    @property
    def ranked(self) -> Done:
        """The best first."""
        sign = -1 if higher_is_better(self.metric) else 1
        return sorted(self.done, key=lambda pair: (sign * pair[1], pair[0].number))

    @property
    def default(self) -> float | None:
        """The value of the first trial's point, which another one has where the first was lost."""
        if not self.trials or self.trials[0].number != 0:
            return None
        first = self.trials[0].point
        return next((value for trial, value in self.done if trial.point == first), None)

    def best(self, values: Sequence[float]) -> float:
        """The best of some values."""
        return max(values) if higher_is_better(self.metric) else min(values)

    def shown(self, value: float) -> str:
        """A value in a table."""
        return unbroken(metric_value(self.metric, value))


def _overview(search: _Search) -> str:
    if not search.done:
        return "No trial is complete, so nothing is known about the settings yet."
    (best, value), metric, default = search.ranked[0], search.metric, search.default
    found = (
        f"The best validation {metric_name(metric)} is {metric_value(metric, value)}, "
        f"of trial {best.number}."
    )
    if default is None:
        return f"{found} The defaults have no value to compare it with."
    if value == default:
        return f"{found} No trial was better than the defaults."
    return (
        f"{found} That is {metric_difference(metric, abs(value - default))} better than the "
        "defaults. The best of many trials is in part the luckiest one: only test examples tell "
        "what the choice is worth."
    )


def _tiles(search: _Search) -> Tiles:
    metric, ranked = search.metric, search.ranked
    counts = Counter(trial.state for trial in search.trials)
    states = ", ".join(f"{counts[state]:,} {state}" for state in _STATES if counts[state])
    workers = len({trial.worker for trial in search.trials if trial.worker is not None})
    times = [trial.seconds for trial in search.trials if trial.seconds is not None]
    best, where, spent, how = "none", "no trial is complete", "unknown", "of all trials together"
    if ranked:
        best = metric_value(metric, ranked[0][1])
        where = f"found in trial {ranked[0][0].number}; mean over the splits of the search"
    if workers:
        how += f", {plural(workers, 'worker')}"
    if times:
        spent = seconds(sum(times))
        how += f"; {seconds(median(times))} for one, in the median"
    default = metric_value(metric, search.default)
    return Tiles(
        [
            (f"Best validation {metric_name(metric)}", best, where),
            ("Defaults", default, "what trial 0 found, without any search"),
            ("Trials", f"{len(search.trials):,}", states),
            ("Time", spent, how),
        ]
    )


def _history(search: _Search) -> LineChart:
    scale, unit = (100.0, " (%)") if is_share(search.metric) else (1.0, "")
    numbers = [float(trial.number) for trial, _ in search.done]
    values = [value for _, value in search.done]
    best = [scale * value for value in accumulate(values, lambda a, b: search.best((a, b)))]
    series = [
        Series("complete trial", numbers, [scale * value for value in values], points=True),
        Series("best so far", numbers, best),
    ]
    pruned = {t.number: t.value for t in search.trials if t.state == "pruned"}
    stopped = {float(n): scale * value for n, value in pruned.items() if value is not None}
    if stopped:
        x, y = list(stopped), list(stopped.values())
        series.append(Series("pruned trial, when it was stopped", x, y, points=True))
    return LineChart(
        "Value of every trial",
        "A line that has long been flat says that more trials would hardly help.",
        "trial",
        f"validation {metric_name(search.metric)}{unit}",
        series,
    )


def _importance(importances: Mapping[str, float], complete: int) -> tuple[str, *tuple[Chart, ...]]:
    if not importances and complete < _NEEDED:
        are = "is" if complete == 1 else "are"
        return (
            f"Importance is estimated from {_NEEDED} complete trials on; there {are} {complete}.",
        )
    if not importances:
        return ("No importance is known: the complete trials do not differ enough to estimate it.",)
    ranked = sorted(importances.items(), key=lambda item: -item[1])
    chart = BarChart(
        "Share of each setting",
        "An estimate from the complete trials; with few of them it is a rough one.",
        "setting",
        "importance",
        _short([name for name, _ in ranked]),
        [("importance", [share for _, share in ranked])],
        percent=True,
    )
    return "How much of the differences between trials each setting explains.", chart


def _short(names: Sequence[str]) -> list[str]:
    """The last part of each path, which has room below a bar, where no two have the same."""
    last = [name.rpartition(".")[2] for name in names]
    return [end if last.count(end) == 1 else name for end, name in zip(last, names, strict=True)]


def _choices(search: _Search, importances: Mapping[str, float]) -> tuple[str, *tuple[Chart, ...]]:
    """A chart a setting with several choices, the most important first, and one table of all.

    Bars show differences, because bars from zero on would all look alike.
    """
    names = sorted(settings(search.done), key=lambda name: -importances.get(name, 0.0))
    found = {name: by_choice(name, search.done) for name in names}
    several = {name: choices for name, choices in found.items() if len(choices) > 1}
    if not several:
        return ("The complete trials do not differ in any setting.",)
    scale, unit = (100.0, " (points)") if is_share(search.metric) else (1.0, "")
    middle = median(value for _, value in search.done)
    stopped = Counter(
        (name, choice_text(choice))
        for trial in search.trials
        if trial.state in ("pruned", "failed")
        for name, choice in trial.point.items()
    )
    bars, rows = [], []
    for name, choices in several.items():
        best = {choice: search.best(values) for choice, values in choices.items()}
        middles = {choice: median(values) for choice, values in choices.items()}
        bars.append(
            BarChart(
                name,
                "",
                "choice",
                f"difference to the median of all trials{unit}",
                [f"{choice} ({len(values)})" for choice, values in choices.items()],
                [
                    (what, [scale * (value - middle) for value in some.values()])
                    for what, some in (("best", best), ("median", middles))
                ],
            )
        )
        for choice, values in choices.items():
            ends = search.shown(best[choice]), search.shown(middles[choice])
            rows.append([name, choice, str(len(values)), str(stopped[name, choice]), *ends])
    table = DataTable(
        "Every choice",
        "Best and median validation value of the complete trials with that choice.",
        ["setting", "choice", "complete", "pruned or failed", "best", "median"],
        rows,
    )
    text = (
        "What the choices of each setting are worth, whatever the other settings were; in "
        "parentheses the number of complete trials. The search tries what looks good more often, "
        "so a choice with few trials may be underrated."
    )
    charts: list[Chart] = [*bars, table]
    return text, *charts


def _best(search: _Search) -> DataTable:
    done = search.done
    varied = [name for name in settings(done) if len(by_choice(name, done)) > 1]
    columns = varied or settings(done)
    rows = [
        [
            str(trial.number),
            search.shown(value),
            _NOTHING if trial.epochs is None else f"{trial.epochs:,}",
            _NOTHING if trial.seconds is None else seconds(trial.seconds),
            *(choice_text(trial.point[n]) if n in trial.point else _NOTHING for n in columns),
        ]
        for trial, value in search.ranked[:_BEST]
    ]
    count = len(rows)
    return DataTable(
        f"The {count} best of {plural(len(done), 'complete trial')}" if count > 1 else "The trial",
        "Only settings in which trials differ." if varied else "",
        ["trial", "value", "epochs", "time", *columns],
        rows,
    )


def _failures(failed: Sequence[TrialLike]) -> DataTable:
    rows = [
        [
            str(trial.number),
            trial.error or "unknown",
            "; ".join(f"{name}: {choice_text(choice)}" for name, choice in trial.point.items()),
        ]
        for trial in failed[:_FAILED]
    ]
    more = f"The first {_FAILED} of {len(failed):,}." if len(failed) > _FAILED else ""
    return DataTable("Reasons", more, ["trial", "reason", "settings"], rows)
