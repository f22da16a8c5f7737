import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

from nlsf.report.charts import BarChart, DataTable, HeatMap, LineChart, Series, Tiles
from nlsf.report.page import Page
from report.browser import HOSTILE
from report.demo import demo_page

ASSETS = files("nlsf.report") / "assets"


class Elements(HTMLParser):
    """The elements of a page, with their attributes and their own text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.texts.append("")
        if tag not in ("meta", "link", "br"):
            self._open.append(len(self.found) - 1)

    def handle_endtag(self, tag):
        opened = self.found[self._open.pop()][0]
        assert opened == tag

    def handle_data(self, data):
        if self._open:
            self.texts[self._open[-1]] += data

    def all(self, tag: str, **attributes: str) -> list[str]:
        return [
            text
            for (name, found), text in zip(self.found, self.texts, strict=True)
            if name == tag and attributes.items() <= found.items()
        ]


def bars(title: str = "Bars") -> BarChart:
    return BarChart(title, "", "x", "y", ["a"], [("s", [1.0])])


def heat() -> HeatMap:
    return HeatMap("Heat", "", "x", "y", ["a"], ["b"], [[1.0]])


def test_elements_are_balanced_and_headings_are_in_order():
    page = Elements(demo_page().html())
    assert page._open == []
    assert page.all("h1") == page.all("title") == ["NodeNLSF on Cora"]
    assert len(page.all("h2")) == 8
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_navigation_leads_to_every_section():
    page = Elements(demo_page().html())
    ids = {found["id"] for tag, found in page.found if tag == "section"}
    links = [found["href"] for tag, found in page.found if tag == "a"]
    assert {f"#{i}" for i in ids} <= set(links)
    every = [found["id"] for _, found in page.found if "id" in found]
    assert len(every) == len(set(every))


def test_only_the_pages_own_script_may_run():
    page = Elements(demo_page().html())
    (policy,) = [
        found["content"]
        for tag, found in page.found
        if found.get("http-equiv") == "Content-Security-Policy"
    ]
    scripts = [
        text
        for (tag, found), text in zip(page.found, page.texts, strict=True)
        if tag == "script" and "type" not in found
    ]
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == 1
    parts = [path.read_text(encoding="utf-8") for path in ASSETS.glob("charts/*.js")]
    assert parts
    assert all(part.strip() in scripts[0] for part in parts), "a part was left out"
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_nothing_is_asked_from_elsewhere():
    page = Elements(demo_page().html())
    for _, found in page.found:
        assert "src" not in found
        assert (found.get("href") or "#").startswith(("#", "data:"))
        assert not any(name.startswith("on") for name in found)
    assert not re.search(r"url\((?!#)|@import", demo_page().html())


@pytest.mark.parametrize("name", [HOSTILE, "</script>", "]]>", "a & b", "\u2028\u2029", '"', "'"])
def test_names_from_data_are_text(name):
    page = Page(name, name)
    page.section(
        name,
        name,
        LineChart(name, name, name, name, [Series(name, [1], [2])], marks=[(1, name)]),
        DataTable(name, name, [name], [[name]]),
        Tiles([(name, name, name)]),
    )
    read = Elements(page.html())
    assert len(read.all("script")) == 2
    for tag in ("title", "h1", "h2", "h3", "td", "th", "dt"):
        assert set(read.all(tag)) == {name}
    (raw,) = read.all("script", type="application/json")
    assert not set("<>&\u2028\u2029") & set(raw)
    assert json.loads(raw)["series"][0]["name"] == name


def test_lines_and_bars_lie_side_by_side_and_a_single_one_fills_its_row():
    page = Page("t")
    page.section("s", "", bars(), bars(), bars(), heat(), bars(), bars())
    kinds = [found["class"] for tag, found in Elements(page.html()).found if tag == "figure"]
    wide = [kind == "chart wide" for kind in kinds]
    assert wide == [False, False, True, True, False, False]


def test_columns_of_numbers_are_right_aligned():
    page = Page("t")
    rows = [["a", "1", "-2.5e-3", "81.4 % ± 0.5"], ["b", "1,024", "3 ms", ""]]
    page.section("s", "", DataTable("t", "", ["name", "n", "x", "y"], rows))
    read = Elements(page.html())
    assert read.all("th", **{"class": "number"}) == ["n", "x", "y"]
    assert read.all("td", **{"class": "number"}) == [*rows[0][1:], *rows[1][1:]]


def test_write_is_whole_and_says_where(tmp_path):
    page = demo_page()
    path = page.write(tmp_path / "report.html")
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == page.html()
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_page_is_the_same_each_time_and_small():
    assert demo_page().html() == demo_page().html()
    assert len(Page("t").html().encode()) < 80_000


def test_a_folder_that_does_not_exist_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"report\.html"):
        Page("t").write(tmp_path / "none" / "report.html")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_and_texts_stand_out_from_what_is_behind_them(scheme):
    blocks = re.findall(r":root \{(.*?)\}", Page("t").html(), flags=re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[scheme == "dark"]))
    marks = [f"c{i}" for i in range(8)]
    assert min(contrast(colours[m], colours["card"]) for m in marks) >= 3
    for behind in ("back", "card", "shade"):
        assert contrast(colours["text"], colours[behind]) >= 7
        assert contrast(colours["dim"], colours[behind]) >= 4.5
    for strong in ("strong", "below", "above"):
        assert contrast(colours["over"], colours[strong]) >= 4.5
    assert contrast(colours["text"], colours["pale"]) >= 7


def test_an_empty_line_starts_a_paragraph():
    page = Page("Studies")
    page.section("One", "A claim.\n\nWhat was found.")
    page.section("Two", "")
    assert Elements(page.html()).all("p", **{"class": "lead"}) == ["A claim.", "What was found."]
