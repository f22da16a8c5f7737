"""How good predictions are: `loss`, `measure`, `score`, `interval`, `best_seed`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nlsf.data.dataset import Metric
from nlsf.errors import ConfigError, unknown_name

METRICS: tuple[str, ...] = get_args(Metric)
_ERRORS = ("rmse", "mae")


def default_metrics(is_regression: bool) -> tuple[str, ...]:
    """What is reported where nothing else is asked for."""
    return _ERRORS if is_regression else ("accuracy", "macro_f1")


def higher_is_better(name: str) -> bool:
    """Whether a larger value of this metric is a better one."""
    return _known(name) not in _ERRORS


def loss(output: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy for classes, mean squared error for numbers.

    Args:
        output: (..., n, C), logits or predictions; leading dimensions are models.
        y: (..., n) integers, the classes; or (..., n, C) floats, the targets.

    Returns:
        (...), the mean over rows and targets.
    """
    if y.is_floating_point():
        return (output - y).square().mean((-1, -2))
    rows = functional.cross_entropy(output.flatten(0, -2), y.flatten(), reduction="none")
    return rows.view(output.shape[:-1]).mean(-1)


def measure(name: str, output: Tensor, y: Tensor) -> float:
    """A metric of one model.

    ``accuracy``: the share of rows whose largest logit is that of their class. ``macro_f1``: the
    mean of F1 over the classes that occur in ``y`` or are predicted. ``roc_auc``: the probability
    that a row of a class has a larger softmax than a row of the others, ties counted as a half;
    the mean over the classes in ``y``. ``rmse``, ``mae``: over all rows and targets.

    Args:
        name: one of these.
        output: (n, C).
        y: (n,) integers, or (n, C) floats.
    """
    _known(name)
    output = output.detach().to(torch.float64)
    if name == "macro_f1":
        return _macro_f1(output, y)
    if name == "roc_auc":
        return _roc_auc(output, y)
    return float(score(name, output, y))


def score(name: str, output: Tensor, y: Tensor) -> Tensor:
    """A metric of many models at once.

    Args:
        name: as for `measure`.
        output: (..., n, C).
        y: as for `loss`.

    Returns:
        (...), in double precision, without gradient.
    """
    _known(name)
    output = output.detach()
    if name == "accuracy":
        # Counted in double precision: a float32 mean of many rows is off in the last digits.
        return (output.argmax(-1) == y).double().mean(-1)
    if name == "rmse":
        return (output - y).double().square().mean((-1, -2)).sqrt()
    if name == "mae":
        return (output - y).double().abs().mean((-1, -2))
    models = zip(output.flatten(0, -3), y.flatten(0, -2), strict=True)
    values = [measure(name, rows, labels) for rows, labels in models]
    return torch.tensor(values, dtype=torch.float64).view(output.shape[:-2])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % confidence interval by Student's t.

    The half width is NaN for a single value, and both are for none.
    """
    count = len(values)
    if count < 2:
        return (float(values[0]) if count else math.nan), math.nan
    return float(np.mean(values)), half_width(float(np.std(values, ddof=1)), count)


def best_seed(results: Sequence[Mapping[str, Any]], metric: str) -> int:
    """The seed with the best validation result among rows of results; the first of equal ones."""
    sign = 1 if higher_is_better(metric) else -1

    def quality(row: Mapping[str, Any]) -> float:
        value = row[f"val_{metric}"]
        return -math.inf if value is None else sign * float(value)  # null stands for NaN

    return int(max(results, key=quality)["seed"])


def half_width(deviation: float, count: int) -> float:
    """Half the width of the 95 % interval of a mean by Student's t; NaN for a single value.

    Args:
        deviation: the standard deviation of the values.
        count: how many values.
    """
    if count < 2:
        return math.nan
    from scipy.special import stdtrit  # scipy.stats has it too, and takes a second to import

    return float(stdtrit(count - 1, 0.975)) * deviation / math.sqrt(count)


def _known(name: str) -> str:
    if name not in METRICS:
        raise ConfigError(unknown_name("metric", name, METRICS))
    return name


def _macro_f1(output: Tensor, y: Tensor) -> float:
    predicted, classes = output.argmax(-1), output.shape[-1]
    hits = torch.bincount(y[predicted == y], minlength=classes)
    # A class counts as often as it is predicted plus as often as it occurs: 2 tp + fp + fn.
    both = torch.bincount(predicted, minlength=classes) + torch.bincount(y, minlength=classes)
    present = both > 0
    return float((2 * hits[present].double() / both[present]).mean())


def _roc_auc(output: Tensor, y: Tensor) -> float:
    classes = y.unique()
    if classes.numel() < 2:
        raise ConfigError(
            "metric 'roc_auc' needs examples of at least two classes in every part of the split: "
            "choose another metric or protocol."
        )
    return float(np.mean([_area(_log_odds(output, k), y == k) for k in classes.tolist()]))


def _log_odds(output: Tensor, k: int) -> Tensor:
    """(n,): ordered as the softmax of class k, but it never saturates, so it makes no ties."""
    others = torch.cat([output[:, :k], output[:, k + 1 :]], dim=-1)
    return output[:, k] - others.logsumexp(-1)


def _area(scores: Tensor, positive: Tensor) -> float:
    """The area under the ROC curve by the rank sum; equal scores share their mean rank."""
    _, group, counts = scores.unique(return_inverse=True, return_counts=True)
    ranks = (counts.cumsum(0).double() - (counts - 1).double() / 2)[group]
    hits = int(positive.sum())
    pairs = hits * (scores.numel() - hits)
    return float(ranks[positive].sum() - hits * (hits + 1) / 2) / pairs
