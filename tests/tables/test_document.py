"""Marked parts of a document are what the rows make, and all else stays."""

import pytest

from nlsf.errors import ConfigError, FormatError
from nlsf.tables.fill.results import Store
from nlsf.tables.render.document import update
from nlsf.tables.spec.spec_file import find_experiment
from tables.spec_texts import DATA, GCN, VALUE, experiment

BEFORE = "# Title\n\nA table:\n\n"
MARKED = f"{BEFORE}<!-- table small -->\noutdated\n<!-- end -->\n\nThe end."


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.toml").write_text(experiment(DATA, GCN, VALUE))
    (tmp_path / "other.toml").write_text(experiment(DATA, VALUE))
    return tmp_path


@pytest.fixture
def store(folder):
    store = Store(folder / "results")
    table = find_experiment("small", folder)
    cell = next(cell for method, _, cell in table.cells() if method.label == "GCN")
    rows = [
        {"seed": seed, "test_accuracy": value, "sizes": [10, 10, 80], "split": f"s{seed}"}
        for seed, value in enumerate((0.75, 0.77))
    ]
    store.write(cell, 'protocol = "random"\n', [], rows)
    return store


def test_the_marked_part_is_the_table(folder, store):
    text = update(MARKED, folder, store)
    assert text.startswith(f"{BEFORE}<!-- table small -->\n\n| Method | csbm |\n")
    assert text.endswith("\n\n<!-- end -->\n\nThe end.")
    assert "| GCN | **76.00 +- 12.71** |" in text
    assert "outdated" not in text
    assert update(text, folder, store) == text


def test_several_tables_each_get_their_own(folder, store):
    both = MARKED + "\n" + MARKED.replace("small", "other")
    text = update(both, folder, store)
    assert text.count("| Method | csbm |") == 1
    assert text.count("Not run yet.") == 1
    assert text.index("| Method") < text.index("Not run yet.")


@pytest.mark.parametrize("text", ["", "a\n", "a", "a\r\n`<!-- table small -->` in words\n\n"])
def test_a_document_without_tables_stays(folder, store, text):
    assert update(text, folder, store) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\n<!-- table small -->\nb\n", "table of line 2 has no end"),
        ("a\n<!-- end -->\n", "Line 2 is '<!-- end -->', but no table is open"),
        (f"<!-- table other -->\n{MARKED}", "Line 6 begins a table, but that of line 1 is open"),
    ],
)
def test_marks_that_do_not_match_are_refused(folder, store, text, says):
    with pytest.raises(FormatError, match=says):
        update(text, folder, store)


def test_an_unknown_table_is_refused(folder, store):
    with pytest.raises(ConfigError, match=r"no experiment 'smal'\. Did you mean 'small'"):
        update(MARKED.replace("table small", "table smal"), folder, store)
