import csv
import io
import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nlsf import cli
from nlsf.cli import app
from nlsf.tables.fill.results import Store
from processes import Process, nlsf
from tables.spec_texts import DATA, GCN, VALUE, experiment, quick

PUBLISHED = Path(__file__).parents[2] / "experiments" / "published.csv"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "small.toml").write_text(quick(tuned=()))

    def run(*arguments):
        return CliRunner().invoke(app, ["table", *arguments])

    return run


def test_experiments_are_listed_with_what_is_filled(run, tmp_path):
    (tmp_path / "experiments" / "other.toml").write_text(experiment(DATA, GCN))
    assert run("small", "--run", "-q", "-m", "gcn").exit_code == 0
    done = run()
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    counts = {words[0]: words[1:4] for words in lines if len(words) > 4 and words[2] == "of"}
    assert counts == {"other": ["0", "of", "1"], "small": ["2", "of", "4"]}


def test_missing_cells_are_run_and_shown(run, tmp_path):
    empty = run("small", "-f", "csv")
    assert {row["n"] for row in csv.DictReader(io.StringIO(empty.stdout))} == {"0"}
    assert not (tmp_path / "results").exists()
    done = run("small", "--run")
    assert done.exit_code == 0, done.output
    for number, name in enumerate(
        ("Value NLSF on small", "Value NLSF on large", "GCN on small", "GCN on large"), start=1
    ):
        assert f"cell {number} of 4: {name}" in done.output
        assert f"{name}: test accuracy" in done.output
    full = run("small", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(full.stdout)))
    assert [row["n"] for row in rows] == ["2"] * 4
    store = Store(tmp_path / "results" / "tables")
    assert {row["cell"] for row in rows} == {cell.id for cell in store.cells()}
    for row in rows:
        assert row["method"] in done.output
    again = run("small", "--run")
    assert "cell 1" not in again.output


def test_quiet_prints_the_table_only(run):
    done = run("small", "--run", "-q", "-m", "gcn", "-d", "small")
    assert done.exit_code == 0, done.output
    assert "cell 1" not in done.output
    assert "epoch" not in done.output
    assert "GCN" in done.output


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "latex"])
def test_a_table_goes_to_the_screen_or_into_a_file(run, tmp_path, form):
    run("small", "--run", "-q", "-m", "gcn", "-d", "small")
    shown = run("small", "-f", form)
    assert shown.exit_code == 0, shown.output
    written = run("small", "-f", form, "-o", "table.txt")
    assert written.exit_code == 0, written.output
    assert "table.txt" in written.output
    assert (tmp_path / "table.txt").read_text() == shown.stdout
    assert {"terminal": "small", "markdown": "| ---", "csv": "paired_to", "latex": "toprule"}[
        form
    ] in shown.stdout


def test_differences_to_another_row(run):
    run("small", "--run", "-q", "-d", "small")
    for options, minus in (((), "Value NLSF"), (("--against", "gcn"), "GCN")):
        shown = run("small", "-f", "markdown", *options)
        assert shown.exit_code == 0, shown.output
        assert f"| Minus {minus} |" in shown.stdout


def test_progress_is_not_in_what_is_piped(run):
    done = run("small", "--run", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["n"] for row in rows] == ["2"] * 4
    assert "cell 1 of 4" in done.stderr


@pytest.mark.parametrize("label", ["att(ind(L), val(N))", "on [X, A]"])
def test_rows_and_columns_are_chosen_by_label_or_model(run, tmp_path, label):
    both = VALUE.replace("Value NLSF", label)
    (tmp_path / "experiments" / "small.toml").write_text(experiment(DATA, GCN, both))
    for chosen, labels in (
        ("gcn", ["GCN"]),
        (f"{label}, GCN", ["GCN", label]),
        ("value", [label]),
    ):
        done = run("small", "-f", "csv", "-m", chosen)
        rows = csv.DictReader(io.StringIO(done.stdout))
        assert [row["method"] for row in rows] == labels


def test_without_time_nothing_begins_and_what_is_left_is_said(run, tmp_path):
    done = run("small", "--run", "--budget", "0s", "-m", "gcn")
    assert done.exit_code == 0, done.output
    assert "No time was left for 2 cells: GCN on small, GCN on large." in done.output
    assert "nlsf table small --run" in done.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("budget", ["2h", "30m", "90s", "1h30m"])
def test_budgets_are_times(run, budget):
    done = run("small", "--run", "--budget", budget, "-m", "gcn", "-d", "small")
    assert done.exit_code == 0, done.output
    expected = {"2h": "2:00:00", "30m": "30:00", "90s": "1:30", "1h30m": "1:30:00"}[budget]
    assert f" elapsed of {expected}\n" in done.output


def test_a_cell_that_fails_is_said_and_the_others_go_on(run, tmp_path):
    text = quick(tuned=()).replace('label = "small"', 'label = "small"\nprotocol = "dense"')
    (tmp_path / "experiments" / "small.toml").write_text(text)
    done = run("small", "--run", "-m", "gcn", "-q")
    assert done.exit_code == 1
    assert "Failed: GCN on small: csbm comes without 'dense' splits" in done.output
    assert len(list((tmp_path / "results" / "tables").iterdir())) == 1


