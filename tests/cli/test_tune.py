import signal
import time
import tomllib

import pytest
from typer.testing import CliRunner

from nlsf.cli import app
from nlsf.cli.tune import _space
from nlsf.errors import ConfigError
from nlsf.tables.tune.trials import read_trials
from processes import Process, nlsf

SMALL = ["csbm", "--set", "data.num_nodes=100", "--model", "mlp", "--splits", "2"]
QUICK = ["--set", "epochs=2"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["tune", *map(str, arguments)])
        if isinstance(done.exception, Exception) and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.output

    return run


def test_it_prints_the_best_point_and_writes_what_trains_it(run, tmp_path):
    output = run(*SMALL, *QUICK, "--trials", "5")
    folder = tmp_path / "runs" / "tune-csbm-mlp-001"
    assert {path.name for path in folder.iterdir()} >= {"best.toml", "study.journal", "tuning.html"}
    assert "5/5" in output
    assert "Validation accuracy" in output
    best = tomllib.loads((folder / "best.toml").read_text())
    trials = read_trials(folder / "study.journal", "csbm-mlp")
    top = max((t for t in trials if t.state == "complete"), key=lambda t: t.value)
    assert best["training"]["lr"] == top.point["training.lr"]
    assert best["training"]["epochs"] == 2
    assert best["data"]["num_nodes"] == 100
    trained = ["train", "--no-report", "--config", str(folder / "best.toml"), "--seeds", "2"]
    assert CliRunner().invoke(app, trained).exit_code == 0


def test_what_is_set_is_not_searched_and_a_file_changes_the_choices(run, tmp_path):
    space = tmp_path / "space.toml"
    space.write_text('[space]\n"training.lr" = [0.2, 0.3]\n"model.input_dropout" = []\n')
    run(
        *(*SMALL, *QUICK, "--set", "dropout=0.25", "--space", space),
        *("--trials", "3", "--storage", tmp_path / "j", "--study", "mine", "--quiet"),
    )
    points = [trial.point for trial in read_trials(tmp_path / "j", "mine")]
    assert {"training.lr", "training.weight_decay"} <= set(points[0])
    assert not {"model.dropout", "model.input_dropout", "training.epochs"} & set(points[0])
    assert {point["training.lr"] for point in points} <= {0.01, 0.2, 0.3}


def test_the_same_command_goes_on(run, tmp_path):
    command = [*SMALL, *QUICK, "--output", tmp_path / "out"]
    run(*command, "--trials", "2")
    before = read_trials(tmp_path / "out" / "study.journal", "csbm-mlp")
    assert "2 of them done" in run(*command, "--trials", "4")
    after = read_trials(tmp_path / "out" / "study.journal", "csbm-mlp")
    assert after[:2] == before
    assert len(after) == 4


def test_a_large_graph_is_not_searched_with_all_of_its_eigenvectors():
    table = {"data": {"name": "csbm", "num_nodes": 9_000}, "model": {"name": "value"}}
    bands = _space(table, None).choices["model.value_bands"]
    assert {one["kind"] for one in bands} == {"polynomial", "index"}
    small = {"data": {"name": "csbm", "num_nodes": 200}, "model": {"name": "value"}}
    assert "dyadic" in {one["kind"] for one in _space(small, None).choices["model.value_bands"]}


def test_a_model_without_choices_is_said_too(run):
    assert "1 complete" in run("csbm", "--set", "data.num_nodes=100", "--model", "majority")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trials", "0"], "tuning.trials must be a number from 1"),
        (["--splits", "0"], "tuning.splits must be a number from 1"),
        (["--storage", "mysql://me:secret@host/x"], "must be a path, or postgresql://"),
        (["--set", "lrr=1"], "Did you mean"),
        (["--set", "seeds=4"], "has --splits"),
        (["--set", "model.name=gcn"], "--model for its model"),
        (["--protocol", "rendom"], "Did you mean 'random'"),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, said):
    with pytest.raises(ConfigError, match=said) as caught:
        run(*SMALL, *QUICK, *arguments)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[spaces]\n", "one table"),
        ('[space]\n"training.lrr" = [1.0]\n', r"Did you mean 'training\.lr'"),
        ("[space]\ntraining.lr = [1.0]\n", "in quotes"),
        ("= 3", "is not a TOML file"),
    ],
)
def test_a_bad_space_is_one_sentence(run, tmp_path, text, said):
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        run(*SMALL, *QUICK, "--space", tmp_path / "space.toml")
    assert not (tmp_path / "runs").exists()


def test_an_unknown_model_is_one_sentence(run):
    with pytest.raises(ConfigError, match=r"no model 'appmp'. Did you mean 'appnp'"):
        run("csbm", "--model", "appmp")


def test_workers_share_the_trials(tmp_path):
    command = [*SMALL, *QUICK, "--trials", "8", "--workers", "2", "--output", str(tmp_path / "out")]
    process = Process(tmp_path, nlsf, "tune", *command)
    assert process.end(180) == 0, process.said
    trials = read_trials(tmp_path / "out" / "study.journal", "csbm-mlp")
    assert len(trials) == 8
    assert (tmp_path / "out" / "best.toml").exists()


def test_ctrl_c_says_how_to_go_on(tmp_path):
    long = ["--set", "epochs=1000000", "--set", "patience=1000000"]
    command = [*SMALL, *long, "--trials", "3", "--output", str(tmp_path / "out")]
    process = Process(tmp_path, nlsf, "tune", *command)
    journal = tmp_path / "out" / "study.journal"
    assert process.wait_for(lambda: journal.exists() and b"nlsf:worker" in journal.read_bytes())
    time.sleep(0.3)
    assert process.signal(signal.SIGINT) == 1, process.said
    assert f"--output {tmp_path / 'out'}" in process.output.replace("\n", " ")
    assert [trial.state for trial in read_trials(journal, "csbm-mlp")] == ["waiting"]
