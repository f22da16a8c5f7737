import csv
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from nlsf.cli import app


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")

    def run(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output

    run.folder = folder
    settings = ["data.num_nodes=400", "epochs=60", "data.separation=2.0"]
    options = [word for setting in settings for word in ("--set", setting)]
    run.trained = run("train", "csbm", *options, "--seeds", "2", "-o", "a", "--no-report")
    return run


def table(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


SAME = ["--set", "data.num_nodes=400", "--set", "data.separation=2.0"]


def test_on_the_graph_of_the_training(run):
    output = run("predict", "a", "csbm", *SAME)
    assert "400 predictions: a/csbm-predictions.csv" in output
    assert "On 80 test examples of the training data" in output
    header, *rows = table(run.folder / "a" / "csbm-predictions.csv")
    names = [re.fullmatch(r"p\((.*)\)", name)[1] for name in header[2:]]
    assert header[:2] == ["example", "label"]
    assert [row[0] for row in rows] == [str(i) for i in range(400)]
    probabilities = np.array([row[2:] for row in rows], dtype=float)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-4)
    assert [row[1] for row in rows] == [names[i] for i in probabilities.argmax(1)]


def test_each_seed_says_what_the_training_measured(run):
    for seed in ("0", "1"):
        output = run("predict", "a", "csbm", *SAME, "--seed", seed, "-o", f"{seed}.csv")
        measured = float(re.search(r"accuracy ([\d.]+)", output)[1])
        row = next(line for line in run.trained.splitlines() if re.match(rf" +{seed} ", line))
        assert f"{100 * measured:.2f} %" == re.split("  +", row.strip())[2]


def test_on_a_larger_graph(run):
    larger = ["--set", "data.num_nodes=900", "--set", "data.separation=2.0"]
    output = run("predict", "a", "csbm", *larger, "--set", "data.seed=3", "-o", "new/large.csv")
    assert "On 900 examples with a known label" in output
    assert float(re.search(r"accuracy ([\d.]+)", output)[1]) > 0.6
    assert len(table(run.folder / "new" / "large.csv")) == 901


def test_on_a_file_without_labels(run):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 30, (60, 2))
    np.savez(run.folder / "own.npz", edges=edges, node_features=rng.normal(size=(30, 16)))
    output = run("predict", "a", "own.npz")
    assert "30 predictions: a/own-predictions.csv" in output
    assert "accuracy" not in output
