"""What goes wrong from outside: one sentence or two on stderr, and nothing half written."""

import json
import os
import pickle
import re
import resource
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from nlsf import cli
from nlsf.train import Interrupted, run
from nlsf.train import train as train_run

SMALL = {"data": {"name": "csbm", "num_nodes": 100}, "training": {"epochs": 3}}
EDGES = np.array([[i, (i + 1) % 10] for i in range(10)])
X = np.ones((10, 2), dtype=np.float32)
Y = np.arange(10) % 2
CASES = []


def case(says, code=1):
    """Registers a function that fills a folder and gives the words of a command that must fail."""

    def register(build):
        CASES.append(pytest.param(build, says, code, id=build.__name__))
        return build

    return register


def plain(name, line, says, code=1):
    """A command that needs no files."""
    CASES.append(pytest.param(lambda folder, runs: line.split(), says, code, id=name))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run, and one that was stopped after a checkpoint."""
    folder = tmp_path_factory.mktemp("runs")
    cache = pytest.MonkeyPatch()
    cache.setenv("NLSF_CACHE", str(folder / "cache"))
    train_run("csbm", SMALL, output=folder / "done")

    append, calls = run.RunFolder.append_metrics, []

    def stopped(self, rows):
        append(self, rows)
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    cache.setattr(run.RunFolder, "append_metrics", stopped)
    with pytest.raises(Interrupted):
        train_run("csbm", SMALL, output=folder / "stopped", checkpoint_seconds=0)
    cache.undo()
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NLSF_DATA", str(tmp_path / "root"))
    return tmp_path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def npz(folder, **change):
    arrays = {"edges": EDGES, "node_features": X, "node_labels": Y, **change}
    np.savez(folder / "g.npz", **{k: v for k, v in arrays.items() if v is not None})
    return ["train", "g.npz"]


# Files of data.


@case("not a whole .npz archive")
def npz_truncated(folder, runs):
    words = npz(folder)
    (folder / "g.npz").write_bytes((folder / "g.npz").read_bytes()[:-100])
    return words


@case("expected (E, 2)")
def npz_edges_of_wrong_shape(folder, runs):
    return npz(folder, edges=np.zeros((4, 3), dtype=int))


@case("has the shape (7,); expected (10,)")
def npz_labels_of_wrong_shape(folder, runs):
    return npz(folder, node_labels=Y[:7])


@case("feature 1 of node 4 in 'node_features' is nan")
def npz_nan_features(folder, runs):
    x = X.copy()
    x[4, 1] = np.nan
    return npz(folder, node_features=x)


@case("label 0 of 'node_labels' is -5")
def npz_labels_out_of_range(folder, runs):
    return npz(folder, node_labels=Y - 5)


@case("numbered 0 to 9")
def npz_edges_out_of_range(folder, runs):
    return npz(folder, edges=EDGES + 5)


@case("holds Python objects")
def npz_with_pickles(folder, runs):
    return npz(folder, node_labels=np.array([Evil()], dtype=object))


@case("no training examples")
def npz_without_labels(folder, runs):
    return npz(folder, node_labels=None)


@case("nowhere.npz")
def file_missing(folder, runs):
    return ["train", "nowhere.npz"]


@case("is not of a kind that can be read")
def folder_in_the_place_of_a_file(folder, runs):
    (folder / "g.npz").mkdir()
    return ["train", "g.npz"]


@case("cannot be set for g.npz")
def option_of_a_file(folder, runs):
    return [*npz(folder), "--set", "data.num_nodes=3"]


@case("line 3")
def csv_with_a_bad_line(folder, runs):
    (folder / "edges.csv").write_text("a,b\nb,a\n")
    (folder / "features.csv").write_text("id,f,label\na,1,x\nb,one,y\n")
    return ["train", "edges.csv"]


@case("features.csv is missing")
def csv_without_features(folder, runs):
    (folder / "edges.csv").write_text("a,b\n")
    return ["train", "edges.csv"]


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


@case("asks for builtins.print")
def planetoid_with_a_malicious_pickle(folder, runs):
    root = folder / "root" / "planetoid"
    root.mkdir(parents=True)
    for end in ("x", "tx", "allx", "y", "ty", "ally", "graph"):
        (root / f"ind.cora.{end}").write_bytes(pickle.dumps(Evil()))
    (root / "ind.cora.test.index").write_text("0\n")
    return ["train", "cora", "--offline"]


def tu_zip(folder, members):
    with zipfile.ZipFile(folder / "T.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return ["train", "T.zip"]


@case("would lie outside its folder")
def zip_slip(folder, runs):
    return tu_zip(folder, {"T/T_A.txt": "1, 2\n", "../../slipped.txt": "x"})


@case("30,000,000 bytes of content")
def zip_bomb(folder, runs):
    return tu_zip(folder, {"T/T_A.txt": b"1" * 30_000_000})


@case("T.zip")
def zip_that_is_none(folder, runs):
    (folder / "T.zip").write_text("PK")
    return ["train", "T.zip"]


@case("ind.cora.x")
def offline_with_missing_files(folder, runs):
    return ["train", "cora", "--offline", "--data-root", folder / "root"]


@case("is not a folder")
def data_root_that_is_a_file(folder, runs):
    (folder / "root").write_text("")
    return ["train", "cora", "--offline"]


# Settings.

plain("unknown_data", "train coda", "There is no data set 'coda'. Did you mean 'Cora'?")
plain("unknown_model", "train csbm -m valu", "Did you mean 'value'?")
plain("unknown_protocol", "train csbm -p randon", "Did you mean 'random'?")
plain("unknown_key", "train csbm --set epoch=3", "Did you mean 'epochs'?")
plain("unknown_option", "train csbm --set data.homophil=1", "Did you mean 'homophily'?")
plain("unknown_preset", "train csbm --set preset=graph", "Did you mean 'graphs'?")
plain("unknown_metric", "train csbm --set metric=acc", "metric must be one of accuracy")
plain("wrong_level", "train csbm -m graph", "use att-node, index, value")
plain("wrong_type", "train csbm --set epochs=many", "training.epochs must be a whole number")
plain("wrong_table", "train csbm --set data=3", "data must be a table")
plain("wrong_name", "train csbm --set model.name.x=3", "model.name must be a text")
plain("wrong_option", "train csbm --set data.num_nodes=x", "num_nodes must be a whole number")
plain("wrong_width", "train csbm --set hidden_channels=-1", "model.hidden_channels must be at")
plain("wrong_depth", "train csbm --set num_layers=99", "1 to 10 layers")
plain("wrong_dropout", "train csbm --set dropout=2", "dropout must be")
plain("no_equals_sign", "train csbm --set epochs", "--set expects key=value")
plain("decided_by_name", "train csbm --set model.branches=index", "decided by the model")
plain("negative_rate", "train csbm --set lr=-1", "training.lr must be a number from 0 on")
plain("no_patience", "train csbm --set patience=0", "training.patience must be at least 1")
plain("no_seeds", "train csbm --seeds 0", "at least one seed")
plain("too_many_seeds", "train csbm --seeds 999999999999", "seeds must be at most")
plain("all_warmup", "train csbm --set epochs=3 --set warmup=3", "leaves none of the 3 epochs")
plain("wrong_percentages", "train csbm -p 60-20-30", "sum to 100")
plain("no_given_split", "train csbm -p public", "comes without 'public' splits")
plain("no_data", "train", "which data?", 2)
plain("both_seeds", "train csbm --seed 1 --seeds 2", "exclude each other", 2)
plain("no_config", "train -c nowhere.toml", "nowhere.toml")
plain("spectrum_data", "spectrum digit", "Did you mean 'digits'?")
plain("spectrum_rate", "spectrum digits -r 2", "decay rate r must lie between 0 and 1")
plain("spectrum_graph", "spectrum csbm --graph 3", "csbm has no graph 3")
plain("spectrum_key", "spectrum csbm --set lr=3", "Only data.KEY can be set here")
plain("spectrum_picture", "spectrum csbm -o x.doc", "not the name of a picture", 2)


@case("run.toml is not a TOML file")
def config_that_is_not_toml(folder, runs):
    (folder / "run.toml").write_text("seeds = = 3\n")
    return ["train", "csbm", "-c", "run.toml"]


@case("data must be a table")
def config_of_wrong_tables(folder, runs):
    (folder / "run.toml").write_text('data = "csbm"\n')
    return ["train", "-c", "run.toml"]


@case("Is a directory")
def config_that_is_a_folder(folder, runs):
    (folder / "run.toml").mkdir()
    return ["train", "-c", "run.toml"]


# Split files.


@case("line 1: not JSON")
def split_that_is_not_json(folder, runs):
    (folder / "s.json").write_text("{train")
    return ["train", "csbm", "-p", "s.json"]


@case("the split is of other data")
def split_of_other_data(folder, runs):
    fields = {"format": "nlsf-split 1", "data": "x", "examples": 7, "labels": "", "protocol": ""}
    parts = {"seed": 0, "train": [0], "val": [1], "test": [2]}
    (folder / "s.json").write_text(json.dumps(fields | parts))
    return ["train", "csbm", "-p", "s.json"]


@case("put the split file there")
def split_missing(folder, runs):
    return ["train", "csbm", "-p", "s-{seed}.json"]


# Folders of runs.


def copied(folder, runs, name):
    shutil.copytree(runs / name, folder / "run")
    return folder / "run"


@case("run holds a run already")
def output_that_holds_a_run(folder, runs):
    copied(folder, runs, "done")
    return ["train", "csbm", "-o", "run"]


@case("a is not empty")
def output_that_is_not_empty(folder, runs):
    (folder / "a").mkdir()
    (folder / "a" / "thesis.tex").write_text("")
    return ["train", "csbm", "-o", "a"]


@case("a file is in its place")
def output_inside_a_file(folder, runs):
    (folder / "a").write_text("")
    return ["train", "csbm", "-o", "a/b"]


plain("resume_nothing", "train --resume nowhere", "There is no run folder nowhere")


@case("it has no config.toml")
def resume_of_any_folder(folder, runs):
    (folder / "a").mkdir()
    return ["train", "--resume", "a"]


@case("config.toml is not a TOML file")
def resume_with_a_damaged_config(folder, runs):
    (copied(folder, runs, "stopped") / "config.toml").write_text("[data\n")
    return ["train", "--resume", "run"]


@case("config.toml has changed since the run was started")
def resume_with_a_changed_config(folder, runs):
    path = copied(folder, runs, "stopped") / "config.toml"
    text = path.read_text()
    assert "hidden_channels = 64" in text
    path.write_text(text.replace("hidden_channels = 64", "hidden_channels = 32"))
    return ["train", "--resume", "run"]


@case("checkpoint.safetensors is damaged")
def resume_with_a_damaged_checkpoint(folder, runs):
    path = copied(folder, runs, "stopped") / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    return ["train", "--resume", "run"]


@case("but the checkpoint was saved with")
def resume_with_truncated_metrics(folder, runs):
    os.truncate(copied(folder, runs, "stopped") / "metrics.jsonl", 10)
    return ["train", "--resume", "run"]


@case("model.safetensors is damaged")
def resume_with_a_damaged_model(folder, runs):
    path = copied(folder, runs, "done")
    (path / "results.jsonl").unlink()
    content = bytearray((path / "model.safetensors").read_bytes())
    content[-3] ^= 255
    (path / "model.safetensors").write_bytes(content)
    return ["train", "--resume", "run"]


@case("leave the rest out", 2)
def resume_with_other_options(folder, runs):
    copied(folder, runs, "stopped")
    return ["train", "csbm", "--resume", "run"]


@case("holds no results yet: finish it with --resume run")
def predict_with_an_unfinished_run(folder, runs):
    copied(folder, runs, "stopped")
    return ["predict", "run", "csbm"]


@case("was trained on 16 features, but digits has 64")
def predict_with_other_features(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "digits"]


@case("those of digits-grid are signals")
def predict_at_another_level(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "digits-grid"]


@case("run has no seed 4: it has 0")
def predict_with_a_missing_seed(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "csbm", "--seed", "4"]


@case("model.safetensors is damaged")
def predict_with_a_damaged_model(folder, runs):
    path = copied(folder, runs, "done") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    return ["predict", "run", "csbm"]


@case("File exists")
def predict_into_a_file(folder, runs):
    copied(folder, runs, "done")
    return ["predict", "run", "csbm", "-o", "run/config.toml/x.csv"]


@pytest.mark.parametrize(("build", "says", "code"), CASES)
def test_bad_input(build, says, code, here, runs, monkeypatch, capsys):
    words = build(here, runs)
    before = files(here)
    monkeypatch.setattr(sys, "argv", ["nlsf", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    output, errors = capsys.readouterr()
    assert end.value.code == code, errors
    assert "Traceback" not in errors
    assert says in " ".join(re.sub("[│╭╰─╮╯]", " ", errors).split())
    assert "this must not run" not in output + errors
    if code == 1:
        assert errors.startswith("nlsf: ")
        assert len(errors.splitlines()) == 1
        assert len(re.findall(r"[.?](?=\s+[A-Z]|\s*$)", errors)) <= 2, "two sentences at most"
    assert files(here) == before, "nothing is left behind"


def test_a_full_disk_leaves_whole_files_only(here):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    words = ["train", "csbm", "--set", "data.num_nodes=100", "--set", "epochs=3"]
    done = subprocess.run(
        [sys.executable, "-m", "nlsf.cli", *words, "--set", "hidden_channels=512", "--no-cache"],
        capture_output=True,
        text=True,
        preexec_fn=small_disk,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("nlsf: ")
    assert "model.safetensors: File too large." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    names = {path.name for path in (here / "runs" / "csbm-att-node-001").iterdir()}
    assert names == {"config.toml", "metrics.jsonl", "log.txt", ".lock"}


def test_the_cases_are_many():
    assert len(CASES) >= 30
