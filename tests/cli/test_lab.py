"""``nlsf lab``: lists, runs, says what holds, and writes a page."""

import dataclasses
import sys

import pytest
from typer.testing import CliRunner

from nlsf import lab
from nlsf.cli import app, main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["lab", *arguments])
        assert done.exit_code == code, done.output
        return done.output

    return run


@pytest.fixture
def two_studies(monkeypatch):
    """A study that holds, and one that does not, instead of all."""
    good = lab.find_study("activations")

    def failing(settings):
        return dataclasses.replace(good.run(settings), holds=False)

    bad = dataclasses.replace(good, name="wrong", run=failing)
    monkeypatch.setattr("nlsf.lab.STUDIES", {"activations": good, "wrong": bad})


def test_it_lists_every_study(run):
    output = run("list")
    for name in lab.STUDIES:
        assert name in output


def test_it_runs_one_with_settings(run, tmp_path):
    output = run("run", "activations", "--set", "samples=2", "-o", "new/pages")
    assert "activations (" in output
    assert "): holds." in output
    assert "Page: new/pages/activations.html" in output
    assert "2 random shifts" in (tmp_path / "new/pages/activations.html").read_text()


def test_it_runs_all_and_fails_if_a_claim_does(run, tmp_path, two_studies):
    output = run("all", code=1)
    assert "activations (" in output
    assert "DOES NOT HOLD" in output
    assert "Page: nlsf-out/lab/gallery.html" in output
    assert output.rstrip().endswith("The claim does not hold on what was sampled: wrong.")
    assert (tmp_path / "nlsf-out/lab/gallery.html").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["run", "activation"],
            "no study 'activation'. Did you mean 'activations'?",
        ),
        (["run", "activations", "--set", "sample=3"], "Did you mean 'samples'?"),
        (["run", "activations", "--set", "samples=0"], "nlsf: samples must be at least 1, not 0."),
    ],
)
def test_mistakes_are_one_sentence(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["nlsf", "lab", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
