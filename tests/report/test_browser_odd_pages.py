"""Odd pages, windows and fingers, in headless Chromium. Skips where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nlsf.report.charts import BarChart, GraphDrawing, HeatMap, LineChart, Series
from nlsf.report.page import Page
from report.browser import (
    HOSTILE,
    assert_sound,
    figure,
    place,
    press,
    scroll_to,
    shown,
    ticks,
    tip,
)
from report.demo import graph


def hostile(name: str) -> Page:
    page = Page(name, name)
    page.section(
        name,
        name,
        LineChart(name, name, name, name, [Series(name, [0, 1], [1, 2]), Series("b", [0], [1])]),
        BarChart(name, name, name, name, [name], [(name, [1]), ("b", [2])]),
        HeatMap(name, name, name, name, [name, "b"], [name], [[0.2, 0.8]], kind="share"),
        GraphDrawing(
            name, name, [(0, 0), (1, 1)], [(0, 1)], [0, 0], [name], [name] * 2, [True] * 2
        ),
    )
    return page


@pytest.mark.parametrize("name", [HOSTILE, "</script><img src=x onerror=alert(1)>"])
def test_names_are_shown_and_not_run(browser, tmp_path, name):
    with shown(browser, hostile(name).write(tmp_path / "page.html"), 390) as page:
        assert page.title() == name
        for i in range(4):
            chart = page.locator("figure").nth(i)
            assert chart.locator("h3").inner_text() == name
            assert name in press(page, chart, "ArrowRight")
            chart.get_by_text("Data as a table").click()
            chart.locator("table").first.wait_for()
            assert name in chart.locator("table").first.inner_text()
        assert page.locator("img").count() == 0
        assert_sound(page)


def test_an_error_in_one_chart_leaves_the_others(browser, demo, tmp_path):
    broken = tmp_path / "broken.html"
    text = demo.read_text().replace('"type":"BarChart"', '"type":"PieChart"', 1)
    broken.write_text(text.replace('"type":"HeatMap"', '"type":"HeatMap",,', 1))
    with shown(browser, broken) as page:
        assert page.locator(".failed[role=alert]").count() == 2
        assert page.locator(".plot > svg").count() == 10


def test_charts_without_values_say_so(browser, tmp_path):
    empty = Page("t")
    empty.section(
        "s",
        "",
        LineChart("a", "", "x", "y", []),
        LineChart("b", "", "x", "y", [Series("s", [0, 1], [None, None])]),
        LineChart("c", "", "x", "y", [Series("s", [3], [0])], log_y=True),
        BarChart("d", "", "x", "y", [], []),
        BarChart("e", "", "x", "y", ["a"], [("s", [None])]),
        HeatMap("f", "", "x", "y", [], [], []),
        HeatMap("g", "", "x", "y", ["a"], ["b"], [[None]], kind="gain"),
        graph(0, 0),
        graph(1, 1),
    )
    with shown(browser, empty.write(tmp_path / "page.html"), 390) as page:
        assert page.locator(".failed[role=alert]").count() == 0
        assert page.locator(".empty").count() == 4
        assert "1 value left out" in figure(page, "c").inner_text()
        for i in range(9):
            press(page, page.locator("figure").nth(i), "ArrowRight", "+", "Escape")


def test_many_marks_go_to_a_canvas_and_long_tables_are_cut(browser, tmp_path):
    random = np.random.default_rng(0)
    x, y = random.random((2, 5000))
    large = Page("t")
    large.section(
        "s",
        "",
        LineChart("points", "", "x", "y", [Series("s", x, y, points=True)]),
        graph(700, 7, edges=8),
        HeatMap("heat", "", "x", "y", list("ab") * 50, list("cd") * 25, random.random((50, 100))),
    )
    with shown(browser, large.write(tmp_path / "page.html")) as page:
        assert page.locator("canvas").count() == 3
        inked = page.locator("canvas").evaluate_all(
            """all => all.map(canvas => {
                const { width, height } = canvas;
                const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
                return data.some((value, i) => i % 4 === 3 && value > 0);
            })"""
        )
        assert inked == [True] * 3
        chart = figure(page, "points")
        chart.get_by_text("Data as a table").click()
        chart.get_by_text("The first 2,000 of 5,000 rows.").wait_for()
        assert chart.locator("tbody tr").count() == 2000
        assert press(page, chart, "ArrowRight").startswith("x 0.")


def test_a_narrower_window_draws_again(browser, demo):
    with shown(browser, demo) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function(
            """() => [...document.querySelectorAll(".drawn")].every(place =>
                place.querySelector(".plot > svg").clientWidth <= place.clientWidth ||
                place.querySelector(".plot").scrollWidth > place.clientWidth)""",
            timeout=3000,
        )
        assert_sound(page)


def touch(page: Any, *moves: list[tuple[float, float]]) -> None:
    """Fingers that go down, move and go up; each move lists the place of each finger."""
    session = page.context.new_cdp_session(page)

    def send(kind: str, fingers: list[tuple[float, float]]) -> None:
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(fingers)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", moves[0])
    for move in moves[1:]:
        send("touchMove", move)
    # At rest before they leave: after a fling, the browser takes the next tap for a stop.
    page.wait_for_timeout(200)
    send("touchMove", moves[-1])
    send("touchEnd", [])


def all_of_it(chart: Any) -> None:
    """Taps the button and waits for the click that the browser makes of it."""
    chart.get_by_role("button", name="Show all").tap()
    chart.locator(".reset.idle").wait_for(state="attached", timeout=3000)


def test_fingers_find_buttons_read_zoom_and_pinch(browser, demo):
    with shown(browser, demo, 390, has_touch=True, is_mobile=True) as page:
        small = page.locator("main button:visible, nav a").evaluate_all(
            "all => all.filter(b => b.getBoundingClientRect().height < 40).length"
        )
        assert small == 0
        chart = figure(page, "Test accuracy of each seed")
        scroll_to(chart)
        chart.locator(".plot").tap()
        assert "Seed: " in tip(page)

        before = ticks(chart, "x")
        box = place(chart)
        y = box["y"] + 80
        touch(page, *([(box["x"] + x, y)] for x in (100, 120, 140, 160, 180, 200, 220)))
        assert 1 < len(ticks(chart, "x")) < len(before)
        all_of_it(chart)
        assert ticks(chart, "x") == before

        nodes = figure(page, "Predictions on the graph")
        box = place(nodes)
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch(page, *([(x - d, y), (x + d, y)] for d in (20, 30, 40, 50, 60)))
        assert nodes.get_by_role("button", name="Show all").is_visible()
        touch(page, [(x, y)], [(x + 10, y + 10)], [(x + 30, y + 20)])
        all_of_it(nodes)
