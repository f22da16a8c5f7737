"""Whether the trained filters keep the graph's symmetries: errors under sampled shifts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.report.charts import BarChart, Chart
from nlsf.report.trained import Branch, TrainedRun
from nlsf.spectral import equivariance_error, invariance_error, sample_shift

_SAMPLES = 5
"""Shifts that are drawn for each filter."""

_LARGE_BAND = 1_500
"""Dimension of a band from which on a random rotation of it takes long: then fewer are drawn."""

_SIGNALS = 8
_CONTRAST = "ReLU instead, for contrast"
_NOT_EXACT = (
    " With a norm other than L2 only permutations of the nodes are kept, so the errors of these "
    "filters need not be small."
)

Errors = list[float | None]


def symmetry_charts(run: TrainedRun) -> list[Chart]:
    """The error of each filter of the first layer, beside that of a ReLU on the same signal."""
    found = []
    for branch in run.branches:
        signals = _signals(run, min(len(branch.spectra), _SAMPLES))
        found.append(shift_errors(branch, signals))
    count = min(len(own) for own, _ in found)
    series: list[tuple[str, Errors]] = [
        (branch.title, own[:count]) for branch, (own, _) in zip(run.branches, found, strict=True)
    ]
    series.append((_CONTRAST, found[0][1][:count]))
    first = run.branches[0].layer
    law = "does not change" if first.invariant else "moves along"
    return [
        BarChart(
            "Error under sampled shifts",
            "A functional shift is to a graph what a translation is to an image: it mixes patterns "
            "of the same band and keeps their size. When the input is shifted, the output of a "
            f"symmetric filter {law}. Bars show by how much that fails, relative to the output, "
            f"for randomly drawn shifts. {_finding(series)}"
            + ("" if first.norm == 2 else _NOT_EXACT),
            "drawn shift",
            "relative error",
            [f"shift {i + 1}" for i in range(count)],
            series,
            log_y=True,
        )
    ]


def shift_errors(branch: Branch, signals: Sequence[Tensor]) -> tuple[Errors, Errors]:
    """The relative errors of a filter, and of a ReLU in its place, for sampled shifts.

    Shifts are drawn on one graph after the other.

    Args:
        branch: whose filter should commute with shifts, or ignore them.
        signals: (..., N, d), one a graph.

    Returns:
        Two lists, one error a shift; an error of exactly 0 counts as missing, because it cannot
        stand on a logarithmic axis.
    """
    layer, graphs = branch.layer, range(len(signals))
    large = max(map(branch.largest_band, graphs), default=0) >= _LARGE_BAND
    lenses = [branch.lens(i) for i in graphs]
    spaces = [branch.space(i) for i in graphs]
    error = invariance_error if layer.invariant else equivariance_error
    usual = _mean_relu(layer) if layer.invariant else torch.relu
    own, relu = [], []
    for number in range(2 if large else _SAMPLES):
        i = number % len(signals)
        shift = sample_shift(spaces[i], seed=number)
        own.append(error(_filter(layer, lenses[i]), signals[i], shift))
        relu.append(error(usual, signals[i], shift))
    return _positive(own), _positive(relu)


def _finding(series: list[tuple[str, Errors]]) -> str:
    """The numbers in words; the last series is the contrast."""
    own = [error for _, errors in series[:-1] for error in errors if error is not None]
    relu = [error for error in series[-1][1] if error is not None]
    if not own or not relu:
        return ""
    return (
        f"The largest error of the trained filters is {max(own):.1e} (rounding alone gives about "
        f"1e-7 in single precision); a pointwise ReLU in their place has up to {max(relu):.2g}."
    )


def _filter(layer: SpectralLayer, lens: Any) -> Callable[[Tensor], Tensor]:
    def filtered(x: Tensor) -> Tensor:
        y: Tensor = layer(x, spectrum=lens)
        return y

    return filtered


def _mean_relu(layer: SpectralLayer) -> Callable[[Tensor], Tensor]:
    """The usual way from nodes to a graph: channels, ReLU, mean."""
    return lambda x: layer.mapped(x).relu().mean(-2)


def _signals(run: TrainedRun, count: int) -> list[Tensor]:
    """What comes into the first filter: of the one graph, or of the first test graphs."""
    if run.dataset.level == "graph":
        return [run.dataset.graphs[i].x.to(run.job.dtype) for i in run.predicted[:count]]
    signal = run.seen.signal
    assert signal is not None
    return [signal[:_SIGNALS] if run.dataset.level == "signal" else signal]


def _positive(errors: list[float]) -> Errors:
    return [error if error > 0 and math.isfinite(error) else None for error in errors]
