"""Every script in examples runs as it stands, from any folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def run(path, folder):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_there_are_examples():
    assert "drop_in" in [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    if path.stem == "drop_in":
        found = re.findall(r"^(\w+): test accuracy (\d\.\d+)$", done.stdout, flags=re.MULTILINE)
        accuracy = {name: float(value) for name, value in found}
        assert set(accuracy) == {"GCN", "NLSF"}
        assert accuracy["NLSF"] >= 0.9
