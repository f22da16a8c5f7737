"""The fuzz of the readers, with a few cases; that it finds what it looks for; its figures."""

import json
import os
import runpy
from pathlib import Path

import pytest

from processes import Process

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "fuzz_readers.py"


def few(rows):
    module = runpy.run_path(str(SCRIPT))
    module["measure"](module["KINDS"], 8, 3, rows)


def crash():
    os.abort()


def careless(fail, rows):
    """A reader that fails in this way wherever its file is damaged."""
    module = runpy.run_path(str(SCRIPT))

    def kind(folder):
        path = folder / "file.txt"
        path.write_text("whole")

        def read():
            if path.read_text(errors="replace") != "whole":
                fail()

        return read

    module["KINDS"]["careless"] = kind
    module["measure"](["careless"], 3, 0, rows)


def too_much_memory():
    bytearray(3 << 30)


def a_program():
    os.system("true")


def a_key():
    {}["key"]


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_few_cases_end_as_they_should(tmp_path):
    rows = tmp_path / "rows.jsonl"
    process = Process(tmp_path, few, rows)
    assert process.end(300) == 0, process.errors
    found = rows_of(rows)
    assert [row for row in found if "outcome" in row] == []
    assert sum(row["refused"] for row in found) > 80
    assert sum(row.get("read", 0) for row in found) > 5


@pytest.mark.parametrize(
    ("fail", "outcome"),
    [
        (a_key, "KeyError: 'key'"),
        (crash, "crash (exit -6)"),
        (too_much_memory, "MemoryError"),
        (a_program, "does more than read"),
    ],
)
def test_a_careless_reader_is_found(tmp_path, fail, outcome):
    rows = tmp_path / "rows.jsonl"
    process = Process(tmp_path, careless, fail, rows)
    assert process.end(300) == 0, process.errors
    *cases, total = rows_of(rows)
    assert total["other"] == len(cases) == 3
    assert all(row["outcome"].startswith(outcome) for row in cases), cases


def test_the_figures_are_those_of_the_rows():
    module = runpy.run_path(str(SCRIPT))
    table = module["table"](module["ROWS"])
    assert table in (ROOT / "docs" / "robustness.md").read_text()
    assert table.splitlines()[-1].endswith(" | 0 |")
    assert {row["kind"] for row in rows_of(module["ROWS"])} == set(module["KINDS"])
