import os
import webbrowser

import pytest
from typer.testing import CliRunner

from nlsf.cli import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        done = CliRunner().invoke(app, ["spectrum", *arguments])
        assert done.exit_code == 0, done.output
        assert done.stdout.count("share of the features") == 2
        return done.stdout

    return run


@pytest.fixture
def empty_pictures(monkeypatch):
    """For tests of something else: drawing takes longer than all the rest."""
    monkeypatch.setattr(
        "nlsf.plotting.plot_spectra", lambda spectra, bands, x, path, title: path.touch()
    )


def test_it_prints_and_draws(run, tmp_path):
    picture = tmp_path / "new folder" / "many.png"
    output = run("csbm", "--set", "data.num_nodes=300", "-o", str(picture), "-S", "3")
    assert "300 nodes" in output
    assert "largest eigenvalue 21.98" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(picture.parent) == ["many.png"], "no half-written file stays"


def test_options_of_the_data_and_a_picture_by_default(run, tmp_path):
    assert "200 nodes" in run("csbm", "--set", "data.num_nodes=200")
    assert os.listdir(tmp_path / "nlsf-out") == ["csbm-spectrum.svg"]


def test_signals_on_a_grid(run):
    assert "64 nodes, 112 edges" in run("digits-grid")


def test_a_large_graph_is_shown_by_its_leading_eigenspaces(run):
    output = run("csbm", "--set", "data.num_nodes=9000", "-S", "3", "--no-cache")
    assert "9,000 nodes" in output
    rows = [line for line in output.splitlines() if line[:1].isdigit()]
    assert len(rows) == 8, "two operators, three eigenspaces and what remains"


def test_a_page_beside_the_picture(run, tmp_path, monkeypatch, empty_pictures):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    small = ["csbm", "--set", "data.num_nodes=100"]
    assert "Page: new/csbm.html" in run(*small, "--page", "new/csbm.html")
    assert "Spectrum of csbm" in (tmp_path / "new" / "csbm.html").read_text()
    assert opened == []
    run(*small, "--open")
    assert set(os.listdir(tmp_path / "nlsf-out")) == {"csbm-spectrum.html", "csbm-spectrum.svg"}
    assert opened == [(tmp_path / "nlsf-out" / "csbm-spectrum.html").resolve().as_uri()]


def test_a_page_must_be_named_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["spectrum", "csbm", "--page", "page.svg"])
    assert done.exit_code == 2
    assert "must end in .html" in done.output
    assert os.listdir(tmp_path) == []


@pytest.mark.data
def test_one_of_many_graphs(run, root, empty_pictures):
    first = run("MUTAG", "--data-root", str(root), "--offline")
    last = run("MUTAG", "--data-root", str(root), "--offline", "--graph", "187")
    assert "MUTAG: 17 nodes" in first
    assert "MUTAG: 16 nodes" in last
