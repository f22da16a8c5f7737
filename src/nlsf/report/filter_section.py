"""What the filters of a model have learned: coefficients, gains, attention."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nlsf.nn.observe import Observation
from nlsf.report.charts import BarChart, Chart, HeatMap, LineChart, Series
from nlsf.report.spectrum_section import band_names
from nlsf.report.trained import TrainedRun

_CHANNELS = 32
"""Channels that a heat map has room for."""


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


def _one_filter(run: TrainedRun, seen: Observation, title: str, layer: int) -> list[Chart]:
    seen = _without_empty(seen)
    bands = band_names(seen.layer.bands, seen.norms.shape[-2])
    channels = run.channels if layer == 0 else []
    width = min(seen.norms.shape[-1], _CHANNELS)
    names = [channels[i] if i < len(channels) else f"channel {i + 1}" for i in range(width)]
    charts: list[Chart] = [_coefficients(seen, title, bands, names)]
    if seen.norms.ndim == 3 and not run.dataset.is_regression:
        charts.append(_class_map(run, seen, title, bands))
    if seen.gains is not None and seen.start is not None:
        charts += [_gain_lines(seen, title), _gain_map(seen, title, bands, names)]
    return charts


def _without_empty(seen: Observation) -> Observation:
    """Without the complement, where the bands leave nothing to it."""
    bands = seen.layer.bands
    if not bands.covers_all:
        return seen
    some = slice(bands.n_bands)
    start = None if seen.start is None else seen.start[..., some]
    gains = None if seen.gains is None else seen.gains[..., some, :]
    return Observation(seen.layer, seen.norms[..., some, :], start, gains)


def _coefficients(
    seen: Observation, title: str, bands: Sequence[str], channels: Sequence[str]
) -> HeatMap:
    shares = energy_shares(seen.norms)
    averaged = shares.ndim == 3
    shares = shares.mean(0) if averaged else shares
    total = seen.norms.shape[-1]
    return HeatMap(
        f"Analysis coefficients: {title}",
        "What the filter reads: how the energy of each channel is divided over the bands. Each "
        "column sums to 100 %. These numbers do not change when the graph's symmetries act on the "
        "signal, which is what makes the filter symmetric."
        + (" Means over the test examples." if averaged else "")
        + _first(total, len(channels)),
        "channel",
        "band",
        list(channels),
        list(bands),
        shares[:, : len(channels)].tolist(),
        kind="share",
    )


def _class_map(run: TrainedRun, seen: Observation, title: str, bands: Sequence[str]) -> HeatMap:
    classes = run.dataset.classes
    table = by_class(seen.norms, run.test_labels, len(classes))
    return HeatMap(
        f"Energy by class: {title}",
        "Where test examples of each class have their energy, averaged over channels. Columns that "
        "look alike belong to classes that this filter can tell apart only by finer differences.",
        "class",
        "band",
        list(classes),
        list(bands),
        [[None if value.isnan() else float(value) for value in row] for row in table],
        kind="share",
    )


def _gain_lines(seen: Observation, title: str) -> LineChart:
    assert seen.gains is not None
    assert seen.start is not None
    gains = seen.gains.double().movedim(-2, 0).flatten(1)  # (B, channels of all examples)
    start = seen.start.double().reshape(-1, gains.shape[0]).mean(0)
    x = [float(j + 1) for j in range(gains.shape[0])]
    series = [
        Series("after training, mean", x, gains.mean(1).tolist()),
        Series("after training, smallest", x, gains.amin(1).tolist(), faint=True),
        Series("after training, largest", x, gains.amax(1).tolist(), faint=True),
    ]
    if seen.linear_start:
        series.insert(0, Series("before training", x, start.tolist()))
    notes = ""
    if not seen.linear_start:
        notes = " Before training the response is a random network, which has no gains to show."
    if seen.exponent:
        notes += f" The filter first divides each band by the power {seen.exponent:g} of its norm."
    has_rest = len(x) > seen.layer.bands.n_bands
    rest = "; the last is what the bands leave" if has_rest else ""
    return LineChart(
        f"Learned gains: {title}",
        "By what the filter multiplies each band: above the start, training has turned the band "
        "up; near 0, the band is blocked. Smallest and largest are over channels: where they part, "
        "the filter treats channels differently, by what it reads in them." + notes,
        f"band, from the lowest frequency{rest}",
        "gain",
        series,
    )


def _gain_map(
    seen: Observation, title: str, bands: Sequence[str], channels: Sequence[str]
) -> HeatMap:
    factor = response_factor(seen)
    factor = factor.mean(0) if factor.ndim == 3 else factor
    return HeatMap(
        f"Learned response: {title}",
        (
            "By what factor training has changed the gain of each band and channel, "
            "1 + Psi: at the start it is 1 everywhere."
            if seen.linear_start
            else "The gain of each band and channel; before training it is that of a random "
            "network."
        )
        + (" Means over the test examples." if seen.norms.ndim == 3 else "")
        + _first(seen.norms.shape[-1], len(channels)),
        "channel",
        "band",
        list(channels),
        list(bands),
        factor[:, : len(channels)].tolist(),
        kind="gain",
    )


def response_factor(seen: Observation) -> Tensor:
    """The gains after training over those before it, (..., B, d): 1 + Psi.

    The gains themselves where the filter does not start as a linear one.
    """
    assert seen.gains is not None
    assert seen.start is not None
    gains = seen.gains.double()
    return gains / seen.start.double().unsqueeze(-1) if seen.linear_start else gains


def _first(total: int, shown: int) -> str:
    return f" The first {shown} of {total} channels are shown." if shown < total else ""
