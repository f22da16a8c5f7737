import json
import math

import numpy as np
import pytest

from nlsf.errors import ConfigError
from nlsf.report.charts import (
    BarChart,
    DataTable,
    GraphDrawing,
    HeatMap,
    LineChart,
    Pictures,
    Region,
    Series,
    chart_data,
)
from report.demo import demo_page, graph


def line(*series: Series, **more) -> LineChart:
    return LineChart("Loss", "", "epoch", "loss", series, **more)


def test_numbers_keep_six_digits_and_whole_ones_lose_their_point():
    data = chart_data(line(Series("a", [1.0, 2, 1e9], [math.pi * 1e-7, 2 / 3, 1234567.0])))
    assert data["series"][0]["x"] == [1, 2, 1e9]
    assert data["series"][0]["y"] == [3.14159e-07, 0.666667, 1.23457e06]
    assert json.dumps(data["series"][0]["x"][:2]) == "[1, 2]"


def test_numbers_that_are_not_finite_are_missing():
    data = chart_data(line(Series("a", [0, 1, 2, 3], [math.nan, math.inf, -math.inf, None])))
    assert data["series"][0]["y"] == [None] * 4


def test_arrays_and_their_numbers_become_json():
    y = np.array([1.5, np.nan], dtype=np.float32)
    data = chart_data(line(Series("a", np.arange(2), y, points=np.bool_(True))))
    assert json.loads(json.dumps(data)) == data
    assert data["series"][0] == {
        "name": "a",
        "x": [0, 1],
        "y": [1.5, None],
        "points": True,
        "faint": False,
    }


def test_every_chart_of_a_page_is_json_without_nan():
    for _, _, charts in demo_page()._sections:
        for chart in charts:
            data = chart_data(chart)
            assert data["type"] == type(chart).__name__
            json.dumps(data, allow_nan=False)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: line(Series("a", [1], [1, 2])), "1 entries in x of series 'a' and 2 in y"),
        (lambda: line(Series("a", [math.nan], [1])), "not finite in x of series 'a'"),
        (lambda: line(regions=[Region(0, math.inf, "b")]), "not finite in the region 'b'"),
        (lambda: line(marks=[(math.nan, "best")]), "not finite in the marks"),
        (
            lambda: BarChart("Loss", "", "x", "y", ["a"], [("s", [1, 2])]),
            "2 entries in series 's' and 1 in categories",
        ),
        (
            lambda: BarChart("Loss", "", "x", "y", ["a"], [("s", [1])], ranges=[[], []]),
            "2 entries in ranges and 1 in series",
        ),
        (
            lambda: BarChart("Loss", "", "x", "y", ["a"], [("s", [1])], ranges=[[]]),
            "0 entries in ranges of a series and 1 in categories",
        ),
        (lambda: HeatMap("Loss", "", "x", "y", ["a"], ["b"], []), "0 entries in values and 1"),
        (lambda: HeatMap("Loss", "", "x", "y", ["a"], ["b"], [[1, 2]]), "2 entries in a row"),
        (
            lambda: GraphDrawing("Loss", "", [(0, 0)], [], [0], ["g"], [], [False]),
            "0 entries in texts and 1 in positions",
        ),
        (
            lambda: GraphDrawing("Loss", "", [(0, 0)], [(0, 1)], [0], ["g"], ["n"], [False]),
            "names 1 in edges, but its 1 nodes are numbered from 0",
        ),
        (
            lambda: GraphDrawing("Loss", "", [(0, 0)], [], [-1], ["g"], ["n"], [False]),
            "names -1 in group",
        ),
        (
            lambda: GraphDrawing("Loss", "", [(0, math.nan)], [], [0], ["g"], ["n"], [False]),
            "not finite in positions",
        ),
        (lambda: Pictures("Loss", "", ["a"], ["b"], []), "0 entries in images and 1 in rows"),
        (lambda: Pictures("Loss", "", ["a"], ["b"], [[]]), "0 entries in a row of images and 1"),
        (
            lambda: Pictures("Loss", "", ["a"], ["b"], [[[[1, 2], [3]]]]),
            "1 entries in a line of pixels and 2 in the first line",
        ),
        (
            lambda: Pictures("Loss", "", ["a"], ["b", "c"], [[[[1]], [[1], [2]]]]),
            "2 entries in an image and 1 in the first image",
        ),
        (lambda: DataTable("Loss", "", ["a", "b"], [["1"]]), "1 entries in a row and 2 in header"),
    ],
)
def test_a_malformed_chart_is_named(make, says):
    with pytest.raises(ConfigError) as caught:
        make()
    assert says in str(caught.value)
    assert "'Loss'" in str(caught.value)


def test_an_unknown_kind_of_heat_map_names_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'gain'"):
        HeatMap("Loss", "", "x", "y", [], [], [], kind="gains")  # type: ignore[arg-type]


def test_charts_without_values_are_charts():
    assert chart_data(line())["series"] == []
    assert chart_data(graph(0, 0))["positions"] == []
