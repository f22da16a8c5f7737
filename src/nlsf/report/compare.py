"""Several runs side by side: `comparison_page`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nlsf.data.metrics import higher_is_better, interval
from nlsf.errors import ConfigError
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Series
from nlsf.report.numbers import (
    evenly_chosen,
    is_share,
    metric_name,
    metric_spread,
    plural,
    seconds,
    unbroken,
)
from nlsf.report.page import Page
from nlsf.report.runs import Paired, RunRecord, paired
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
    pairs = [paired(name, run, next(iter(done.values()))) for name, run in [*done.items()][1:]]
    if runs:
        page.section("Overview", _result(runs, done, pairs), _overview(runs), *_means(done))
    if failed:
        count = plural(len(failed), "model")
        page.section(
            "Failed",
            f"{count} without a result, and so in none of the other sections.",
            DataTable(
                "Models without a result",
                "What the training said when it stopped.",
                ["model", "reason"],
                [[name, reason] for name, reason in failed.items()],
            ),
        )
    if not runs:
        return page
    for heading, (text, charts) in (
        ("Differences", _differences(done, pairs)),
        ("Learning curves", _curves(runs)),
        ("Settings that differ", _settings(runs)),
        ("Versions that differ", _versions(done)),
    ):
        page.section(heading, text, *charts)
    return page


def _named(runs: Sequence[RunRecord]) -> dict[str, RunRecord]:
    """The runs by the name of their folder; by the whole path where two share it."""
    paths = [run.folder.path.resolve() for run in runs]
    short = [path.name for path in paths]
    return {
        path.name if short.count(path.name) == 1 else str(path): run
        for path, run in zip(paths, runs, strict=True)
    }


def _result(runs: Runs, done: Runs, pairs: Sequence[Paired]) -> str:
    """Which run is best, which differences may be chance, and which runs are not finished."""
    sentences = []
    comparable = [pair for pair in pairs if pair.seeds]
    if comparable:
        first, metric = next(iter(done)), comparable[0].metric
        names = [first, *(pair.name for pair in comparable)]
        means = {name: interval(done[name].known_values("test")) for name in names}
        sign = 1 if higher_is_better(metric) else -1
        best = max(names, key=lambda name: sign * means[name][0])
        found = metric_spread(metric, *means[best])
        sentences.append(f"{best} has the best test {metric_name(metric)}, {found}.")
        unsure = [p.name for p in comparable if p.words()[2] not in ("better", "worse")]
        sentences.append(
            f"The difference to {first} may be chance for {', '.join(unsure)}."
            if unsure
            else f"Every difference to {first} is more than chance would explain."
        )
    unfinished = [name for name in runs if name not in done]
    if unfinished:
        sentences.append(
            f"Unfinished, and so without results: {', '.join(unfinished)}. Finish a run with "
            "nlsf train --resume, then make this page again."
        )
    return " ".join(sentences) or f"{plural(len(runs), 'run')}, all of them finished."


def _overview(runs: Runs) -> DataTable:
    rows = []
    for name, run in runs.items():
        protocol, metric = str(run.settings["protocol"]), run.metric
        row = [name, run.name, run.model, protocol, metric_name(metric), str(len(run.seeds))]
        if run.finished:
            spread = (
                metric_spread(metric, *interval(run.known_values(p))) for p in ("val", "test")
            )
            epoch = f"{np.mean([result['best_epoch'] for result in run.results]):.0f}"
            row += map(unbroken, (*spread, epoch, seconds(run.seconds)))
        else:
            row += ["unfinished", "unfinished", _NOTHING, _NOTHING]
        rows.append(row)
    header = ["run", "data", "model", "protocol", "metric", "seeds", "validation", "test"]
    return DataTable(
        "All runs",
        "Validation and test: the mean over the seeds ± half the width of its 95 % interval, "
        "which one seed does not have. The best epoch is a mean too; the time is that of training "
        "and of preparing the spectrum.",
        [*header, "best epoch", "time"],
        rows,
    )


def _means(runs: Runs) -> list[Chart]:
    """A bar a run with its interval; a chart a metric, because metrics cannot share an axis."""
    charts: list[Chart] = []
    for metric, some in _by_metric(runs):
        found = [interval(run.known_values("test")) for run in some.values()]
        whiskers = [None if math.isnan(h) else (mean - h, mean + h) for mean, h in found]
        better = "higher" if higher_is_better(metric) else "lower"
        charts.append(
            BarChart(
                f"Test {metric_name(metric)}",
                f"The mean over the seeds of each run; {better} is better. The whisker is its "
                "95 % interval: runs whose whiskers overlap may differ by chance only.",
                "run",
                metric_name(metric),
                list(some),
                [("test", [mean for mean, _ in found])],
                percent=is_share(metric),
                ranges=[whiskers],
            )
        )
    return charts


def _by_metric(runs: Runs) -> list[tuple[str, dict[str, RunRecord]]]:
    """The runs of each metric, in the order in which they were named."""
    found: dict[str, dict[str, RunRecord]] = {}
    for name, run in runs.items():
        found.setdefault(run.metric, {})[name] = run
    return list(found.items())


def _differences(runs: Runs, pairs: Sequence[Paired]) -> Content:
    """Every run against the first one, seed by seed: a table, and a bar a seed and run."""
    if not pairs:
        return "Differences need two finished runs.", []
    first, metric = next(iter(runs)), pairs[0].metric
    text = (
        f"Every run minus {first}, on the seeds that both have with the same split. Runs that were "
        "measured on the same examples are compared more sharply so than by their means alone."
    )
    table = DataTable(
        f"Difference to {first}",
        "The mean over common seeds and its 95 % interval. An interval without 0 says that the "
        "difference is hardly chance.",
        ["run", "common seeds", "mean difference", "95 % interval", "what that means"],
        [
            [pair.name, str(len(pair.seeds)), unbroken(mean), unbroken(ends), verdict]
            for pair in pairs
            for mean, ends, verdict in [pair.words()]
        ],
    )
    seeds = sorted({seed for pair in pairs for seed in pair.seeds})[:_SEEDS]
    if not seeds:
        return text, [table]
    by_seed = {p.name: dict(zip(p.seeds, p.differences, strict=True)) for p in pairs if p.seeds}
    bars = BarChart(
        "Difference seed by seed",
        f"Test {metric_name(metric)} of a run minus that of {first}, on one split after the other. "
        "Bars that all point one way are a difference that does not depend on the split.",
        "seed",
        f"difference in {metric_name(metric)}",
        [str(seed) for seed in seeds],
        [(name, [found.get(seed) for seed in seeds]) for name, found in by_seed.items()],
        percent=is_share(metric),
    )
    return text, [table, bars]


def _curves(runs: Runs) -> Content:
    charts: list[Chart] = []
    metrics = _by_metric({name: run for name, run in runs.items() if run.metrics})
    for metric, some in metrics:
        others = f" of runs that report {metric_name(metric)}" if len(metrics) > 1 else ""
        for key, words in (
            (f"val_{metric}", f"validation {metric_name(metric)}"),
            ("val_loss", "validation loss"),
            ("train_loss", "training loss"),
        ):
            series = [_mean_curve(name, run, key) for name, run in some.items()]
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
    shown = evenly_chosen(length)
    values = [float(mean[i]) if count[i] else None for i in shown]
    return Series(name, [int(i) + 1 for i in shown], values)


def _settings(runs: Runs) -> Content:
    tables = {
        name: {key: _text(value) for key, value in flat(run.settings)} for name, run in runs.items()
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
