"""What a run has written down, as charts: results, learning curves, times, settings."""

from __future__ import annotations

import math
from typing import Any

from nlsf.data.metrics import interval
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Series, Tiles
from nlsf.report.numbers import (
    evenly_chosen,
    is_share,
    metric_name,
    metric_spread,
    plural,
    seconds,
)
from nlsf.report.runs import RunRecord
from nlsf.train.settings.toml import flat

_OTHERS = 10
"""Seeds that are drawn besides the shown one."""

_BARS = 60
"""Seeds that have room for bars."""

_LONG = 200
"""Characters of a setting that are shown."""


def overview_charts(record: RunRecord) -> list[Chart]:
    """The headline numbers, and a bar a seed."""
    metric, row, name = record.metric, record.result, metric_name(record.metric)
    count, sizes = len(record.results), row["sizes"]
    note = f"mean of {count} seeds and its 95 % interval"
    seed_note = f"models, each with its own start; details below are of seed {record.seed}"
    if count == 1:
        note = f"on {plural(sizes[2], 'example')} not used for training"
        seed_note = f"one model, of seed {record.seed}; several would show the spread"
    if metric == "accuracy":  # a share of counted examples, so it is never missing
        noise = 100 * binomial_noise(interval(record.known_values("test"))[0], sizes[2])
        note += (
            f"; {sizes[2]:,} other test examples could move it by ± {noise:.1f} points by chance"
        )
    flatters = "on the examples that chose the epoch, so it flatters"
    parts = f"training / validation / test, protocol {row['protocol']}"
    epochs = f"best epoch {row['best_epoch']} of {row['epochs']}"
    tiles = Tiles(
        [
            (f"Test {name}", mean_text(record, "test"), note),
            (f"Validation {name}", mean_text(record, "val"), flatters),
            ("Seeds", f"{count}", seed_note),
            ("Examples", " / ".join(f"{size:,}" for size in sizes), parts),
            ("Training", seconds(record.training()), epochs),
            ("Preparation", seconds(row["prepare_seconds"]), "spectra and features, once"),
        ]
    )
    return [tiles, _seed_bars(record)] if count > 1 else [tiles]


def overview_text(record: RunRecord) -> str:
    """The result, and how sure it is, in one or two sentences."""
    metric, row, count = record.metric, record.result, len(record.results)
    text = f"The test {metric_name(metric)} is {mean_text(record, 'test')}"
    if count > 1:
        return f"{text}, the mean of {count} seeds with its 95 % interval."
    if metric != "accuracy":
        return f"{text}, of one seed: others would show how far chance moves it."
    noise = 100 * binomial_noise(row["test_accuracy"], row["sizes"][2])
    return f"{text}, of one seed. Other test examples could move it by ± {noise:.1f} points."


def binomial_noise(accuracy: float, examples: int) -> float:
    """Half the width of the 95 % interval of an accuracy measured on so many examples."""
    return 1.96 * math.sqrt(max(accuracy * (1 - accuracy), 0.0) / max(examples, 1))


def mean_text(record: RunRecord, part: str) -> str:
    """The mean over the seeds with its interval; one model that failed makes it unknown."""
    known = record.known_values(part)
    complete = len(known) == len(record.results)
    return metric_spread(record.metric, *(interval(known) if complete else (None,)))


def learning_curves(record: RunRecord) -> list[Chart]:
    """Losses, and the monitored metric, over the epochs; no charts before the first epoch."""
    rows = record.epochs(record.seed)
    if not rows:
        return []
    best = max((row["epoch"] for row in rows if row["best"]), default=None)
    marks = [] if best is None else [(float(best), f"best epoch: {best}")]
    name, measure = metric_name(record.metric), f"val_{record.metric}"
    loss = [
        _curve(rows, "train_loss", f"training, seed {record.seed}"),
        *_validation_curves(record, "val_loss"),
    ]
    faint = " Faint lines are other seeds." if len(loss) > 2 else ""
    averaged = record.settings.get("training", {}).get("average", 0) > 0
    mean = ", averaged over the epochs before it," if averaged else ""
    return [
        LineChart(
            "Loss",
            "The loss is what training makes small. Training examples are learned from; validation "
            "examples only tell when to stop. Where the validation loss rises while the training "
            "loss still falls, the model learns by heart. The training loss is measured while the "
            f"epoch runs, with dropout if there is any, so it can lie above the other.{faint}",
            "epoch",
            "loss",
            loss,
            marks=marks,
        ),
        LineChart(
            f"Validation {name}",
            f"The weights of the best epoch on the validation examples{mean} are kept.{faint}",
            "epoch",
            name,
            _validation_curves(record, measure),
            marks=marks,
        ),
    ]


