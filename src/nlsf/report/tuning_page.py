"""How a search for settings went: `tuning_page`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from nlsf.data.metrics import higher_is_better
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Series, Tiles
from nlsf.report.page import Page
from nlsf.report.tuning_choices import (
    Done,
    TrialLike,
    by_choice,
    choice_charts,
    choice_text,
    settings,
    unbroken,
)
from nlsf.report.wording import is_share, metric_name, metric_value, plural, seconds

_BEST = 10
"""Trials in the table of the best."""

_FAILED = 50
"""Failed trials that are listed."""

_NEEDED = 4
"""Complete trials from which on importance is estimated."""

_STATES = ("complete", "pruned", "failed", "running", "waiting")
_NOTHING = "-"

_HISTORY = "What each trial reached, and the best one until then."
_CHOICES = (
    "What the choices of each setting are worth, whatever the other settings were; in parentheses "
    "the number of complete trials. The search tries what looks good more often, so a choice with "
    "few trials may be underrated."
)
_ONE_CHOICE = "The complete trials do not differ in any setting."
_AGREE = "Settings that the best trials agree on are likely to matter."
_NO_VALUE = "Trials whose model could not be built or trained; they have no value."


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
    trials = sorted(trials, key=lambda trial: trial.number)
    done = [
        (trial, trial.value)
        for trial in trials
        if trial.state == "complete" and trial.value is not None and math.isfinite(trial.value)
    ]
    failed = [trial for trial in trials if trial.state == "failed"]
    page = Page(title, f"{plural(len(trials), 'trial')}, validation {metric_name(metric)}")
    page.section("Overview", _overview(metric, trials, done), _tiles(metric, trials, done))
    if done:
        page.section("History", _HISTORY, _history(metric, trials, done))
        page.section("Importance", *_importance(importances, len(done)))
        choices = choice_charts(metric, trials, done, importances)
        page.section("Choices", _CHOICES if choices else _ONE_CHOICE, *choices)
        page.section("Best trials", _AGREE if len(done) > 1 else "", _best(metric, done))
    if failed:
        page.section("Failed trials", _NO_VALUE, _failures(failed))
    return page


def _overview(metric: str, trials: Sequence[TrialLike], done: Done) -> str:
    if not done:
        return "No trial is complete, so nothing is known about the settings yet."
    best, value = _ranked(metric, done)[0]
    default = _default(trials, done)
    start = (
        f"The best validation {metric_name(metric)} is {metric_value(metric, value)}, "
        f"of trial {best.number}."
    )
    if default is None:
        return f"{start} The defaults have no value to compare it with."
    if value == default:
        return f"{start} No trial was better than the defaults."
    gain = abs(value - default)
    amount = f"{100 * gain:.2f} points" if is_share(metric) else f"{gain:.4g}"
    return (
        f"{start} That is {amount} better than the defaults. The best of many trials is in part "
        "the luckiest one: only test examples tell what the choice is worth."
    )


def _tiles(metric: str, trials: Sequence[TrialLike], done: Done) -> Tiles:
    counts = Counter(trial.state for trial in trials)
    states = ", ".join(f"{counts[state]:,} {state}" for state in _STATES if counts[state])
    workers = len({trial.worker for trial in trials if trial.worker is not None})
    times = [trial.seconds for trial in trials if trial.seconds is not None]
    default = _default(trials, done)
    ranked = _ranked(metric, done)
    return Tiles(
        [
            (
                f"Best validation {metric_name(metric)}",
                metric_value(metric, ranked[0][1]) if ranked else "none",
                f"found in trial {ranked[0][0].number}; mean over the splits of the search"
                if ranked
                else "no trial is complete",
            ),
            (
                "Defaults",
                metric_value(metric, default),
                "what trial 0 found, without any search",
            ),
            ("Trials", f"{len(trials):,}", states),
            (
                "Time",
                seconds(sum(times)) if times else "unknown",
                "of all trials together"
                + (f", {plural(workers, 'worker')}" if workers else "")
                + (f"; {seconds(median(times))} for one, in the median" if times else ""),
            ),
        ]
    )


def _default(trials: Sequence[TrialLike], done: Done) -> float | None:
    """The value of the first trial's point, which another trial has where the first was lost."""
    if not trials or trials[0].number != 0:
        return None
    return next((value for trial, value in done if trial.point == trials[0].point), None)


def _ranked(metric: str, done: Done) -> Done:
    sign = -1 if higher_is_better(metric) else 1
    return sorted(done, key=lambda pair: (sign * pair[1], pair[0].number))


def _scale(metric: str) -> tuple[float, str]:
    return (100.0, " (%)") if is_share(metric) else (1.0, "")


def _history(metric: str, trials: Sequence[TrialLike], done: Done) -> LineChart:
    scale, unit = _scale(metric)
    better = max if higher_is_better(metric) else min
    best: list[float] = []
    for _, value in done:
        best.append(better(best[-1], value) if best else value)
    numbers = [float(trial.number) for trial, _ in done]
    series = [
        Series("complete trial", numbers, [scale * value for _, value in done], points=True),
        Series("best so far", numbers, [scale * value for value in best]),
    ]
    pruned = [trial for trial in trials if trial.state == "pruned" and trial.value is not None]
    if pruned:
        values = [None if t.value is None else scale * t.value for t in pruned]
        x = [float(trial.number) for trial in pruned]
        series.append(Series("pruned trial, when it was stopped", x, values, points=True))
    name = f"validation {metric_name(metric)}{unit}"
    return LineChart(
        "Value of every trial",
        "A line that has long been flat says that more trials would hardly help.",
        "trial",
        name,
        series,
    )


def _importance(importances: Mapping[str, float], complete: int) -> tuple[str, *tuple[Chart, ...]]:
    if not importances:
        if complete < _NEEDED:
            return (
                f"Importance is estimated from {_NEEDED} complete trials on; there "
                f"{'is' if complete == 1 else 'are'} {complete}.",
            )
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


def _best(metric: str, done: Done) -> DataTable:
    varied = [name for name in settings(done) if len(by_choice(name, done)) > 1]
    columns = varied or settings(done)
    rows = [
        [
            str(trial.number),
            unbroken(metric, value),
            _NOTHING if trial.epochs is None else f"{trial.epochs:,}",
            _NOTHING if trial.seconds is None else seconds(trial.seconds),
            *(choice_text(trial.point[n]) if n in trial.point else _NOTHING for n in columns),
        ]
        for trial, value in _ranked(metric, done)[:_BEST]
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
    more = f" The first {_FAILED} of {len(failed):,}." if len(failed) > _FAILED else ""
    return DataTable("Reasons", more.strip(), ["trial", "reason", "settings"], rows)
