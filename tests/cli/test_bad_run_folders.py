"""Folders that hold no whole run: one sentence or two on stderr, and nothing half written."""

import functools
import os
import shutil

import pytest

from cli.bad_input import Cases
from nlsf.train import Interrupted
from nlsf.train import train as train_run
from nlsf.train.run import train
from processes import Process, nlsf

SMALL = {"data": {"name": "csbm", "num_nodes": 100}, "training": {"epochs": 3}}
CASES = Cases()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run, and one that was stopped after a checkpoint."""
    folder = tmp_path_factory.mktemp("runs")
    cache = pytest.MonkeyPatch()
    cache.setenv("NLSF_CACHE", str(folder / "cache"))
    train_run("csbm", SMALL, output=folder / "done")

    append, calls = train.RunFolder.append_metrics, []

    def stopped(self, rows):
        append(self, rows)
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    cache.setattr(train.RunFolder, "append_metrics", stopped)
    with pytest.raises(Interrupted):
        train_run("csbm", SMALL, output=folder / "stopped", checkpoint_seconds=0)
    cache.undo()
    return folder


def copied(folder, runs, name):
    shutil.copytree(runs / name, folder / "run")
    return folder / "run"


@CASES.case("run holds a run already")
def output_that_holds_a_run(folder, runs):
    copied(folder, runs, "done")
    return ["train", "csbm", "-o", "run"]


@CASES.case("a is not empty")
def output_that_is_not_empty(folder, runs):
    (folder / "a").mkdir()
    (folder / "a" / "thesis.tex").write_text("")
    return ["train", "csbm", "-o", "a"]


@CASES.case("a file is in its place")
def output_inside_a_file(folder, runs):
    (folder / "a").write_text("")
    return ["train", "csbm", "-o", "a/b"]


CASES.plain("resume_nothing", "train --resume nowhere", "There is no run folder nowhere")


@CASES.case("it has no config.toml")
def resume_of_any_folder(folder, runs):
    (folder / "a").mkdir()
    return ["train", "--resume", "a"]


@CASES.case("config.toml is not a TOML file")
def resume_with_a_damaged_config(folder, runs):
    (copied(folder, runs, "stopped") / "config.toml").write_text("[data\n")
    return ["train", "--resume", "run"]


@CASES.case("config.toml has changed since the run was started")
def resume_with_a_changed_config(folder, runs):
    path = copied(folder, runs, "stopped") / "config.toml"
    text = path.read_text()
    assert "hidden_channels = 64" in text
    path.write_text(text.replace("hidden_channels = 64", "hidden_channels = 32"))
    return ["train", "--resume", "run"]


@CASES.case("checkpoint.safetensors is damaged")
def resume_with_a_damaged_checkpoint(folder, runs):
    path = copied(folder, runs, "stopped") / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    return ["train", "--resume", "run"]


@CASES.case("but the checkpoint was saved with")
def resume_with_truncated_metrics(folder, runs):
    os.truncate(copied(folder, runs, "stopped") / "metrics.jsonl", 10)
    return ["train", "--resume", "run"]


@CASES.case("model.safetensors is damaged")
def resume_with_a_damaged_model(folder, runs):
    path = copied(folder, runs, "done")
    (path / "results.jsonl").unlink()
    content = bytearray((path / "model.safetensors").read_bytes())
    content[-3] ^= 255
    (path / "model.safetensors").write_bytes(content)
    return ["train", "--resume", "run"]


@CASES.case("leave the rest out", 2)
def resume_with_other_options(folder, runs):
    copied(folder, runs, "stopped")
    return ["train", "csbm", "--resume", "run"]


@CASES.case("holds no trained model yet: finish it with --resume run")
def predict_with_an_unfinished_run(folder, runs):
    copied(folder, runs, "stopped")
    return ["predict", "run", "csbm"]


@CASES.case("was trained on 16 features, but digits has 64")
def predict_with_other_features(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "digits"]


@CASES.case("those of digits-grid are signals")
def predict_at_another_level(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "digits-grid"]


@CASES.case("run has no seed 4: it has 0")
def predict_with_a_missing_seed(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "csbm", "--seed", "4"]


@CASES.case("model.safetensors is damaged")
def predict_with_a_damaged_model(folder, runs):
    path = copied(folder, runs, "done") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    return ["predict", "run", "csbm"]


@CASES.case("File exists")
def predict_into_a_file(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "csbm", "-o", "run/config.toml/x.csv"]


@pytest.mark.parametrize(("build", "says", "code"), CASES)
def test_bad_input(assert_refused, here, runs, build, says, code):
    assert_refused(build(here, runs), says, code)


def test_the_cases_are_many():
    assert len(CASES) >= 17


def test_a_full_disk_leaves_whole_files_only(here):
    words = ["train", "csbm", "--set", "data.num_nodes=100", "--set", "epochs=3"]
    small_disk = functools.partial(nlsf, largest_file=20_000)
    process = Process(here, small_disk, *words, "--set", "hidden_channels=512", "--no-cache")
    assert process.end() == 1, process.errors
    assert process.errors.startswith("nlsf: ")
    assert "model.safetensors: File too large." in process.errors
    assert len(process.errors.splitlines()) == 1
    names = {path.name for path in (here / "runs" / "csbm-att-node-001").iterdir()}
    assert names == {"config.toml", "metrics.jsonl", "log.txt", ".lock"}
