import csv
import re
import shlex
import signal
import sys

import pytest
from typer.testing import CliRunner

from nlsf import cli
from nlsf.cli import app
from nlsf.errors import ConfigError
from nlsf.report.runs import ranking
from nlsf.train.run.folder import RunFolder
from processes import Process, nlsf

SMALL = ["--set", "data.num_nodes=120", "--set", "epochs=8", "-q"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, ["compare", *arguments])

    return run


def test_models_are_ranked_on_the_same_splits(run, tmp_path):
    done = run("csbm", "-m", "gcn,mlp,value", "-n", "2", "-o", "c", *SMALL)
    assert done.exit_code == 0, done.output
    with (tmp_path / "c" / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {"gcn", "mlp", "value"}
    means = [float(row["test"]) for row in rows]
    assert means == sorted(means, reverse=True)
    assert float(rows[0]["behind_first"]) == 0
    results = {name: RunFolder(tmp_path / "c" / name).results() for name in ("gcn", "mlp")}
    assert [r["split"] for r in results["gcn"]] == [r["split"] for r in results["mlp"]]
    for row in rows[1:]:
        assert float(row["behind_first"]) == pytest.approx(float(row["test"]) - means[0], abs=1e-6)
    assert "<h1>" in (tmp_path / "c" / "comparison.html").read_text()
    assert all(name in done.output for name in ("gcn", "mlp", "value", "comparison.html"))


@pytest.mark.parametrize(
    ("arguments", "count"),
    [([], 3), (["--set", "seeds=2"], 2), (["--set", "seeds=2", "-n", "1"], 1)],
)
def test_the_number_of_splits(run, tmp_path, arguments, count):
    done = run("csbm", "-m", "gcn,mlp", "-o", "c", *SMALL, *arguments)
    assert done.exit_code == 0, done.output
    assert len(RunFolder(tmp_path / "c" / "gcn").results()) == count


def test_what_is_finished_is_kept_and_what_is_not_goes_on(run, tmp_path):
    assert run("csbm", "-m", "gcn,mlp", "-n", "2", "-o", "c", *SMALL).exit_code == 0
    before = (tmp_path / "c" / "gcn" / "results.jsonl").read_bytes()
    (tmp_path / "c" / "mlp" / "results.jsonl").unlink()
    done = run("csbm", "-m", "gcn,mlp,sage", "-n", "2", "-o", "c", *SMALL)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "c" / "gcn" / "results.jsonl").read_bytes() == before
    folders = {name: RunFolder(tmp_path / "c" / name) for name in ("gcn", "mlp", "sage")}
    assert len(ranking(folders)) == 3


def test_folders_are_numbered(run, tmp_path):
    assert run("csbm", "-m", "gcn,mlp", "-n", "1", *SMALL).exit_code == 0
    assert (tmp_path / "runs" / "compare-csbm-001" / "comparison.csv").exists()


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["model"]: row for row in csv.DictReader(file)}


def test_a_model_that_fails_does_not_stop_the_others_and_says_why(run, tmp_path):
    (tmp_path / "c" / "gcn").mkdir(parents=True)
    (tmp_path / "c" / "gcn" / "stray").write_text("in the way")
    done = run("csbm", "-m", "gcn,mlp", "-n", "1", "-o", "c", *SMALL)
    assert done.exit_code == 1
    reason = "c/gcn is not empty: choose another --output."
    assert f"gcn: {reason}" in done.output
    assert (tmp_path / "c" / "mlp" / "results.jsonl").exists()
    rows = rows_of(tmp_path / "c" / "comparison.csv")
    assert (rows["mlp"]["status"], rows["mlp"]["reason"]) == ("finished", "")
    assert (rows["gcn"]["status"], rows["gcn"]["reason"]) == ("failed", reason)
    assert reason in (tmp_path / "c" / "comparison.html").read_text()


