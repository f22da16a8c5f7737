"""What the documentation names is there: files of the repository, and names in the package."""

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:src|docs|tests|benchmarks|examples|experiments|results)/[\w./-]+)`")
NAME = re.compile(r"(?<![\w/\[])(nlsf(?:\.\w+)+)")
PATTERN = re.compile("STEM|NAME")


def exists(name):
    """Whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_and_files_exist(page):
    """In the text; the code of a page runs when the page is built."""
    text = BLOCK.sub("", page.read_text())
    files = {name for name in FILE.findall(text) if not PATTERN.search(name)}
    assert not [name for name in files if not (ROOT / name).exists()]
    assert not [name for name in set(NAME.findall(text)) if not exists(name)]


def test_the_look_finds_what_is_missing():
    assert exists("nlsf.spectral.partial_eigh")
    assert not exists("nlsf.spectral.no_such_name")
