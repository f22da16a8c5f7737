"""The documentation builds, strictly; what it says leads somewhere and is fetched from nowhere."""

import importlib
import os
import re
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from filelock import FileLock

import nlsf

ROOT = Path(__file__).parents[2]
PACKAGES = [*(f"nlsf.{name}" for name in nlsf.__all__ if name != "__version__"), "nlsf.tables"]
EXECUTED = [
    path.relative_to(ROOT / "docs").with_suffix(".html")
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.read_text().startswith("---") and "execute: true" in path.read_text().split("---")[1]
]
SEEN = [
    "index.html",
    "glossary.html",
    "scaling.html",
    "tables.html",
    "reference/nlsf.nn.html",
    "tutorials/node_classification.html",
]
"""Pages for the browser: wide tables, formulas, long signatures, consoles."""


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """The built site, by whichever process of the test run comes first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "site"
    with FileLock(f"{folder}.lock"):
        if not (folder / "index.html").exists():
            done = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder],
                cwd=ROOT,
                env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert "WARNING" not in done.stderr, done.stderr
    return folder


class Found(HTMLParser):
    """What a page points to, what it fetches, and the places in it that can be pointed to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.fetched, self.ids = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}
        if values.get("src"):
            self.fetched.append(values["src"])
        if values.get("href"):
            (self.links if tag == "a" else self.fetched).append(values["href"])


@pytest.fixture(scope="session")
def pages(site):
    """Every page but the one for missing pages, whose links are those of a server's root."""
    return {path: Found(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_link_and_anchor_leads_somewhere(pages):
    broken = defaultdict(list)
    for path, found in pages.items():
        for link in [*found.links, *found.fetched]:
            if urlsplit(link).scheme or link == ".":
                continue
            target, anchor = urldefrag(link)
            other = (path.parent / unquote(target)).resolve() if target else path
            known = pages[other].ids if other in pages else None
            if not other.exists() or (
                anchor and known is not None and unquote(anchor) not in known
            ):
                broken[path.name].append(link)
    assert not broken
    assert len(pages) > 40


def test_nothing_is_fetched_from_elsewhere(site, pages):
    foreign = re.compile(r"^(https?:)?//")
    assert not [url for found in pages.values() for url in found.fetched if foreign.match(url)]
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_in_the_reference(pages, site, package):
    assert site / "reference" / f"{package}.html" in pages
    places = {
        place
        for path, found in pages.items()
        if path.parent.name == "reference"
        for place in found.ids
    }
    module = importlib.import_module(package)
    assert module.__all__

    def shown(name):
        home = getattr(getattr(module, name), "__module__", None)
        own = (p for p in places if p.startswith(f"{package}.") and p.endswith(f".{name}"))
        return f"{home}.{name}" in places or any(own)

    assert not [name for name in module.__all__ if not shown(name)]


def test_formulas_are_shown(site):
    text = "".join(path.read_text() for path in (site / "reference").glob("*.html"))
    assert text.count("<math") > 80
    for rest in ("arithmatex", ".. math::", ":math:", ".. code-block"):
        assert rest not in text


@pytest.mark.parametrize("page", EXECUTED, ids=str)
def test_executed_pages_show_what_came_out(site, page):
    assert 'class="result"' in (site / page).read_text()


def test_all_kinds_of_pages_are_executed():
    assert {str(page.parent) for page in EXECUTED} == {".", "howto", "tutorials"}
    assert len(EXECUTED) == 13


@pytest.mark.parametrize("width", [390, 1440])
def test_pages_are_sound_in_a_browser(browser, site, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "request", lambda r: None if r.url.startswith(("file:", "data:")) else said.append(r.url)
    )
    for name in SEEN:
        page.goto((site / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
    context.close()
    assert said == []