def test_all_models_may_fail(run, tmp_path):
    for name in ("gcn", "mlp"):
        (tmp_path / "c" / name).mkdir(parents=True)
        (tmp_path / "c" / name / "stray").write_text("in the way")
    done = run("csbm", "-m", "gcn,mlp", "-n", "1", "-o", "c", *SMALL)
    assert done.exit_code == 1
    assert all(f"Failed: {name}: " in done.output for name in ("gcn", "mlp"))
    statuses = [row["status"] for row in rows_of(tmp_path / "c" / "comparison.csv").values()]
    assert statuses == ["failed", "failed"]
    assert (tmp_path / "c" / "comparison.html").exists()


def test_means_and_differences_have_their_intervals(run, tmp_path):
    done = run("csbm", "-m", "gcn,majority", "-n", "3", "-o", "c", *SMALL)
    best, worst = (row for row in rows_of(tmp_path / "c" / "comparison.csv").values())
    percent = {
        key: 100 * float(value) for key, value in worst.items() if key[-3:] in ("est", "_95")
    }
    assert f"{percent['test']:.2f} +- {percent['test_95']:.2f}" in done.output
    behind = 100 * float(worst["behind_first"])
    assert f"{behind:+.2f} +- {percent['behind_95']:.2f}" in done.output
    assert float(best["behind_first"]) == 0


def test_other_settings_are_not_mixed_with_what_is_kept(run, tmp_path):
    assert run("csbm", "-m", "gcn,mlp", "-n", "2", "-o", "c", *SMALL).exit_code == 0
    before = (tmp_path / "c" / "comparison.csv").read_bytes()
    done = run("csbm", "-m", "sage,mlp", "-n", "3", "-o", "c", *SMALL)
    assert isinstance(done.exception, ConfigError)
    assert "c/mlp was started with seeds = [0, 1], but now [0, 1, 2]" in str(done.exception)
    assert not (tmp_path / "c" / "sage").exists()  # refused before anything was trained
    assert (tmp_path / "c" / "comparison.csv").read_bytes() == before


def test_where_one_is_and_of_how_many(run):
    loud = [word for word in SMALL if word != "-q"]
    lines = run("csbm", "-m", "gcn,mlp", "-n", "1", *loud).output.splitlines()
    places = [line for line in lines if re.match(r"model \d", line)]
    assert [line.split(",")[0] for line in places] == ["model 1 of 2: gcn", "model 2 of 2: mlp"]
    assert all(line.endswith(" elapsed") for line in places)
    assert "model 1" not in run("csbm", "-m", "gcn,mlp", "-n", "1", *SMALL).output


def test_an_interrupted_comparison_says_how_to_go_on(tmp_path):
    settings = ["--set", "data.num_nodes=120", "--set", "epochs=100000", "--set", "patience=100000"]
    words = ["compare", "csbm", "-m", "majority,mlp", "-n", "2", *settings, "-o", "my c"]
    process = Process(tmp_path, nlsf, *words)
    assert process.wait_for(lambda: "\nepoch " in process.said), process.said
    assert process.signal(signal.SIGINT) == 1
    said = process.said
    assert "Traceback" not in said
    again = said.split("Go on with ")[1].strip()
    assert shlex.split(again)[1:] == [
        *("compare", "csbm", "-m", "majority,mlp", "-n", "2", *settings),
        *("-o", "my c"),
    ]
    assert (tmp_path / "my c" / "majority" / "results.jsonl").exists()
    assert not (tmp_path / "my c" / "mlp" / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["csbm", "-m", "gcn"], "at least two models", 2),
        (["csbm", "-m", "gcn,gprgn"], "Did you mean 'gprgnn'?", 1),
        (["csbm", "-m", "gcn,pooling"], "does not fit data whose examples are nodes", 1),
        (["csbm", "-m", "gcn,mlp", "--set", "model.dropout=0"], "own settings", 1),
        (["csbn", "-m", "gcn,mlp"], "Did you mean 'csbm'?", 1),
    ],
)
def test_errors_are_one_sentence(arguments, says, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["nlsf", "compare", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
    errors = capsys.readouterr().err
    assert says in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
