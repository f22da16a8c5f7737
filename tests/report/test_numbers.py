"""Numbers as a page shows them."""

import math

import numpy as np
import pytest
import torch

from nlsf.data.metrics import METRICS
from nlsf.report.numbers import (
    evenly_chosen,
    histogram,
    is_share,
    metric_name,
    metric_value,
    percent,
    plural,
    seconds,
)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("accuracy", 0.8125, "81.25 %"),
        ("rmse", 0.123456, "0.1235"),
        ("accuracy", None, "unknown"),
        ("mae", math.nan, "unknown"),
    ],
)
def test_a_metric_is_written_as_it_is_read(metric, value, text):
    assert metric_value(metric, value) == text


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_has_words(metric):
    assert "_" not in metric_name(metric)
    assert is_share(metric) == (metric not in ("rmse", "mae"))


@pytest.mark.parametrize(
    ("duration", "text"),
    [(0.0, "0.00 s"), (9.994, "9.99 s"), (59.6, "1 min 0 s"), (3599.7, "1 h 0 min")],
)
def test_a_duration_is_rounded_before_it_is_split(duration, text):
    assert seconds(duration) == text


def test_counts_agree_with_their_noun():
    assert [plural(n, "node") for n in (0, 1, 2708)] == ["0 nodes", "1 node", "2,708 nodes"]
    assert plural(2, "class") == "2 classes"
    assert percent(0.5) == "50.00 %"


@pytest.mark.parametrize("count", [0, 1, 2, 99, 2000])
def test_few_points_are_all_kept(count):
    assert np.array_equal(evenly_chosen(count), np.arange(count))


def test_many_points_are_thinned_evenly():
    chosen = evenly_chosen(100_000)
    assert len(chosen) == 2_000
    assert chosen[0] == 0
    assert chosen[-1] == 99_999
    steps = np.diff(chosen)
    assert steps.max() - steps.min() <= 1


def test_a_point_that_must_stay_stays():
    assert 77_777 in evenly_chosen(100_000, 77_777)


def test_a_histogram_counts_everything():
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    edges, counts = histogram(values, bins=7)
    assert len(edges) == 8
    assert sum(counts) == 1000
    assert edges[0] == pytest.approx(float(values.min()))
    assert edges[-1] == pytest.approx(float(values.max()))


@pytest.mark.parametrize("values", [torch.zeros(0), torch.full((5,), 3.0)])
def test_equal_numbers_share_a_bin(values):
    edges, counts = histogram(values)
    assert counts == [len(values)]
    assert edges[0] < edges[1]
