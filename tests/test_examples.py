"""Every script in examples runs as it stands, from any folder."""

import re
import runpy
from pathlib import Path

import pytest

from processes import Process

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples():
    assert "drop_in" in [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    process = Process(tmp_path, runpy.run_path, str(path), None, "__main__")
    assert process.end(120) == 0, process.errors
    if path.stem == "drop_in":
        found = re.findall(r"^(\w+): test accuracy (\d\.\d+)$", process.output, flags=re.MULTILINE)
        accuracy = {name: float(value) for name, value in found}
        assert set(accuracy) == {"GCN", "NLSF"}
        assert accuracy["NLSF"] >= 0.9
