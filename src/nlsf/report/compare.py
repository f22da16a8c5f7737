"""Several runs side by side: `comparison_page`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from nlsf.data.metrics import higher_is_better, interval
from nlsf.errors import ConfigError
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Series
from nlsf.report.page import Page
from nlsf.report.paired import Paired, paired
from nlsf.report.ranking import known_values, run_seconds
from nlsf.report.record import RunRecord
from nlsf.report.reduce import thinned
from nlsf.report.wording import is_share, metric_name, metric_value, plural, seconds
from nlsf.train.run.folder import RunFolder
from nlsf.train.settings.toml import flat

Runs = Mapping[str, RunRecord]
"""Runs by the name that the page gives them."""

Content = tuple[str, list[Chart]]
"""The sentences and charts of a section."""

_NOTHING = "-"
_LONG = 24
"""Characters of a version, which may be the 40 of a commit."""

_SEEDS = 100
"""Seeds whose differences are drawn; the table has all."""


def comparison_page(folders: Sequence[RunFolder], failed: Mapping[str, str] | None = None) -> Page:
    """A page that compares runs, finished or not, with the first one of them.

    Args:
        folders: of the runs; one that is named twice counts once.
        failed: why a model has no run to show, by its name.

    Raises:
        ConfigError: runs and failed models are not two in all.
        FormatError: a row of results or metrics lacks a key.
    """
    unique = {folder.path.resolve(): folder for folder in folders}
    failed = failed or {}
    if len(unique) + len(failed) < 2:
        raise ConfigError("A comparison needs at least two runs: name another run folder.")
    runs = _named([RunRecord.read(folder) for folder in unique.values()])
    done = {name: run for name, run in runs.items() if run.finished}
    page = Page("Comparison of runs", ", ".join([*runs, *failed]))
    if runs:
        page.section("Overview", _finished_text(runs), _overview(runs), *_means(done))
    if failed:
        page.section("Failed", *_failures(failed))
    if not runs:
        return page
    for heading, (text, charts) in (
        ("Differences", _differences(done)),
        ("Learning curves", _curves(runs)),
        ("Settings that differ", _settings(runs)),
        ("Versions that differ", _versions(done)),
    ):
        page.section(heading, text, *charts)
    return page


def _named(runs: Sequence[RunRecord]) -> dict[str, RunRecord]:
    """The runs by the name of their folder; by the whole path where two share it."""
    short = [run.folder.path.resolve().name for run in runs]
    return {
        name if short.count(name) == 1 else str(run.folder.path.resolve()): run
        for name, run in zip(short, runs, strict=True)
    }


def _finished_text(runs: Runs) -> str:
    open_ones = [name for name, run in runs.items() if not run.finished]
    if not open_ones:
        return f"{plural(len(runs), 'run')}, all of them finished."
    return (
        f"Unfinished, and so without results: {', '.join(open_ones)}. Finish a run with "
        "nlsf train --resume, then make this page again."
    )


def _failures(failed: Mapping[str, str]) -> tuple[str, DataTable]:
    text = f"{plural(len(failed), 'model')} without a result, and so in none of the other sections."
    table = DataTable(
        "Models without a result",
        "What the training said when it stopped.",
        ["model", "reason"],
        [[name, reason] for name, reason in failed.items()],
    )
    return text, table


def _overview(runs: Runs) -> DataTable:
    header = ["run", "data", "model", "protocol", "metric", "seeds", "validation", "test"]
    return DataTable(
        "All runs",
        "Validation and test: the mean over the seeds +- half the width of its 95 % interval, "
        "which one seed does not have. The best epoch is a mean too; the time is that of training "
        "and of preparing the spectrum.",
        [*header, "best epoch", "time"],
        [_overview_row(name, run) for name, run in runs.items()],
    )


def _overview_row(name: str, run: RunRecord) -> list[str]:
    protocol = str(run.table["protocol"])
    row = [name, run.name, run.model, protocol, metric_name(run.metric), str(len(run.seeds))]
    if not run.finished:
        return [*row, *["unfinished"] * 2, _NOTHING, _NOTHING]
    best = [row["best_epoch"] for row in run.results]
    return [
        *row,
        _spread(run.metric, known_values(run, "val")),
        _spread(run.metric, known_values(run, "test")),
        f"{np.mean(best):.0f}",
        seconds(run_seconds(run)),
    ]


def _spread(metric: str, values: Sequence[float]) -> str:
    mean, half = interval(values)
    more = "" if math.isnan(half) else f" +- {metric_value(metric, half)}"
    return metric_value(metric, mean) + more


def _means(runs: Runs) -> list[Chart]:
    """A bar a run with its interval; a chart a metric, because metrics cannot share an axis."""
    charts: list[Chart] = []
    for metric, group in _by_metric(runs):
        found = [interval(known_values(run, "test")) for run in group.values()]
        whiskers = [
            None if math.isnan(half) else (mean - half, mean + half) for mean, half in found
        ]
        better = "higher" if higher_is_better(metric) else "lower"
        charts.append(
            BarChart(
                f"Test {metric_name(metric)}",
                f"The mean over the seeds of each run; {better} is better. The whisker is its "
                "95 % interval: runs whose whiskers overlap may differ by chance only.",
                "run",
                metric_name(metric),
                list(group),
                [("test", [_known(mean) for mean, _ in found])],
                percent=is_share(metric),
                ranges=[whiskers],
            )
        )
    return charts


def _by_metric(runs: Runs) -> list[tuple[str, dict[str, RunRecord]]]:
    """The runs of each metric, in the order in which they were named."""
    order = list(dict.fromkeys(run.metric for run in runs.values()))
    ranked = sorted(runs.items(), key=lambda item: order.index(item[1].metric))
    return [(metric, dict(group)) for metric, group in groupby(ranked, lambda i: i[1].metric)]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _differences(runs: Runs) -> Content:
    """Every run against the first one, seed by seed."""
    if len(runs) < 2:
        return "Differences need two finished runs.", []
    (first, base), *others = runs.items()
    found = [paired(name, run, base) for name, run in others]
    text = (
        f"Every run minus {first}, on the seeds that both have with the same split. Runs that were "
        "measured on the same examples are compared more sharply so than by their means alone."
    )
    table = DataTable(
        f"Difference to {first}",
        "The mean over common seeds and its 95 % interval. An interval without 0 says that the "
        "difference is hardly chance.",
        ["run", "common seeds", "mean difference", "95 % interval", "what that means"],
        [[pair.name, str(len(pair.seeds)), *pair.words()] for pair in found],
    )
    return text, [table, *_difference_charts(first, base.metric, [p for p in found if p.seeds])]


def _difference_charts(first: str, metric: str, found: Sequence[Paired]) -> list[Chart]:
    """A group of bars a seed, a bar a run."""
    seeds = sorted({seed for pair in found for seed in pair.seeds})[:_SEEDS]
    if not seeds:
        return []
    series = []
    for pair in found:
        by_seed = dict(zip(pair.seeds, pair.differences, strict=True))
        series.append((pair.name, [by_seed.get(seed) for seed in seeds]))
    caption = (
        f"Test {metric_name(metric)} of a run minus that of {first}, on one split after the other. "
        "Bars that all point one way are a difference that does not depend on the split."
    )
    names = [str(seed) for seed in seeds]
    title, label = "Difference seed by seed", f"difference in {metric_name(metric)}"
    return [BarChart(title, caption, "seed", label, names, series, percent=is_share(metric))]


def _curves(runs: Runs) -> Content:
    charts: list[Chart] = []
    groups = _by_metric({name: run for name, run in runs.items() if run.metrics})
    for metric, group in groups:
        others = f" of runs that report {metric_name(metric)}" if len(groups) > 1 else ""
        for key, words in (
            (f"val_{metric}", f"validation {metric_name(metric)}"),
            ("val_loss", "validation loss"),
            ("train_loss", "training loss"),
        ):
            series = [_mean_curve(name, run, key) for name, run in group.items()]
            caption = (
                f"The {words} after every epoch, mean over the seeds of a run. A seed that has "
                "stopped counts with its last value."
            )
            title = words[0].upper() + words[1:]
            charts.append(LineChart(title + others, caption, "epoch", words, series))
    return ("" if charts else "No run has trained an epoch yet."), charts


def _mean_curve(name: str, run: RunRecord, key: str) -> Series:
    curves: dict[int, list[float | None]] = {}
    for row in run.metrics:
        curves.setdefault(row["seed"], []).append(row.get(key))
    length = max(map(len, curves.values()))
    rows = [curve + [curve[-1]] * (length - len(curve)) for curve in curves.values()]
    table = np.array(rows, dtype=np.float64)
    known = ~np.isnan(table)
    count = known.sum(0)
    mean = np.where(known, table, 0).sum(0) / np.maximum(count, 1)
    shown = thinned(length)
    values = [float(mean[i]) if count[i] else None for i in shown]
    return Series(name, [int(i) + 1 for i in shown], values)


def _settings(runs: Runs) -> Content:
    tables = {
        name: {key: _text(value) for key, value in flat(run.table)} for name, run in runs.items()
    }
    return _differing(tables, "setting", "All settings are the same.")


def _versions(runs: Runs) -> Content:
    tables = {
        name: {key: str(value)[:_LONG] for key, value in run.results[0]["versions"].items()}
        for name, run in runs.items()
    }
    return _differing(tables, "version", "All finished runs used the same versions.")


def _differing(tables: Mapping[str, dict[str, str]], what: str, same: str) -> Content:
    """A table of the keys whose values are not the same in all tables."""
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    rows = [[key, *(table.get(key, _NOTHING) for table in tables.values())] for key in keys]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    if not rows:
        return same, []
    caption = f"Only what differs; {_NOTHING} where a run does not have the {what}."
    return "", [DataTable(f"Each {what}, run by run", caption, [what, *tables], rows)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
