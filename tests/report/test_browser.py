"""What a person sees and does, in headless Chromium. Skips where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.browser import (
    assert_sound,
    figure,
    first_point,
    marks,
    place,
    press,
    scroll_to,
    shown,
    ticks,
    tip,
)

WIDTHS = (390, 768, 1440)


@pytest.fixture(scope="module")
def _page(browser: Any, demo: Path) -> Iterator[Any]:
    with shown(browser, demo) as page:
        yield page


@pytest.fixture
def page(_page: Any) -> Any:
    """The demonstration, as it is when it has just been opened."""
    _page.reload()
    return _page


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
