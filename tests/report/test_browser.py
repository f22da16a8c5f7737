"""What a person sees and does, in headless Chromium. Skips where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nlsf.report.charts import BarChart, GraphDrawing, HeatMap, LineChart, Series
from nlsf.report.page import Page
from report.browser import HOSTILE, assert_sound, marks, shown
from report.demo import demo_page, graph

WIDTHS = (390, 768, 1440)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_page().write(tmp_path_factory.mktemp("page") / "demo.html")


@pytest.fixture(scope="module")
def _page(browser: Any, demo: Path) -> Iterator[Any]:
    with shown(browser, demo) as page:
        yield page


@pytest.fixture
def page(_page: Any) -> Any:
    """The demonstration, as it is when it has just been opened."""
    _page.reload()
    return _page


def figure(page: Any, title: str) -> Any:
    return page.locator("figure", has=page.get_by_role("heading", name=title, exact=True))


def ticks(chart: Any, axis: str) -> list[str]:
    return chart.locator(f"text.tick.{axis}").all_text_contents()


def scroll_to(chart: Any) -> None:
    """Scrolls, and waits for the event of it, which hides a read-out."""
    chart.locator(".plot").scroll_into_view_if_needed()
    chart.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")


def place(chart: Any) -> dict[str, float]:
    """The box of the drawing in the window."""
    scroll_to(chart)
    return chart.locator(".plot > svg").bounding_box()


def first_point(chart: Any, path: int = 0) -> tuple[float, float]:
    """Where the path of a series starts, in the window."""
    d = chart.locator(".marks path").nth(path).get_attribute("d")
    x, y = map(float, re.match(r"M([-\d.]+) ([-\d.]+)", d).groups())
    box = place(chart)
    return box["x"] + x, box["y"] + y


def tip(page: Any) -> str:
    return page.locator("#tip").inner_text() if page.locator("#tip").is_visible() else ""


def press(page: Any, chart: Any, *keys: str) -> str:
    """What the keys make the page say."""
    chart.locator(".plot").focus()
    for key in keys:
        page.keyboard.press(key)
    return page.locator("#spoken").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_chart_is_drawn_and_nothing_sticks_out(browser, demo, width, scheme):
    with shown(browser, demo, width, color_scheme=scheme) as page:
        assert_sound(page)
        assert marks(page) == [10, 20, 1000, 302, 677, 47, 15, 192, 49, 120, 8, 2]
        labels = page.locator(".plot").evaluate_all("all => all.map(plot => plot.ariaLabel)")
        assert min(map(len, labels)) > 60
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 200) == (scheme == "dark")


def test_hover_reads_out_the_nearest_point_inside_the_window(page):
    chart = figure(page, "Loss over the epochs")
    page.mouse.move(*first_point(chart))
    assert "Epoch 0" in tip(page)
    assert re.search(r"training\s*2\.0", tip(page))
    assert "validation" in tip(page)
    for at in (0.02, 0.5, 0.99):
        box = place(chart)
        page.mouse.move(box["x"] + at * box["width"], box["y"] + box["height"] / 2)
        shown_at = page.locator("#tip").bounding_box()
        assert shown_at["x"] >= 0
        assert shown_at["x"] + shown_at["width"] <= 1440
    page.mouse.move(2, 2)
    assert tip(page) == ""


def test_hover_reads_out_bars_cells_and_nodes(page):
    def hover(title: str, path: int) -> str:
        chart = figure(page, title)
        scroll_to(chart)
        chart.locator(".marks path").nth(path).hover(force=True)
        return tip(page)

    assert "Subject: Genetic algorithms" in hover("Accuracy of each subject", 1)
    assert "91 %" in tip(page)
    assert "True subject: Genetic algorithms" in hover("Which subject is taken for which", 7)
    assert "Predicted subject: Case based" in tip(page)
    chart = figure(page, "Predictions on the graph")
    x, y = first_point(chart, 1)
    page.mouse.move(x + 4, y)
    assert "Paper 0, predicted Case based (87 %)" in tip(page)


def test_dragging_zooms_along_x_and_a_double_click_shows_all(page):
    for title in ("Loss over the epochs", "How many eigenvalues lie where"):
        chart = figure(page, title)
        reset = chart.get_by_role("button", name="Show all")
        before = ticks(chart, "x"), ticks(chart, "y")
        assert not reset.is_visible()
        for way in ("double click", "button", "Escape"):
            box = place(chart)
            y = box["y"] + box["height"] / 2
            page.mouse.move(box["x"] + 0.4 * box["width"], y)
            page.mouse.down()
            page.mouse.move(box["x"] + 0.5 * box["width"], y)
            page.mouse.move(box["x"] + 0.6 * box["width"], y)
            page.mouse.up()
            assert ticks(chart, "x") != before[0]
            assert reset.is_visible()
            if way == "double click":
                page.mouse.dblclick(box["x"] + 0.5 * box["width"], y)
            elif way == "button":
                reset.click()
            else:
                press(page, chart, "Escape")
            assert (ticks(chart, "x"), ticks(chart, "y")) == before


def test_the_wheel_zooms_with_control_and_scrolls_without(page):
    chart = figure(page, "Eigenvalues in order")
    before = ticks(chart, "x")
    box = place(chart)
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 100)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(
        "() => !document.querySelectorAll('.reset')[4].classList.contains('idle')", timeout=3000
    )
    assert ticks(chart, "x") != before
    press(page, chart, "Escape")
    top = page.evaluate("scrollY")
    page.mouse.wheel(0, 150)
    page.wait_for_function(f"() => scrollY > {top}", timeout=3000)
    assert ticks(chart, "x") == before


def test_arrow_keys_move_the_readout_and_speak(page):
    chart = figure(page, "Loss over the epochs")
    first = press(page, chart, "ArrowRight")
    assert first.startswith("Epoch 0. training: 2.0")
    assert press(page, chart, "ArrowRight").startswith("Epoch 1. training")
    assert press(page, chart, "ArrowDown").startswith("Epoch 1. validation: ")
    assert press(page, chart, "End").startswith("Epoch 199. validation: ")
    assert "Epoch 199" in tip(page)

    heat = figure(page, "Which subject is taken for which")
    press(page, heat, "ArrowRight", "ArrowDown")
    assert "Genetic algorithms. Predicted subject: Case based" in press(page, heat, "Home")
    nodes = figure(page, "Predictions on the graph")
    assert "Paper 1," in press(page, nodes, "ArrowRight", "ArrowRight")
    bars = figure(page, "Test accuracy of each seed")
    assert press(page, bars, "End", "ArrowRight").startswith("Seed: 1. test: 8")


def test_a_legend_entry_hides_its_series(page):
    chart = figure(page, "Loss over the epochs")
    button = chart.get_by_role("button", name="training", exact=True)
    assert chart.locator(".marks path").count() == 5
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert chart.locator(".marks path").count() == 4
    assert "training" not in press(page, chart, "ArrowRight")
    button.click()
    assert chart.locator(".marks path").count() == 5

    nodes = figure(page, "Predictions on the graph")
    nodes.get_by_role("button", name="Theory").click()
    assert int(nodes.locator(".drawn").get_attribute("data-marks")) == 103


def test_the_data_is_there_as_a_table(page):
    chart = figure(page, "Accuracy of each subject")
    assert chart.locator("table").count() == 0
    chart.get_by_text("Data as a table").click()
    rows = chart.locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == 7
    assert rows.nth(1).locator("td").all_inner_texts() == [
        "Genetic algorithms",
        "0.2",
        "0.91",
        "0.85",
    ]
    assert rows.nth(5).locator("td").all_inner_texts()[1] == ""


def test_a_graph_zooms_and_pans(page):
    chart = figure(page, "Predictions on the graph")
    before = first_point(chart, 1)
    chart.get_by_role("button", name="Zoom in").click()
    zoomed = first_point(chart, 1)
    assert zoomed != before
    box = place(chart)
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 180)
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.up()
    panned = first_point(chart, 1)
    assert panned[0] == pytest.approx(zoomed[0] - 100, abs=1)
    assert panned[1] == pytest.approx(zoomed[1] - 50, abs=1)
    press(page, chart, "Escape")
    assert first_point(chart, 1) == before


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


def test_pictures_are_read_out_and_played(page: Any) -> None:
    still = figure(page, "A spot on its way")
    assert press(page, still, "Home", "ArrowRight") == "spot, t = 2. smallest: 0. largest: 1"
    assert press(page, still, "ArrowDown").startswith("mirror image, t = 2. smallest: \u22121")

    film = figure(page, "A spot on its way, as a film")
    above = film.locator("text.tick").first
    assert above.text_content() == "spot, t = 0"
    slider = film.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    assert above.text_content() == "spot, t = 6"
    assert slider.get_attribute("aria-valuetext") == "t = 6"
    film.get_by_role("button", name="Play").click()
    arrived = "place => place.textContent.includes('spot, t = 2')"
    page.wait_for_function(arrived, arg=film.locator(".plot").element_handle())
    film.get_by_role("button", name="Pause").click()
    assert film.get_by_role("button", name="Play").is_visible()
