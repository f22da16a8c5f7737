"""Whether the trained filters keep the graph's symmetries: errors under sampled shifts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nlsf.nn import GraphNLSF, NodeNLSF
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.report.charts import BarChart, Chart
from nlsf.report.trained import TrainedRun
from nlsf.spectral import (
    PolynomialProjector,
    Projector,
    Spectrum,
    equivariance_error,
    invariance_error,
    sample_shift,
)

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


def symmetry_charts(run: TrainedRun) -> list[Chart]:
    """The error of each filter of the first layer, beside that of a ReLU on the same signal."""
    series: list[tuple[str, list[float | None]]] = []
    contrast: list[list[float | None]] = []
    for branch in run.branches:
        projectors = [branch.projector(i) for i in range(min(len(branch.spectra), _SAMPLES))]
        signals = _signals(run, len(projectors))
        spaces = [branch.space(i) for i in range(len(projectors))]
        own, relu = shift_errors(branch.layer, projectors, spaces, signals)
        series.append((branch.title, own))
        contrast.append(relu)
    count = min(len(values) for _, values in series)
    series = [(name, values[:count]) for name, values in series]
    series.append((_CONTRAST, contrast[0][:count]))
    level = isinstance(run.branches[0].layer, GraphNLSF)
    law = "does not change" if level else "moves along"
    exact = run.branches[0].layer.norm == 2
    return [
        BarChart(
            "Error under sampled shifts",
            "A functional shift is to a graph what a translation is to an image: it mixes patterns "
            "of the same band and keeps their size. When the input is shifted, the output of a "
            f"symmetric filter {law}. Bars show by how much that fails, relative to the output, "
            f"for randomly drawn shifts. {_finding(series)}" + ("" if exact else _NOT_EXACT),
            "drawn shift",
            "relative error",
            [f"shift {i + 1}" for i in range(count)],
            series,
            log_y=True,
        )
    ]


def shift_errors(
    layer: SpectralLayer,
    projectors: Sequence[Projector | PolynomialProjector],
    spaces: Sequence[Projector | Spectrum],
    signals: Sequence[Tensor],
) -> tuple[list[float | None], list[float | None]]:
    """The relative errors of a filter, and of a ReLU in its place, for sampled shifts.

    Args:
        layer: a node-level filter, which should commute with shifts, or a graph-level one, which
            should ignore them.
        projectors: the graphs; shifts are drawn on one after the other.
        spaces: what the shifts are drawn from, one a graph, as in `sample_shift`.
        signals: (..., N, d), one a graph.

    Returns:
        Two lists, one error a shift; an error of exactly 0 counts as missing, because it cannot
        stand on a logarithmic axis.
    """
    exact = [space for space in spaces if isinstance(space, Projector)]
    largest = max((int(s.stop - s.start) for p in exact for s in p.slices), default=0)
    count = _SAMPLES if largest < _LARGE_BAND else 2
    own, relu = [], []
    for number in range(count):
        projector = projectors[number % len(projectors)]
        x = signals[number % len(projectors)]
        shift = sample_shift(spaces[number % len(projectors)], seed=number)
        if isinstance(layer, GraphNLSF):
            own.append(invariance_error(_call(layer, projector), x, shift))
            relu.append(invariance_error(_mean_relu(layer), x, shift))
        else:
            own.append(equivariance_error(_call(layer, projector), x, shift))
            relu.append(equivariance_error(torch.relu, x, shift))
    return _positive(own), _positive(relu)


def _finding(series: list[tuple[str, list[float | None]]]) -> str:
    """The numbers in words; the last series is the contrast."""
    own = [error for _, errors in series[:-1] for error in errors if error is not None]
    relu = [error for error in series[-1][1] if error is not None]
    if not own or not relu:
        return ""
    return (
        f"The largest error of the trained filters is {max(own):.1e} (rounding alone gives about "
        f"1e-7 in single precision); a pointwise ReLU in their place has up to {max(relu):.2g}."
    )


def _call(
    layer: SpectralLayer, projector: Projector | PolynomialProjector
) -> Callable[[Tensor], Tensor]:
    assert isinstance(layer, NodeNLSF | GraphNLSF)

    def filtered(x: Tensor) -> Tensor:
        y: Tensor = layer(x, spectrum=projector)
        return y

    return filtered


def _mean_relu(layer: GraphNLSF) -> Callable[[Tensor], Tensor]:
    """The usual way from nodes to a graph: channels, ReLU, mean."""

    def pooled(x: Tensor) -> Tensor:
        mapped: Tensor = layer.lin(x)
        return mapped.relu().mean(-2)

    return pooled


def _signals(run: TrainedRun, count: int) -> list[Tensor]:
    """What comes into the first filter: of the one graph, or of the first test graphs."""
    if run.dataset.level == "graph":
        return [run.dataset.graphs[i].x.to(run.job.dtype) for i in run.rows[:count]]
    signal = run.seen.signal
    assert signal is not None
    return [signal[:_SIGNALS] if run.dataset.level == "signal" else signal]


def _positive(errors: list[float]) -> list[float | None]:
    return [error if error > 0 and math.isfinite(error) else None for error in errors]
