"""What the filters of a model have learned, and whether they keep the graph's symmetries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.observe import Observation
from nlsf.report.charts import BarChart, Chart, HeatMap, Kind, LineChart, Series
from nlsf.report.spectrum_section import band_names
from nlsf.report.trained import Branch, TrainedRun
from nlsf.spectral import equivariance_error, invariance_error, sample_shift

_CHANNELS = 32
"""Channels that a heat map has room for."""

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


def filter_charts(run: TrainedRun) -> list[Chart]:
    """The charts of every filter: of the first and the last layer, where there are many."""
    charts: list[Chart] = []
    if run.seen.alpha:
        charts.append(attention_chart(run))
    width = len(run.branches)
    layers = len(run.seen.filters) // width
    for number, seen in enumerate(run.seen.filters):
        layer, branch = divmod(number, width)
        if layer in (0, layers - 1):
            title = run.branches[branch].title
            title += f", layer {layer + 1}" if layers > 1 else ""
            charts += _one_filter(run, seen, title, layer)
    return charts


def energy_shares(norms: Tensor) -> Tensor:
    """How the energy of each channel is divided over the bands: (..., B, d), summing to 1.

    A channel that is zero has no energy to divide: its shares are 0.
    """
    energy = norms.double().square()
    return energy / energy.sum(-2, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)


def by_class(norms: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """(B, C): the energy shares of each band, averaged over channels and examples of a class.

    Args:
        norms: (n, B, d), one an example.
        y: (n,), the class of each.
        num_classes: C; classes without examples have NaN.
    """
    shares = energy_shares(norms).mean(-1)
    sums = shares.new_zeros(num_classes, shares.shape[1]).index_add(0, y, shares)
    return (sums / torch.bincount(y, minlength=num_classes).unsqueeze(1)).T


def attention_chart(run: TrainedRun) -> BarChart:
    """The weight of each branch, layer by layer."""
    first = [float(alpha.double().mean()) for alpha in run.seen.alpha]
    spread = [(float(a.min()), float(a.max())) for a in run.seen.alpha]
    many = any(alpha.numel() > 1 for alpha in run.seen.alpha)
    return BarChart(
        "Attention: how much each filter counts",
        "The model weighs its two filters, and learns how: at the start both count for half. The "
        "weights sum to 100 %."
        + (
            " Each graph has its own weights: bars are means, whiskers reach from the least to the "
            "most."
            if many
            else ""
        ),
        "layer",
        "weight",
        [f"layer {i + 1}" for i in range(len(first))],
        [
            (run.branches[0].title, first),
            (run.branches[1].title, [1 - alpha for alpha in first]),
        ],
        percent=True,
        ranges=[spread, [(1 - high, 1 - low) for low, high in spread]] if many else (),
    )


@dataclass(frozen=True)
class _Shown:
    """A filter with the names that its charts give to it, its bands and its first channels."""

    seen: Observation
    title: str
    bands: list[str]
    channels: list[str]

    def by_channel(self, what: str, caption: str, values: Tensor, kind: Kind) -> HeatMap:
        """A map of numbers (..., B, d), averaged over examples where they have numbers each."""
        total, shown = values.shape[-1], len(self.channels)
        if values.ndim == 3:
            values = values.mean(0)
            caption += " Means over the test examples."
        if shown < total:
            caption += f" The first {shown} of {total} channels are shown."
        cells = values[:, :shown].tolist()
        title = f"{what}: {self.title}"
        return HeatMap(title, caption, "channel", "band", self.channels, self.bands, cells, kind)


def _one_filter(run: TrainedRun, seen: Observation, title: str, layer: int) -> list[Chart]:
    seen = _without_empty(seen)
    known = run.channels if layer == 0 else []
    width = min(seen.norms.shape[-1], _CHANNELS)
    names = [known[i] if i < len(known) else f"channel {i + 1}" for i in range(width)]
    shown = _Shown(seen, title, band_names(seen.layer.bands, seen.norms.shape[-2]), names)
    charts: list[Chart] = [
        shown.by_channel(
            "Analysis coefficients",
            "What the filter reads: how the energy of each channel is divided over the bands. Each "
            "column sums to 100 %. These numbers do not change when the graph's symmetries act on "
            "the signal, which is what makes the filter symmetric.",
            energy_shares(seen.norms),
            "share",
        )
    ]
    if seen.norms.ndim == 3 and not run.dataset.is_regression:
        charts.append(_class_map(run, shown))
    if seen.gains_after is not None and seen.gains_before is not None:
        caption = (
            "The gain of each band and channel; before training it is that of a random network."
        )
        if seen.linear_start:
            caption = (
                "By what factor training has changed the gain of each band and channel, 1 + Psi: "
                "at the start it is 1 everywhere."
            )
        charts.append(_gain_lines(shown, seen.gains_before, seen.gains_after))
        charts.append(shown.by_channel("Learned response", caption, response_factor(seen), "gain"))
    return charts


def _without_empty(seen: Observation) -> Observation:
    """Without the complement, where the bands leave nothing to it."""
    bands, before, after = seen.layer.bands, seen.gains_before, seen.gains_after
    if not bands.covers_all:
        return seen
    some = slice(bands.n_bands)
    before = None if before is None else before[..., some]
    after = None if after is None else after[..., some, :]
    return Observation(seen.layer, seen.norms[..., some, :], before, after)


def _class_map(run: TrainedRun, shown: _Shown) -> HeatMap:
    classes = list(run.dataset.classes)
    shares = by_class(shown.seen.norms, run.test_labels, len(classes))
    return HeatMap(
        f"Energy by class: {shown.title}",
        "Where test examples of each class have their energy, averaged over channels. Columns that "
        "look alike belong to classes that this filter can tell apart only by finer differences.",
        "class",
        "band",
        classes,
        shown.bands,
        shares.tolist(),
        kind="share",
    )


def _gain_lines(shown: _Shown, before: Tensor, after: Tensor) -> LineChart:
    seen = shown.seen
    gains = after.double().movedim(-2, 0).flatten(1)  # (B, channels of all examples)
    x = [float(j + 1) for j in range(gains.shape[0])]
    series = [
        Series("after training, mean", x, gains.mean(1).tolist()),
        Series("after training, smallest", x, gains.amin(1).tolist(), faint=True),
        Series("after training, largest", x, gains.amax(1).tolist(), faint=True),
    ]
    notes = ""
    if seen.linear_start:
        mean = before.double().reshape(-1, gains.shape[0]).mean(0)
        series.insert(0, Series("before training", x, mean.tolist()))
    else:
        notes = " Before training the response is a random network, which has no gains to show."
    if seen.exponent:
        notes += f" The filter first divides each band by the power {seen.exponent:g} of its norm."
    rest = "; the last is what the bands leave" if len(x) > seen.layer.bands.n_bands else ""
    return LineChart(
        f"Learned gains: {shown.title}",
        "By what the filter multiplies each band: above the start, training has turned the band "
        "up; near 0, the band is blocked. Smallest and largest are over channels: where they part, "
        "the filter treats channels differently, by what it reads in them." + notes,
        f"band, from the lowest frequency{rest}",
        "gain",
        series,
    )


def response_factor(seen: Observation) -> Tensor:
    """The gains after training over those before it, (..., B, d): 1 + Psi.

    The gains themselves where the filter does not start as a linear one.
    """
    assert seen.gains_after is not None
    assert seen.gains_before is not None
    gains = seen.gains_after.double()
    return gains / seen.gains_before.double().unsqueeze(-1) if seen.linear_start else gains


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
            + ("" if first.norm_p == 2 else _NOT_EXACT),
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
