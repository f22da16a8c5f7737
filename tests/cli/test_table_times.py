import csv
import io

import pytest
from typer.testing import CliRunner

from nlsf.cli import app
from tables.spec_texts import GCN, VALUE, experiment

DATA = """
[[data]]
name = "csbm"
label = "{}"
options = {{num_nodes = {}}}
training = {{epochs = 3, patience = 3}}
"""
WIDE = """
[[method]]
label = "Too wide"
model = "value"
settings = {model = {response = "full", place = "hidden", hidden_channels = 512}}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, GCN, VALUE)

    def run(*arguments):
        return CliRunner().invoke(app, ["table", *arguments])

    return run


def write(folder, *methods):
    (folder / "experiments").mkdir(exist_ok=True)
    data = DATA.format("small", 60), DATA.format("large", 90)
    text = experiment(*data, *methods, top='title = "Times"\nmeasure = "time"')
    (folder / "experiments" / "times.toml").write_text(text)


def test_times_are_measured_and_shown(run):
    done = run("times", "--run")
    assert done.exit_code == 0, done.output
    assert "small: 2 methods" in done.output
    assert "GCN on large: 3 epochs" in done.output
    assert "1.00x" in done.output
    shown = run("times", "-f", "csv", "-d", "small", "-m", "value")
    (row,) = csv.DictReader(io.StringIO(shown.stdout))
    assert (row["method"], row["data"], row["epochs"]) == ("Value NLSF", "small", "3")
    assert float(row["epoch_ratio"]) > 0
    again = run("times", "--run")
    assert "2 methods" not in again.output
    listed = run()
    assert "2 of 2" in listed.output


def test_a_data_set_at_a_time(run):
    assert run("times", "--run", "-q", "-d", "small").exit_code == 0
    assert "1 of 2" in run().output
    late = run("times", "--run", "-q", "--budget", "0s")
    assert late.exit_code == 0
    assert "No time was left for 1 data set: large." in late.output


def test_some_methods_alone_are_not_measured(run):
    done = run("times", "--run", "-m", "gcn")
    assert done.exit_code == 2
    assert "all methods together" in " ".join(done.output.split())


def test_what_fails_is_told(run, tmp_path):
    write(tmp_path, GCN, WIDE)
    done = run("times", "--run", "-d", "small")
    assert done.exit_code == 1
    assert "No number for Too wide on small: A full response" in " ".join(done.output.split())
    assert run("times", "-f", "markdown").exit_code == 0


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "terminal"])
def test_a_table_may_go_into_a_file(run, tmp_path, form):
    done = run("times", "-f", form, "-o", "out.txt")
    assert done.exit_code == 0, done.output
    assert "small" in (tmp_path / "out.txt").read_text()
