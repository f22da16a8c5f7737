"""Numbers reduced to what a page can show: `thinned`, `histogram`."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_POINTS = 2_000
"""Points of a series: more than a screen has columns."""


def thinned(count: int, *keep: int, limit: int = _POINTS) -> NDArray[np.int64]:
    """Which of ``count`` points to show: at most ``limit``, evenly, the first and last always.

    Args:
        count: how many there are.
        keep: points that must be among them, beyond the limit if need be.
        limit: at most so many, at least 2.
    """
    even = np.linspace(0, count - 1, min(count, limit)).round().astype(np.int64)
    return np.union1d(even, np.array(keep, dtype=np.int64))


def histogram(values: Tensor, bins: int = 40) -> tuple[list[float], list[int]]:
    """Edges (bins + 1) and counts (bins) of numbers; one bin where all are equal.

    Args:
        values: any shape, finite.
        bins: how many, of equal width.
    """
    array = values.detach().to(torch.float64).flatten().numpy()
    if array.size == 0 or array.min() == array.max():
        middle = float(array[0]) if array.size else 0.0
        return [middle - 0.5, middle + 0.5], [array.size]
    counts, edges = np.histogram(array, bins=bins)
    return edges.tolist(), counts.tolist()
