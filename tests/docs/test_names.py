"""What the documentation names is there: files of the repository, and names in the package."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import nlsf

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:src|docs|tests|benchmarks|examples|experiments|results)/[\w./-]+)`")
NAME = re.compile(r"(?<![\w/\[])(nlsf(?:\.\w+)+)")
SOURCE = re.compile(r"`([\w./]+/[\w./]+\.py)`")
CLASS = re.compile(r"`([A-Z][a-z]+[A-Z]?\w*)(?:[.(][^`]*)?`")
PATTERN = re.compile("STEM|NAME")
ELSEWHERE = {  # classes of Python, PyTorch and Optuna
    *("DistributedDataParallel", "SyncBatchNorm", "JournalStorage"),
    *("OverflowError", "TokenError"),
}


def exists(name):
    """Whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.fixture(scope="module")
def names():
    """All names in all modules of the package, those that they import too."""
    walked = pkgutil.walk_packages(nlsf.__path__, "nlsf.")
    modules = [module.name for module in walked if "__main__" not in module.name]
    return {name for module in modules for name in vars(importlib.import_module(module))}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_and_files_exist(page, names):
    """In the text; the code of a page runs when the page is built."""
    text = BLOCK.sub("", page.read_text())
    files = {name for name in FILE.findall(text) if not PATTERN.search(name)}
    assert not [name for name in files if not (ROOT / name).exists()]
    sources = {name for name in SOURCE.findall(text) if not PATTERN.search(name)}
    places = (ROOT, ROOT / "src", ROOT / "src" / "nlsf")
    assert not [s for s in sources if not any((place / s).exists() for place in places)]
    assert not [name for name in set(NAME.findall(text)) if not exists(name)]
    assert set(CLASS.findall(text)) - names - ELSEWHERE == set()


def test_the_tree_of_architecture_is_that_of_the_source():
    """Its first two levels: a package or a file a line."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    (tree,) = re.findall(r"^    src/nlsf/\n((?:      .*\n)+)", text, flags=re.MULTILINE)
    rooms = {line.split()[0].rstrip("/") for line in tree.splitlines() if line[6] != " "}
    there = {path.name for path in (ROOT / "src" / "nlsf").iterdir() if path.name[0].isalpha()}
    assert rooms == there - {"py.typed"}
    inner = {line.split()[0].rstrip("/") for line in tree.splitlines() if line[6] == " "}
    spectral = (ROOT / "src" / "nlsf" / "spectral").iterdir()
    assert inner <= {path.name for path in spectral}


def test_the_look_finds_what_is_missing():
    assert exists("nlsf.spectral.partial_eigh")
    assert not exists("nlsf.spectral.no_such_name")