def test_the_place_of_the_data_leaves_no_trace_in_the_rows(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    done = run("small", "--run", "-q", "-m", "gcn", "--data-root", "elsewhere", "--offline")
    assert done.exit_code == 0, done.output
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert len(files) == 8
    assert not any("elsewhere" in path.read_text() for path in files)
    assert "cell 1" not in run("small", "--run", "-m", "gcn").output


def test_published_numbers_stand_beside_ours(run, tmp_path):
    data, method = DATA + 'paper = "Cora"\n', GCN + 'paper = "GCN"\n'
    text = experiment(data, method, top='title = "T"\npaper = "node-main"')
    (tmp_path / "experiments" / "small.toml").write_text(text)
    (tmp_path / "experiments" / "published.csv").write_bytes(PUBLISHED.read_bytes())
    (row,) = csv.DictReader(io.StringIO(run("small", "-f", "csv").stdout))
    assert (row["paper"], row["paper_spread"]) == ("81.92", "0.90")


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["smal"], "There is no experiment 'smal'. Did you mean 'small'?", 1),
        (["small", "--experiments", "nowhere"], "There are no experiments (NAME.toml) in", 1),
        (["--experiments", "nowhere"], "There are no experiments (NAME.toml) in nowhere", 1),
        (["small", "-m", "gnc"], "There is no method in small 'gnc'. Did you mean 'gcn'?", 1),
        (["small", "--run", "--against", "gnc"], "in small 'gnc'. Did you mean 'gcn'?", 1),
        (["--against", "gcn"], "which experiment?", 2),
        (["small", "-d", "cora"], "There is no data set in small 'cora'.", 1),
        (["wrong"], "experiments/wrong.toml: There is no key 'titel'. Did you mean 'title'?", 1),
        (["paper"], "There is no file experiments/published.csv", 1),
        (["small", "--budget", "2h"], "--budget is for --run", 2),
        (["small", "--run", "--budget", "2"], "expects a time, as in 2h, 30m or 90s", 2),
        (["small", "--run", "--budget", ""], "expects a time, as in 2h, 30m or 90s", 2),
        (["small", "--run", "--budget", "-2h"], "expects a time, as in 2h, 30m or 90s", 2),
        (["small", "-f", "html"], "is not one of", 2),
        (["--run"], "which experiment?", 2),
        (["-f", "csv"], "which experiment?", 2),
        (["--document", "a.md", "-f", "csv"], "--document writes whole tables", 2),
    ],
)
def test_errors_are_one_sentence(run, tmp_path, monkeypatch, capsys, arguments, says, code):
    (tmp_path / "experiments" / "wrong.toml").write_text('titel = "T"')
    paper = experiment(DATA, GCN, top='title = "T"\npaper = "node-main"')
    (tmp_path / "experiments" / "paper.toml").write_text(paper)
    if arguments[:1] == ["--experiments"]:
        (tmp_path / "nowhere").mkdir()
    monkeypatch.setattr(sys, "argv", ["nlsf", "table", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
    errors = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert says in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "runs").exists()


def test_stopped_by_hand_it_says_what_is_kept_and_goes_on(run, tmp_path):
    (tmp_path / "experiments" / "small.toml").write_text(quick(tuned=(), epochs=150))
    process = Process(tmp_path, nlsf, "table", "small", "--run", "-m", "gcn")
    work, store = tmp_path / "runs" / "tables", Store(tmp_path / "results" / "tables")
    assert process.wait_for(lambda: len(list(work.glob("*/run-*/metrics.jsonl"))) == 2)
    assert process.signal(signal.SIGINT) == 1
    said = " ".join(process.said.split())
    assert "Stopped: 1 of 2 cells are filled and kept in results/tables" in said
    assert "what was begun is kept in runs/tables. Go on with the same command." in said
    assert "Traceback" not in said
    (first,) = store.cells()
    before = store.rows(first)
    done = run("small", "--run", "-m", "gcn")
    assert done.exit_code == 0, done.output
    assert "cell 1 of 1: GCN on large" in done.output
    assert len(list(store.cells())) == 2
    assert store.rows(first) == before
    assert len(list(work.glob("*/run-*"))) == 2


def test_the_tables_of_a_document_are_written_anew(run, tmp_path):
    run("small", "--run", "-q", "-m", "gcn", "-d", "small")
    path = tmp_path / "tables.md"
    path.write_text("# Tables\n\n<!-- table small -->\n<!-- end -->\n")
    done = run("--document", "tables.md")
    assert done.exit_code == 0, done.output
    assert run("small", "-f", "markdown").stdout in path.read_text()
    again = run("--document", "tables.md")
    assert "up to date" in again.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!-- table small -->\n", "tables.md: The table of line 1 has no end"),
        (None, "No such file"),
    ],
)
def test_a_document_that_cannot_be_written_is_left(run, tmp_path, text, says):
    if text is not None:
        (tmp_path / "tables.md").write_text(text)
    done = run("--document", "tables.md")
    assert says in str(done.exception)
    assert list(tmp_path.glob("*.md")) == ([] if text is None else [tmp_path / "tables.md"])


def test_a_document_has_whole_tables(run):
    assert run("small", "--document", "tables.md").exit_code == 2
