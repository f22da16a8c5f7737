"""Runs the tests that a change touches, nearest first: ``python tests/touched.py`` (`make check`).

The change is what is not committed, and what the branch has more than main; on main without either
it is the last commit. Its tests are those whose files import a changed file, directly (the nearest)
or by way of others. A file that is not Python counts as imported by those that have its name, or
that of a folder of its, in quotes. Of many files the nearest run, and after ``--seconds`` no
further test begins.
"""

import argparse
import ast
import re
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks")
MOST = 40
"""Files of tests: more take too long to import."""
ALWAYS = ("tests/test_architecture.py", "tests/test_public_api.py")
"""These read every file of src."""


def changed(root):
    """The paths that changed, and since when, in words."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else []

    names = ("diff", "--name-only", "--no-renames")
    recent = {*git(*names, "HEAD"), *git("ls-files", "--others", "--exclude-standard")}
    for main in ("main", "origin/main"):
        base = git("merge-base", main, "HEAD")
        if base and base != git("rev-parse", "HEAD"):
            return sorted(recent.union(git(*names, base[0], "HEAD"))), f"this branch left {main}"
    if recent:
        return sorted(recent), "the last commit"
    return sorted(git(*names, "HEAD~1", "HEAD")), "the commit before the last"


def module_name(path):
    """How a file is imported: ``nlsf.nn`` for ``src/nlsf/nn/__init__.py``."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Imports:
    """Who imports whom. ``gone`` are files that were there before the change."""

    def __init__(self, root, gone=()):
        paths = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*.py"))]
        self.texts = {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in paths}
        self.modules = {module_name(p): p for p in (*gone, *self.texts) if p.endswith(".py")}
        trees = {path: list(ast.walk(ast.parse(text))) for path, text in self.texts.items()}
        self.given_on = {
            path: dict(names_of_package(module_name(path), nodes))
            for path, nodes in trees.items()
            if path.endswith("__init__.py")
        }
        self.users = defaultdict(set)
        for path, nodes in trees.items():
            for used in map(self.find, imported(nodes)):
                self.users[used].add(path)
            above = [str(folder / "conftest.py") for folder in Path(path).parents]
            for conftest in set(above) & set(self.texts):
                self.users[conftest].add(path)

    def find(self, name):
        """The file of a dotted name; where a package gives on a name, the file that has it."""
        holder, _, last = name.rpartition(".")
        if name in self.modules or not holder:
            return self.modules.get(name)
        path = self.modules.get(holder)
        place = self.given_on.get(path, {}).get(last, name)
        return (place != name and self.find(place)) or path or self.find(holder)

    def readers(self, path):
        """The files that have the name of this one, or of a folder of its, in quotes."""
        parts = "|".join(re.escape(part) for part in Path(path).parts if part not in FOLDERS)
        quoted = re.compile(rf"[\"'/]({parts})[\"'/]")
        return {user for user, text in self.texts.items() if quoted.search(text)}

    def steps(self, paths):
        """For each file that a change reaches: by how many imports."""
        steps = {path: 0 for path in paths if path.endswith(".py")}
        for path in set(paths) - set(steps):
            steps |= dict.fromkeys(self.readers(path.removeprefix("src/nlsf/")) - set(steps), 1)
        wave = sorted(steps, key=lambda path: steps[path])
        for path in wave:  # it grows meanwhile
            new = sorted(self.users[path] - set(steps))
            steps |= dict.fromkeys(new, steps[path] + 1)
            wave += new
        return steps


def imported(nodes):
    """The dotted names that a file imports, also inside functions and as texts."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"nlsf[.\w]+(:\w+)?", str(node.value)):
            yield node.value.split(":")[0]


def names_of_package(package, nodes):
    """Where a package has its names from: imports, or a table of the places of names."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    yield key.value, f"{package}.{value.value}"


def chosen(root, paths):
    """The files to hand to pytest, nearest first: tests, and changed sources for their examples."""
    imports = Imports(root, [path for path in paths if not (root / path).exists()])
    steps = imports.steps(paths)
    sources = [path for path in paths if re.match(r"src/.*\.py$", path) and path in imports.texts]
    rooms = {Path(path).parts[2] for path in paths if path.startswith("src/nlsf/")}
    always = [path for path in ALWAYS if rooms and path in imports.texts]
    tests = [p for p in steps if p in imports.texts and re.match(r"tests/(.*/)?test_[^/]*$", p)]
    # Of those that are equally near, those that mirror the changed package come first.
    tests.sort(key=lambda p: (steps[p], Path(p).parts[1] not in rooms, p))
    return list(dict.fromkeys([*sources, *always, *tests]))


class Bound:
    """Begins no further test when the time is over."""

    def __init__(self, end):
        self.end, self.ran, self.session = end, 0, None

    def pytest_collection_finish(self, session):
        self.session = session

    def pytest_runtest_logfinish(self):
        self.ran += 1
        if time.monotonic() > self.end and self.ran < len(self.session.items):
            self.session.shouldstop = "the time is over"


def main():
    """Chooses, runs, and says in the end what was left out."""
    parser = argparse.ArgumentParser(description="Run the tests that a change touches.")
    parser.add_argument("--seconds", type=float, default=40, help="no test begins after these")
    bound = Bound(time.monotonic() + parser.parse_args().seconds)
    paths, since = changed(ROOT)
    files = chosen(ROOT, paths)
    print(f"{len(paths)} files changed since {since}; {len(files)} files of tests reach them.")
    if not files:
        print("No test is touched.")
        return 0
    for path in files[:MOST]:
        if path.startswith("src/"):
            # Left to pytest, a file whose package imports it would be run twice.
            with suppress(Exception):  # the tests will say what is wrong
                import_module(module_name(path))
    code = pytest.main(["-q", "--doctest-modules", *files[:MOST]], plugins=[bound])
    stopped = bound.session is not None and bound.ran < len(bound.session.items)
    if stopped or len(files) > MOST:
        print(f"Only the nearest ran, {bound.ran:,} tests: 'make test' runs all.")
    if code == pytest.ExitCode.INTERRUPTED and stopped and not bound.session.testsfailed:
        return 0
    return int(code) if code != pytest.ExitCode.NO_TESTS_COLLECTED else 0


if __name__ == "__main__":
    sys.exit(main())