def timing_charts(record: RunRecord) -> list[Chart]:
    """What took how long."""
    training, cpu = record.training(), record.training("cpu_seconds")
    epochs = sum(row["epochs"] for row in record.results)
    together = max(row["together"] for row in record.results)
    peaks = [row["peak_memory"] for row in record.results if row.get("peak_memory") is not None]
    text = (
        "Preparation computes the eigenvectors of the graph and what else stays the same in all "
        "epochs, once for all models; spectra that were on disk already cost nothing. Training "
        f"took {seconds(training)} for {plural(len(record.results), 'model')} with {epochs:,} "
        "epochs in all"
    )
    text += f", up to {together} models computed together" if together > 1 else ""
    one = training / max(epochs, 1)
    text += f": {f'{1000 * one:.3g} ms' if one < 0.9995 else seconds(one)} an epoch and model."
    if not math.isnan(cpu):  # older rows do not tell
        text += f" The processors worked {seconds(cpu)} for it, all threads added up."
    if peaks:
        text += (
            f" The process held at most {max(peaks) / 1e6:,.0f} MB of memory, with all that it had "
            "done before."
        )
    spent = [float(record.results[0]["prepare_seconds"]), training]
    parts = ["preparation", "training"]
    return [BarChart("Time", text, "part of the run", "seconds", parts, [("seconds", spent)])]


def settings_charts(record: RunRecord) -> list[Chart]:
    """All settings, and what the numbers were computed with."""
    charts: list[Chart] = [
        DataTable(
            "Settings",
            "Everything that defines the run: config.toml in its folder holds the same.",
            ["key", "value"],
            [[key, setting_text(value)] for key, value in flat(record.settings)],
        )
    ]
    if record.finished:
        row = record.result
        identity = {
            **row["versions"],
            "hash of the settings": row["spec"],
            f"hash of the split of seed {record.seed}": row["split"],
        }
        charts.append(
            DataTable(
                "Versions",
                "What the numbers were computed with. Runs with equal hashes of their splits were "
                "measured on the same examples.",
                ["what", "which"],
                [[key, str(value)] for key, value in identity.items()],
            )
        )
    return charts


def setting_text(value: Any) -> str:
    """A value as in TOML, cut where it is long.

    Example:
        >>> setting_text(True), setting_text([1, 2]), setting_text("none")
        ('true', '[1, 2]', 'none')
    """
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) <= _LONG:
        return text
    entries = f" ({len(value):,} entries)" if isinstance(value, list) else ""
    return f"{text[:_LONG]} ...{entries}"


def _seed_bars(record: RunRecord) -> BarChart:
    metric, rows = record.metric, record.results[:_BARS]
    name, more = metric_name(metric), len(record.results) - len(rows)
    parts = {"validation": f"val_{metric}", "test": f"test_{metric}"}
    return BarChart(
        "Every seed",
        f"{name.capitalize()} of every model. Seeds differ in the start of the weights and, with "
        "most protocols, in the split: their spread shows how much a single number means."
        + (f" {more:,} more seeds are not shown." if more else ""),
        "seed",
        name,
        [str(row["seed"]) for row in rows],
        [(part, [row[key] for row in rows]) for part, key in parts.items()],
        percent=is_share(metric),
    )


def _curve(rows: list[dict[str, Any]], key: str, name: str, *, faint: bool = False) -> Series:
    best = [i for i, row in enumerate(rows) if row["best"]][-1:]
    chosen = evenly_chosen(len(rows), *best)
    epochs = [float(rows[i]["epoch"]) for i in chosen]
    return Series(name, epochs, [rows[i].get(key) for i in chosen], faint=faint)


def _validation_curves(record: RunRecord, key: str) -> list[Series]:
    """The curve of the shown seed, and faint ones of some others."""
    shown = record.seed
    curves = [_curve(record.epochs(shown), key, f"validation, seed {shown}")]
    for seed in [seed for seed in record.seeds if seed != shown][:_OTHERS]:
        rows = record.epochs(seed)
        some = [rows[i] for i in evenly_chosen(len(rows), limit=300)]
        if rows:
            curves.append(_curve(some, key, f"validation, seed {seed}", faint=True))
    return curves
