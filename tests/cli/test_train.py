import json
import os
import signal

import pytest
from typer.testing import CliRunner

from nlsf.cli import app
from processes import Process, nlsf

SMALL = ["--set", "data.num_nodes=200"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):  # the page has tests of its own, and takes longer than these runs
        done = CliRunner().invoke(app, ["train", "--no-report", *map(str, arguments)])
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    return run


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("csbm", SMALL),
        ("csbm", [*SMALL, "--model", "value", "--seeds", "2"]),
        ("csbm", [*SMALL, "--model", "index", "--seed", "5", "--protocol", "sparse"]),
        ("geometric", ["--set", "data.num_nodes=100"]),
        ("digits-grid", []),
    ],
)
def test_it_prints_the_result_and_where_it_lies(run, tmp_path, data, options):
    output = run(data, *options, "--set", "epochs=2", "--set", "warmup=0")
    metric = "rmse" if data == "geometric" else "accuracy"
    *_, result, place = output.splitlines()
    seeds = 2 if "--seeds" in options else 1
    assert result.startswith(f"Test {metric} ")
    assert f", {seeds} split(s) of " in result
    assert ("+-" in result) == (seeds > 1)
    folder = tmp_path / place.removeprefix("Run: ")
    assert folder.parent == tmp_path / "runs"
    names = {"config.toml", "metrics.jsonl", "model.safetensors", "results.jsonl", "log.txt"}
    assert names <= set(os.listdir(folder))
    assert "report.html" not in os.listdir(folder)


def test_quiet_prints_the_result_only(run):
    output = run("csbm", *SMALL, "--set", "epochs=2", "--quiet")
    assert [line.split()[0] for line in output.splitlines()] == ["Test", "Run:"]


def test_a_configuration_repeats_its_run_exactly(run, tmp_path):
    first = run("csbm", *SMALL, "--seeds", "2", "--set", "epochs=4", "-o", "a")
    again = run("--config", "a/config.toml", "-o", "b")
    assert first.splitlines()[-2] == again.splitlines()[-2]
    for name in ("config.toml", "metrics.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_options_stand_over_the_configuration(run, tmp_path):
    (tmp_path / "run.toml").write_text(
        'seeds = 3\n[data]\nname = "digits"\n[training]\nepochs = 9\nlr = 0.5\n'
    )
    run("csbm", "-c", "run.toml", "--seed", 7, *SMALL, "--set", "epochs=2", "-o", "a")
    text = (tmp_path / "a" / "config.toml").read_text()
    for line in ("seeds = [7]", 'name = "csbm"', "epochs = 2", "lr = 0.5"):
        assert f"{line}\n" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "which data?"),
        (["--offline"], "which data?"),
        (["csbm", "--seed", "1", "--seeds", "2"], "exclude each other"),
        (["csbm", "--resume", "a"], "leave the rest out"),
        (["--resume", "a", "--set", "lr=1"], "leave the rest out"),
        (["--resume", "a", "--seeds", "2"], "leave the rest out"),
        (["--resume", "a", "--output", "b"], "leave the rest out"),
    ],
)
def test_wrong_usage(run, tmp_path, arguments, says):
    assert says in run(*arguments, code=2)
    assert os.listdir(tmp_path) == []


def test_resuming_a_finished_run_says_its_result(run):
    first = run("csbm", *SMALL, "--set", "epochs=2", "-o", "a")
    again = run("--resume", "a")
    assert again.splitlines() == first.splitlines()[-2:]


def test_ctrl_c_and_resume(run, tmp_path):
    settings = [*SMALL, "--set", "epochs=100", "--set", "patience=100"]
    words = ["train", "csbm", *settings, "-o", "a", "--checkpoint-seconds", "0"]
    process = Process(tmp_path, nlsf, *words)
    saved = tmp_path / "a" / "checkpoint.safetensors"
    assert process.wait_for(saved.exists), process.said
    assert process.signal(signal.SIGINT) == 1
    assert process.output.splitlines()[-1] == "Stopped. Go on with nlsf train --resume a"
    assert process.errors == ""
    assert not (tmp_path / "a" / "results.jsonl").exists()
    resumed = run("--resume", "a")
    whole = run("csbm", *settings, "-o", "b")
    assert resumed.splitlines()[-2] == whole.splitlines()[-2]
    for name in ("metrics.jsonl", "config.toml"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_rows_of_a_large_graph_are_prepared_in_bounded_memory(run, tmp_path, monkeypatch):
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path / "cache"))
    quick = [*SMALL, "-n", 1, "--set", "preset=millions", "--set", "training.epochs=3"]
    told = run("csbm", *quick, "-m", "value", "--memory", "20kB", "-o", "a")
    assert "Projections, block 2 of" in told
    assert list((tmp_path / "cache" / "projections").glob("*-bands.npy"))
    inside = run("csbm", *quick, "-m", "value", "--memory", "1GiB", "-o", "b")
    assert "Projections, block 1 of 1" in inside
    first, second = (
        json.loads((tmp_path / name / "results.jsonl").read_text()) for name in ("a", "b")
    )
    assert first["test_accuracy"] == second["test_accuracy"]


@pytest.mark.parametrize("size", ["lots", "8", "-1GB", "0MB", "GB"])
def test_a_size_that_is_none(run, size):
    assert "8GB or 500MB" in run("csbm", "--memory", size, code=2)
