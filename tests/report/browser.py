"""A headless Chromium for tests of pages, and what every page must be in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "<script>alert(1)</script>"


def chromium() -> str | None:
    """The browser that ``NLSF_CHROMIUM`` names, or the one on the PATH."""
    named = os.environ.get("NLSF_CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def shown(browser: Any, path: Path, width: int = 1440, **options: Any) -> Iterator[Any]:
    """The page in a window; at the end, nothing was complained about or asked for."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: said.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert [text for text in said if text != path.as_uri() and text != "data:,"] == []


def marks(page: Any) -> list[int]:
    """How many places each chart of the page can read out."""
    return page.locator(".drawn").evaluate_all("all => all.map(c => Number(c.dataset.marks))")


def assert_sound(page: Any) -> None:
    """Every chart is drawn, or says that it is empty; nothing sticks out, no labels collide."""
    assert page.locator(".failed[role=alert]").all_inner_texts() == []
    drawn = page.locator(".drawn").evaluate_all(
        """places => places.map(place => {
            const frame = place.getBoundingClientRect();
            const paths = [...place.querySelectorAll(".marks path")].map(path => path.getBBox());
            const ink = paths.some(box => box.width + box.height > 0);
            return (ink || place.querySelector("canvas, .empty") !== null) &&
                frame.left >= 0 && frame.right <= innerWidth;
        })"""
    )
    assert all(drawn), drawn
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert overlaps(page) == 0


def overlaps(page: Any) -> int:
    """Pairs of labels of an axis that cover each other."""
    return page.evaluate(
        """[...document.querySelectorAll(".plot > svg")].flatMap(svg => {
            const rows = ["text.tick.x:not([transform])", "text.tick.y", "text.region"];
            return rows.flatMap(row => {
                const boxes = [...svg.querySelectorAll(row)].map(t => t.getBBox());
                return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b =>
                    a.x < b.x + b.width && b.x < a.x + a.width &&
                    a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height));
            });
        }).length"""
    )


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
