"""Pages from the command line and from Python."""

import json
import os
import shutil
import webbrowser

import pytest
from typer.testing import CliRunner

import nlsf
from nlsf.cli import app
from nlsf.errors import ConfigError, DataError
from nlsf.train import RunFolder, train
from train.small import NODE_MODEL, given, node_data

SMALL = {"data": {"num_nodes": 100}, "model": NODE_MODEL, "training": {"epochs": 2}, "seeds": 2}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs beside each other, and a third that was stopped before its first epoch."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("a", "b"):
        train("csbm", SMALL, output=folder / name, cache=False)
    stopped = RunFolder.create_at(folder / "stopped")
    stopped.write_config((folder / "a" / "config.toml").read_text())
    return folder


@pytest.fixture
def run(runs, tmp_path, monkeypatch):
    """The command line in a folder with its own copy of the runs."""
    shutil.copytree(runs, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["report", *map(str, arguments)])
        assert done.exit_code == code, (done.output, done.exception)
        return done.output if code != 1 else done.exception

    return run


@pytest.fixture
def opened(monkeypatch):
    """What a browser would have been asked to show."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def test_a_run_has_its_page_in_its_folder(run, tmp_path, opened):
    assert run("runs/a") == "Page: runs/a/report.html\n"
    html = (tmp_path / "runs" / "a" / "report.html").read_text()
    assert html.startswith("<!doctype html>")
    assert "csbm" in html
    assert opened == []


def test_an_unfinished_run_has_a_page(run, tmp_path):
    run("runs/stopped")
    assert "--resume" in (tmp_path / "runs" / "stopped" / "report.html").read_text()


def test_a_file_and_a_seed_of_your_choice(run, tmp_path):
    assert run("runs/a", "-o", "new/page.html", "--seed", 1) == "Page: new/page.html\n"
    assert os.listdir(tmp_path / "new") == ["page.html"]
    assert "seed 1" in (tmp_path / "new" / "page.html").read_text()
    assert isinstance(run("runs/a", "--seed", 7, code=1), ConfigError)


def test_several_runs_are_compared_where_they_lie(run, tmp_path):
    assert run("runs/a", "runs/b", "runs/stopped") == "Page: runs/comparison.html\n"
    html = (tmp_path / "runs" / "comparison.html").read_text()
    assert "Difference to a" in html
    assert "Unfinished, and so without results: stopped." in html


def test_open_shows_the_page(run, tmp_path, opened):
    run("runs/stopped", "--open")
    assert opened == [(tmp_path / "runs" / "stopped" / "report.html").resolve().as_uri()]


def test_data_from_another_place(run, tmp_path):
    run("runs/a", "--data-root", tmp_path / "root", "--offline", "--no-cache")
    assert (tmp_path / "runs" / "a" / "report.html").exists()


def test_what_cannot_be_done_is_refused(run, tmp_path):
    assert "Missing argument" in run(code=2)
    assert "leave --seed" in run("runs/a", "runs/b", "--seed", 1, code=2)
    assert "leave --seed" in run("runs/a", "runs/b", "--no-cache", code=2)
    assert isinstance(run("nowhere", code=1), DataError)
    assert isinstance(run("runs/a", "-o", "page.txt", code=1), ConfigError)
    assert isinstance(run("runs/a", "runs/a", code=1), ConfigError)
    assert "report.html" not in os.listdir(tmp_path / "runs" / "a")


def test_from_python(tmp_path):
    data = node_data(given=given(60, (20, 20), (20, 20)))
    table = {"model": NODE_MODEL, "seeds": 2, "training": {"epochs": 2}}
    result = train(data, table, output=tmp_path / "a", cache=False)
    path = nlsf.report(result, dataset=data, cache=False)
    assert path == tmp_path / "a" / "report.html"
    again = nlsf.report.report(str(tmp_path / "a"), tmp_path / "b.html", dataset=data, cache=False)
    assert again.read_bytes() == path.read_bytes(), "the same run gives the same page"
    train(data, table, output=tmp_path / "c", cache=False)
    both = nlsf.report([tmp_path / "a", tmp_path / "c"])
    assert both == tmp_path / "comparison.html"
    with pytest.raises(ConfigError, match="page of one run"):
        nlsf.report([tmp_path / "a", tmp_path / "c"], seed=0)
    with pytest.raises(ConfigError, match="Which run"):
        nlsf.report([])


def test_training_ends_with_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "csbm", "--set", "data.num_nodes=100", "--set", "epochs=2", "-q", "-o", "a"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-2:] == ["Run: a", "Page: a/report.html"]
    assert (tmp_path / "a" / "report.html").stat().st_size < 3_000_000


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("no such\nthing"), "No page (no such thing). Try again with: nlsf report a"),
        (KeyboardInterrupt(), "No page (stopped). Try again with: nlsf report a"),
    ],
)
def test_a_page_that_fails_does_not_fail_the_training(tmp_path, monkeypatch, error, says):
    def fails(*_, **__):
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nlsf.report.run_page.run_page", fails)
    words = ["train", "csbm", "--set", "data.num_nodes=100", "--set", "epochs=2", "-q", "-o", "a"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == says
    assert json.loads((tmp_path / "a" / "results.jsonl").read_text())["seed"] == 0
    assert "report.html" not in os.listdir(tmp_path / "a")
