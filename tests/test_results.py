"""The numbers in the documentation are those of the rows in ``results``."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from nlsf.data import features, find, load
from nlsf.data.metrics import interval
from nlsf.tables.fill.results import Store, _settings
from nlsf.tables.render.document import update
from nlsf.tables.spec.spec_file import experiment_names
from nlsf.train.settings.config import resolve
from nlsf.train.settings.models import MODELS
from nlsf.train.settings.toml import parse_toml, write_toml

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STORE = Store(ROOT / "results" / "tables")
DEFAULTS = sorted((ROOT / "results" / "defaults").glob("*.jsonl"))


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def line_of(path):
    """The line of the table in docs/training.md that these rows make."""
    rows = rows_of(path)
    numbers = []
    for part in ("val", "test"):
        mean, half = interval([100 * row[f"{part}_accuracy"] for row in rows])
        numbers.append(f"{mean:.2f} +- {half:.2f}")
    first = rows[0]
    sizes = " / ".join(f"{size:,}" for size in first["sizes"])
    cells = [first["data"], first["model"], first["protocol"], sizes, *numbers]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("path", DEFAULTS, ids=lambda path: path.stem)
def test_the_table_of_defaults_is_made_from_rows(path):
    assert line_of(path) in (ROOT / "docs" / "training.md").read_text()


def test_the_table_of_defaults_has_no_other_lines():
    text = (ROOT / "docs" / "training.md").read_text()
    table = re.search(r"\| data \| model \| protocol \|.*?\n\n", text, flags=re.DOTALL)
    assert len(table[0].strip().splitlines()) == 2 + len(DEFAULTS)
    assert DEFAULTS


@pytest.mark.parametrize("path", DEFAULTS, ids=lambda path: path.stem)
def test_rows_are_of_one_run_with_its_settings(path):
    rows = rows_of(path)
    spec = hashlib.sha256(path.with_suffix(".toml").read_bytes()).hexdigest()
    assert {row["spec"] for row in rows} == {spec}
    assert [row["seed"] for row in rows] == list(range(10))
    assert all(row["versions"]["torch"] for row in rows)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results" / "baselines").glob("*.jsonl")), ids=lambda path: path.stem
)
def test_the_tables_of_peers_are_made_from_rows(path):
    rows = rows_of(path)
    mean, half = interval([100 * row["test_accuracy"] for row in rows])
    nodes, graphs = (ROOT / "docs" / "baselines.md").read_text().split("| graph level |")
    lines = (nodes if rows[0]["data"] == "Cora" else graphs).splitlines()
    (line,) = [line for line in lines if line.startswith(f"| `{rows[0]['model']}` ")]
    assert f"| {mean:.1f} +- {half:.1f} |" in line


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_made_from_rows(path):
    text = path.read_text()
    assert update(text, ROOT / "experiments", STORE) == text, (
        f"run 'nlsf table --document {path.relative_to(ROOT)}'"
    )


def test_every_experiment_has_its_table():
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    marked = re.findall(r"^<!-- table (\S+) -->$", text, flags=re.MULTILINE)
    names = experiment_names(ROOT / "experiments")
    assert sorted(marked) == names, "mark one place in docs by '<!-- table NAME -->'"


def test_rows_of_tables_fit_their_cells():
    """The store itself refuses another id, other settings, and seeds that stand there twice."""
    cells = list(STORE.cells())
    for cell in cells:
        for row in STORE.rows(cell):
            assert row["versions"]["torch"], cell.stem
    times = {path.parent.name for path in STORE.path.glob("*/timing.jsonl")}
    folders = {path.name for path in STORE.path.glob("*")}
    assert {cell.stem for cell in cells} == folders - times


@pytest.mark.data
@pytest.mark.parametrize("name", ["Cora", "MUTAG"])
def test_defaults_are_still_those_of_the_rows(root, name):
    """What a preset or a model fills in is no part of a cell's id, and must not drift."""
    dataset, entry = load(name, root, offline=True), find(name)
    cells = [cell for cell in STORE.cells() if cell.data == {"name": name}]
    assert len(cells) > 10
    for cell in cells:
        config = resolve(cell.table(STORE.rows(cell)[0]["point"], [0]), dataset, entry.protocol)
        config = replace(config, features=features.fit(config.features, dataset))
        path = STORE.path / cell.stem / "config.toml"
        stored = parse_toml(path.read_text(), path)
        for key, value in MODELS[cell.model].fixed.items():
            # A name may have left open once what it decides now, if it is the same.
            assert stored["model"].pop(key, value) == value, cell.stem
        assert _settings(config.to_toml(), path) == write_toml(stored), cell.stem


def test_the_example_of_the_documentation_is_the_file():
    example = (ROOT / "experiments" / "digits.toml").read_text()
    assert f"```toml\n{example}```" in (ROOT / "docs" / "experiments.md").read_text()
