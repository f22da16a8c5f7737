"""`make check` finds the tests that a change touches."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import touched

ROOT = Path(__file__).parents[1]
FILES = {
    "src/nlsf/__init__.py": "",
    "src/nlsf/core/__init__.py": "from nlsf.core.bands import Bands\n",
    "src/nlsf/core/bands.py": "class Bands: ...\n",
    "src/nlsf/core/other.py": "",
    "src/nlsf/lazy/__init__.py": "_PLACES = {'Table': 'fill.table'}\n",
    "src/nlsf/lazy/fill/__init__.py": "",
    "src/nlsf/lazy/fill/table.py": "def f():\n    from nlsf.core.bands import Bands\n",
    "src/nlsf/lazy/page.css": "",
    "src/nlsf/lazy/page.py": "STYLE = 'page.css'\n",
    "tests/conftest.py": "",
    "tests/cases.py": "from nlsf.core import Bands\n",
    "tests/core/conftest.py": "from nlsf.core.other import nothing\n",
    "tests/core/test_bands.py": "from nlsf.core.bands import Bands\n",
    "tests/lazy/test_page.py": "import nlsf.lazy.page\n",
    "tests/lazy/test_table.py": "from nlsf.lazy import Table\n",
    "tests/test_bands.py": "from nlsf.core import Bands\n",
    "tests/test_cases.py": "import cases\n",
    "tests/test_patch.py": "def test(patch):\n    patch('nlsf.core.other.nothing', 1)\n",
    "tests/test_readme.py": "TEXT = 'README.md'\n",
    "README.md": "",
    "Makefile": "",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        # The mirror of the package first, then who imports it by its package; what is built on it
        # is further away.
        ("src/nlsf/core/bands.py", "core/test_bands test_bands lazy/test_table test_cases"),
        ("src/nlsf/core/other.py", "test_patch core/test_bands"),
        ("src/nlsf/lazy/fill/table.py", "lazy/test_table"),
        ("src/nlsf/lazy/page.css", "lazy/test_page"),
        ("tests/cases.py", "test_cases"),
        ("tests/core/test_bands.py", "core/test_bands"),
        ("README.md", "test_readme"),
        ("Makefile", ""),
    ],
)
@pytest.mark.parametrize("gone", [False, True])
def test_what_reaches_a_change_nearest_first(tree, path, tests, gone):
    if gone:
        (tree / path).unlink()
    found = [name for name in touched.chosen(tree, [path]) if not name.startswith("src/")]
    there = [f"tests/{name}.py" for name in tests.split()]
    assert found == [name for name in there if (tree / name).exists()]


def test_examples_of_a_changed_file_are_run_first(tree):
    assert touched.chosen(tree, ["src/nlsf/core/bands.py"])[0] == "src/nlsf/core/bands.py"


def test_laws_and_commands_reach_the_operators_of_this_project():
    paths = ["src/nlsf/spectral/operators/shift.py"]
    found = touched.chosen(ROOT, paths)
    assert found[: len(paths) + len(touched.ALWAYS)] == [*paths, *touched.ALWAYS]
    assert {"tests/spectral/test_laws.py", "tests/cli/test_train.py"} <= set(found)


def git(tree, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True)


def commit(tree, name):
    (tree / name).write_text(name)
    git(tree, "add", "-A")
    git(tree, "commit", "-m", name)


def test_what_changed(tree):
    git(tree, "init", "-b", "main")
    commit(tree, "a.py")
    commit(tree, "b.py")
    assert touched.changed(tree) == (["b.py"], "the commit before the last")
    (tree / "a.py").write_text("other")
    (tree / "new.py").write_text("")
    assert touched.changed(tree) == (["a.py", "new.py"], "the last commit")
    git(tree, "checkout", "-b", "branch")
    commit(tree, "c.py")
    (tree / "b.py").unlink()
    found, since = touched.changed(tree)
    assert (found, since) == (["a.py", "b.py", "c.py", "new.py"], "this branch left main")


def test_it_says_what_it_did(tree):
    shutil.copy(ROOT / "tests" / "touched.py", tree / "tests" / "touched.py")
    git(tree, "init", "-b", "main")
    commit(tree, "tests/test_new.py")

    def run(text, name="tests/test_new.py", seconds=60):
        (tree / name).write_text(text)
        command = [sys.executable, "tests/touched.py", "--seconds", str(seconds)]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        return done.returncode, done.stdout

    three = "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n"
    code, said = run(three, seconds=0)
    assert (code, "Only the nearest ran, 1 tests" in said) == (0, True), said
    (tree / "tests" / "touched.py").write_text(
        (ROOT / "tests" / "touched.py").read_text().replace("MOST = 40", "MOST = 1")
    )
    (tree / "tests" / "test_other.py").write_text(three)
    code, said = run(three)
    assert (code, "3 passed" in said, "Only the nearest ran, 3 tests" in said) == (0, True, True)
    code, said = run("def test_a(): assert False\ndef test_b(): pass\n", seconds=0)
    assert code != 0
    git(tree, "checkout", ".")
    (tree / "tests" / "test_other.py").unlink()
    code, said = run("all:", "Makefile")
    assert (code, "No test is touched" in said) == (0, True), said
