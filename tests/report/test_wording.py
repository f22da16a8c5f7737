import math

import pytest

from nlsf.data.metrics import METRICS
from nlsf.report.wording import is_share, metric_name, metric_value, percent, plural, seconds


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
