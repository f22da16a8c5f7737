"""Where a model is wrong: confusion of classes, residuals of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from nlsf.report.charts import BarChart, Chart, HeatMap, LineChart, Series
from nlsf.report.reduce import histogram, thinned
from nlsf.report.trained import TrainedRun

_TARGETS = 6
"""Targets of a regression that are shown."""


def error_charts(run: TrainedRun) -> list[Chart]:
    """What the model says of the test examples, against what is true."""
    output, y = run.test_output, run.test_labels
    if run.dataset.is_regression:
        return regression_charts(output, y)
    return confusion_charts(output.argmax(-1), y, run.dataset.classes)


def confusion(predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """(C, C), int64: how many examples of each class (row) were given each class (column)."""
    cells = torch.bincount(y * num_classes + predicted, minlength=num_classes**2)
    return cells.reshape(num_classes, num_classes)


def confusion_charts(predicted: Tensor, y: Tensor, classes: Sequence[str]) -> list[Chart]:
    """The confusion matrix as shares of each class, and what of each class was found.

    Args:
        predicted: (n,), the class that the model names.
        y: (n,), the true one.
        classes: their names.
    """
    counts = confusion(predicted, y, len(classes))
    total = counts.sum(1)
    shares = counts / total.clamp(min=1).unsqueeze(1)
    rows = [f"{name} ({int(n):,})" for name, n in zip(classes, total, strict=True)]
    found = [float(share) if n else None for share, n in zip(shares.diagonal(), total, strict=True)]
    right = [
        int(hits) / int(n) if n else None
        for hits, n in zip(counts.diagonal(), counts.sum(0), strict=True)
    ]
    return [
        HeatMap(
            "Confusion",
            "Each row is a true class, with the number of its test examples; the colours say which "
            "share of it was given which class. All would be right if only the diagonal had "
            "colour; a strong cell beside it is a pair of classes that the model mixes up.",
            "predicted class",
            "true class",
            list(classes),
            rows,
            [
                row.tolist() if n else [None] * len(classes)
                for row, n in zip(shares, total, strict=True)
            ],
            kind="share",
        ),
        BarChart(
            "Class by class",
            "Found: the share of the examples of a class that were recognised. Right: the share of "
            "the examples given a class that belong to it. A rare class with low bars hides behind "
            "a good accuracy.",
            "class",
            "share",
            list(classes),
            [("found (recall)", found), ("right (precision)", right)],
            percent=True,
        ),
    ]


def regression_charts(output: Tensor, y: Tensor) -> list[Chart]:
    """Predicted against true numbers, and the distribution of the differences.

    Args:
        output: (n, T).
        y: (n, T).
    """
    charts: list[Chart] = []
    shown = min(y.shape[1], _TARGETS)
    for target in range(shown):
        of = f" of target {target + 1}" if y.shape[1] > 1 else ""
        charts += [
            _scatter(output[:, target], y[:, target], of),
            _residuals(output[:, target] - y[:, target], of),
        ]
    return charts


def _scatter(output: Tensor, y: Tensor, of: str) -> LineChart:
    chosen = torch.from_numpy(thinned(len(y)))
    ends = [float(y.min()), float(y.max())]
    cut = f" {len(chosen):,} of {len(y):,} are drawn." if len(chosen) < len(y) else ""
    return LineChart(
        f"Predicted and true values{of}",
        "Each point is a test example. On the line the prediction is exact; a cloud flatter than "
        f"the line means that the model pulls its predictions to the mean.{cut}",
        "true value",
        "predicted value",
        [
            Series("test examples", y[chosen].tolist(), output[chosen].tolist(), points=True),
            Series("exact", ends, ends),
        ],
    )


def _residuals(difference: Tensor, of: str) -> BarChart:
    edges, counts = histogram(difference, bins=31)
    middles = [f"{(a + b) / 2:.3g}" for a, b in pairwise(edges)]
    return BarChart(
        f"Errors{of}",
        "How often the prediction is off by how much. The bars should stand around 0; if they lean "
        "to one side, the model is systematically too low or too high.",
        "predicted minus true (middle of the bin)",
        "test examples",
        middles,
        [("test examples", counts)],
    )
