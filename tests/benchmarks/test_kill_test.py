"""The kill test, with a few kills; that it finds what it looks for; its figures in the docs."""

import json
import random
import runpy
import time
from pathlib import Path

from processes import Process

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "kill_test.py"


def kill(rows, kills):
    runpy.run_path(str(SCRIPT))["measure"](kills, 1, rows)


class Careless:
    """Writes in place, slowly."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.path = folder / "numbers.json"

    def work(self):
        for length in range(2, 12):
            with self.path.open("w") as file:
                for part in json.dumps([7] * length).split():
                    file.write(part)
                    file.flush()
                    time.sleep(0.001)

    def content(self):
        if not self.path.exists():
            return {}
        return {f"number {k}": v for k, v in enumerate(json.loads(self.path.read_text()))}

    lasting = content

    def leftovers(self):
        return []


def kill_careless(folder, rows):
    module = runpy.run_path(str(SCRIPT))
    module["TARGETS"]["careless"] = Careless
    found = module["rounds"]("careless", 12, random.Random(0), folder)
    rows.write_text(json.dumps(list(found)))


def test_a_few_kills_leave_everything_whole(tmp_path):
    rows = tmp_path / "rows.jsonl"
    process = Process(tmp_path, kill, rows, 6)
    assert process.end(300) == 0, process.errors
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert len(found) == 6
    assert {row["outcome"] for row in found} == {"whole"}
    assert {row["target"] for row in found} == {"spectrum cache", "checkpoints", "result store"}


def test_careless_writing_is_found(tmp_path):
    rows = tmp_path / "rows.json"
    process = Process(tmp_path, kill_careless, tmp_path, rows)
    assert process.end(300) == 0, process.errors
    found = json.loads(rows.read_text())
    assert len(found) == 12
    assert {row["outcome"] for row in found} - {"whole"}


def test_the_figures_are_those_of_the_rows():
    module = runpy.run_path(str(SCRIPT))
    table = module["table"](module["ROWS"])
    assert table in (ROOT / "docs" / "robustness.md").read_text()
    assert table.splitlines()[-1].startswith("| together | 200 |")
