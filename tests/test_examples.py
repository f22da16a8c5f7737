"""Every script in examples is short, and runs as it stands, from any folder."""

import re
import runpy
from pathlib import Path

import pytest

from processes import Process

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def numbers(pattern, output):
    return {name: float(value) for name, value in re.findall(pattern, output, flags=re.MULTILINE)}


def the_filter_learns(output, folder):
    accuracy = numbers(r"^(\w+): test accuracy (\d\.\d+)$", output)
    assert set(accuracy) == {"GCN", "NLSF"}
    assert accuracy["NLSF"] >= 0.9


def own_bands_leave_the_least_error(output, folder):
    error = numbers(r"^(.*): error (\d\.\d+)$", output)
    assert min(error, key=error.get) == "bands of my own"
    assert max(error, key=error.get) == "as measured"


def only_linear_filters_and_ours_commute(output, folder):
    rows = [re.split(r"\s{2,}", line) for line in output.splitlines()[1:]]
    assert {row[1] for row in rows} == {"yes"}
    commute = {row[0] for row in rows if row[2] == "yes"}
    assert commute == {"ChebConv", "APPNP", "GCNConv", "NodeNLSF"}


def the_plan_is_faster(output, folder):
    found = re.findall(r"^(.*): (\d\.\d+) in (\d+\.\d+) s$", output, flags=re.MULTILINE)
    (_, accuracy, seconds), (_, planned, less) = found
    assert float(planned) == pytest.approx(float(accuracy), abs=0.005)
    assert float(less) < float(seconds) / 2


def half_of_the_error_is_gone(output, folder):
    error = numbers(r"^(.*): error (\d\.\d+)$", output)
    assert error["recovered"] < error["as read"] / 2


def the_graph_matters(output, folder):
    accuracy = numbers(r"^(\w+): test accuracy (\d+\.\d)", output)
    assert accuracy["graph"] > accuracy["mlp"]


def the_pages_are_there(output, folder):
    pages = [folder / line for line in output.splitlines()]
    assert len(pages) == 3
    assert all(page.read_text().startswith("<!") for page in pages)


SHOWS = {
    "custom_bands": own_bands_leave_the_least_error,
    "drop_in": the_filter_learns,
    "equivariance_check": only_linear_filters_and_ours_commute,
    "molecules": the_graph_matters,
    "own_plan": the_plan_is_faster,
    "report_page": the_pages_are_there,
    "sensor_network": half_of_the_error_is_gone,
}


def test_every_example_is_held_to_what_it_shows():
    assert [path.stem for path in EXAMPLES] == sorted(SHOWS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short_and_listed(path):
    assert len(path.read_text().splitlines()) < 60
    assert f"[{path.name}]({path.name})" in (FOLDER / "README.md").read_text()
    shown = (FOLDER.parent / "docs" / "examples.md").read_text()
    assert f'--8<-- "examples/{path.name}"' in shown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    process = Process(tmp_path, runpy.run_path, str(path), None, "__main__")
    assert process.end(120) == 0, process.errors
    SHOWS[path.stem](process.output, tmp_path)
