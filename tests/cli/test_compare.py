import csv
import sys

import pytest
from typer.testing import CliRunner

from nlsf import cli
from nlsf.cli import app
from nlsf.report.ranking import ranking
from nlsf.train.run_folder import RunFolder

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


def test_a_model_that_fails_does_not_stop_the_others(run, tmp_path):
    (tmp_path / "c" / "gcn").mkdir(parents=True)
    (tmp_path / "c" / "gcn" / "stray").write_text("in the way")
    done = run("csbm", "-m", "gcn,mlp", "-n", "1", "-o", "c", *SMALL)
    assert done.exit_code == 1
    assert "gcn: c/gcn is not empty" in done.output
    assert (tmp_path / "c" / "mlp" / "results.jsonl").exists()


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
