"""How well a run did: overview, learning curves, times."""

from __future__ import annotations

import math
from typing import Any

from nlsf.data.metrics import interval
from nlsf.report.charts import BarChart, Chart, LineChart, Series, Tiles
from nlsf.report.record import RunRecord
from nlsf.report.reduce import thinned
from nlsf.report.wording import (
    is_share,
    metric_name,
    metric_value,
    plural,
    seconds,
)

_OTHERS = 10
"""Seeds that are drawn besides the shown one."""

_BARS = 60
"""Seeds that have room for bars."""


def overview_charts(record: RunRecord) -> list[Chart]:
    """The headline numbers, and a bar a seed."""
    charts: list[Chart] = [Tiles(_tiles(record))]
    if len(record.results) > 1:
        charts.append(_seed_bars(record))
    return charts


def learning_curves(record: RunRecord) -> list[Chart]:
    """Losses, and the monitored metric, over the epochs; no charts before the first epoch."""
    rows = record.epochs(record.seed)
    if not rows:
        return []
    best = max((row["epoch"] for row in rows if row["best"]), default=None)
    marks = [] if best is None else [(float(best), f"best epoch: {best}")]
    loss = [
        _curve(rows, "train_loss", f"training, seed {record.seed}"),
        _curve(rows, "val_loss", f"validation, seed {record.seed}"),
        *_other_curves(record, "val_loss"),
    ]
    name = metric_name(record.metric)
    measured = [
        _curve(rows, f"val_{record.metric}", f"validation, seed {record.seed}"),
        *_other_curves(record, f"val_{record.metric}"),
    ]
    faint = " Faint lines are other seeds." if len(loss) > 2 else ""
    averaged = record.table.get("training", {}).get("average", 0) > 0
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
            measured,
            marks=marks,
        ),
    ]


def timing_charts(record: RunRecord) -> list[Chart]:
    """What took how long."""
    training = record.training()
    preparing = float(record.results[0]["prepare_seconds"])
    epochs = sum(row["epochs"] for row in record.results)
    together = max(row["together"] for row in record.results)
    return [
        BarChart(
            "Time",
            "Preparation computes the eigenvectors of the graph and what else stays the same in "
            "all epochs, once for all models; spectra that were on disk already cost nothing. "
            f"Training took {seconds(training)} for {plural(len(record.results), 'model')} with "
            f"{epochs:,} epochs in all{_together(together)}: "
            f"{1000 * training / max(epochs, 1):.3g} ms an epoch and model.{_cost(record)}",
            "part of the run",
            "seconds",
            ["preparation", "training"],
            [("seconds", [preparing, training])],
        )
    ]


def _cost(record: RunRecord) -> str:
    """What the processor and the memory had to do with it; older rows do not tell."""
    cpu = record.training("cpu_seconds")
    peaks = [row["peak_memory"] for row in record.results if row.get("peak_memory") is not None]
    text = ""
    if not math.isnan(cpu):
        text += f" The processors worked {seconds(cpu)} for it, all threads added up."
    if peaks:
        text += (
            f" The process held at most {max(peaks) / 1e6:,.0f} MB of memory, with all that it had "
            "done before."
        )
    return text


def _together(count: int) -> str:
    return f", up to {count} models computed together" if count > 1 else ""


def binomial_noise(accuracy: float, examples: int) -> float:
    """Half the width of the 95 % interval of an accuracy measured on so many examples."""
    return 1.96 * math.sqrt(max(accuracy * (1 - accuracy), 0.0) / max(examples, 1))


def _tiles(record: RunRecord) -> list[tuple[str, str, str]]:
    metric, row = record.metric, record.result
    name = metric_name(metric)
    count = len(record.results)
    sizes = row["sizes"]
    tests = [one[f"test_{metric}"] for one in record.results]
    vals = [one[f"val_{metric}"] for one in record.results]
    spent = seconds(record.training())
    many = f"mean of {count} seeds and its 95 % interval"
    test_note = many if count > 1 else f"on {plural(sizes[2], 'example')} not used for training"
    if metric == "accuracy":  # a share of counted examples, so it is never missing
        noise = 100 * binomial_noise(interval(tests)[0], sizes[2])
        test_note += (
            f"; {sizes[2]:,} other test examples could move it by ± {noise:.1f} points by chance"
        )
    return [
        (f"Test {name}", _mean(metric, tests), test_note),
        (
            f"Validation {name}",
            _mean(metric, vals),
            "on the examples that chose the epoch, so it flatters",
        ),
        ("Seeds", f"{count}", _seed_note(record)),
        (
            "Examples",
            " / ".join(f"{size:,}" for size in sizes),
            f"training / validation / test, protocol {row['protocol']}",
        ),
        ("Training", spent, f"best epoch {row['best_epoch']} of {row['epochs']}"),
        ("Preparation", seconds(row["prepare_seconds"]), "spectra and features, once"),
    ]


def _seed_note(record: RunRecord) -> str:
    if len(record.results) == 1:
        return f"one model, of seed {record.seed}; several would show the spread"
    return f"models, each with its own start; details below are of seed {record.seed}"


def _mean(metric: str, values: list[float | None]) -> str:
    """The mean with its interval; a single model that failed makes it unknown."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return metric_value(metric, None)
    mean, half = interval(known)
    if not math.isfinite(half):
        return metric_value(metric, mean)
    if is_share(metric):
        return f"{100 * mean:.2f} ± {100 * half:.2f} %"
    return f"{mean:.4g} ± {half:.2g}"


def _seed_bars(record: RunRecord) -> BarChart:
    metric, rows = record.metric, record.results[:_BARS]
    name = metric_name(metric)
    more = len(record.results) - len(rows)
    return BarChart(
        "Every seed",
        f"{name.capitalize()} of every model. Seeds differ in the start of the weights and, with "
        "most protocols, in the split: their spread shows how much a single number means."
        + (f" {more:,} more seeds are not shown." if more else ""),
        "seed",
        name,
        [str(row["seed"]) for row in rows],
        [
            ("validation", [row[f"val_{metric}"] for row in rows]),
            ("test", [row[f"test_{metric}"] for row in rows]),
        ],
        percent=is_share(metric),
    )


def _curve(rows: list[dict[str, Any]], key: str, name: str, *, faint: bool = False) -> Series:
    best = [i for i, row in enumerate(rows) if row["best"]][-1:]
    chosen = thinned(len(rows), *best)
    epochs = [float(rows[i]["epoch"]) for i in chosen]
    return Series(name, epochs, [rows[i].get(key) for i in chosen], faint=faint)


def _other_curves(record: RunRecord, key: str) -> list[Series]:
    others = [seed for seed in record.seeds if seed != record.seed][:_OTHERS]
    curves = []
    for seed in others:
        rows = record.epochs(seed)
        if rows:
            chosen = thinned(len(rows), limit=300)
            some = [rows[i] for i in chosen]
            curves.append(_curve(some, key, f"validation, seed {seed}", faint=True))
    return curves
