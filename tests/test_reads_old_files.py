"""Files of version 0.1, in tests/golden, are read by this one: each says what it said then.

`benchmarks/golden_files.py` says what each file is and how it was made.
"""

import csv
import json
import shutil
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import golden_files
import golden_layers
from golden import GOLDEN
from golden_runs import nlsf
from nlsf.data import load
from nlsf.nn import forget_spectra
from nlsf.spectral import DyadicBands, partial_eigh
from nlsf.train import predict, resume

LAYERS = load_file(GOLDEN / "layers.safetensors")
CLOSE = {"rtol": 1e-3, "atol": 1e-3}  # single precision, on any processor


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Copies one of the old files or folders to where it may be written to."""
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path / "spectra"))

    def copy(name):
        copied = shutil.copytree if (GOLDEN / name).is_dir() else shutil.copy
        return Path(copied(GOLDEN / name, tmp_path / name))

    return copy


def contents(folder):
    """Every file with its bytes and the time of its last change."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in files
    }


def rows(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def table(file):
    with file.open(newline="") as lines:
        return list(csv.reader(lines))


class TestRunFolder:
    def test_predict_says_the_same(self, old, tmp_path):
        run, output = old("run"), tmp_path / "new.csv"
        said = nlsf("predict", run, "csbm", *golden_files.data_options(), "-o", output)
        assert "On 12 test examples of the training data" in said
        before, after = table(GOLDEN / "predictions.csv"), table(output)
        assert [row[0] for row in after] == [row[0] for row in before]
        assert after[0] == before[0]
        old_p, new_p = (
            torch.tensor([[float(p) for p in row[2:]] for row in one[1:]])
            for one in (before, after)
        )
        torch.testing.assert_close(new_p, old_p, **CLOSE)
        margin = old_p.topk(2).values.diff().abs().squeeze(-1)
        clear = [i for i in range(len(margin)) if margin[i] > 5e-3]
        assert len(clear) > 50
        assert all(after[1 + i][1] == before[1 + i][1] for i in clear)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_each_of_its_models_measures_what_it_did(self, old, seed):
        dataset = load("csbm", **golden_files.DATA)
        found = predict(old("run"), dataset, seed=seed)
        measured = rows(GOLDEN / "run" / "results.jsonl")[seed]
        assert found.metrics["accuracy"] == pytest.approx(measured["test_accuracy"], abs=0.09)

    def test_a_finished_run_is_not_trained_again(self, old):
        run = old("run")
        before = contents(run)
        result = resume(run)
        assert result.rows == rows(GOLDEN / "run" / "results.jsonl")
        assert "Epoch" not in nlsf("train", "--resume", run, "--no-report")
        assert contents(run) == before

    def test_an_interrupted_run_goes_on_to_the_same_end(self, old):
        run = old("interrupted")
        assert {row["epoch"] for row in rows(run / "metrics.jsonl")} == {1, 2, 3, 4, 5, 6}
        result = resume(run)
        metrics = rows(run / "metrics.jsonl")
        for name, new in (("metrics.jsonl", metrics), ("results.jsonl", result.rows)):
            for one, other in zip(rows(GOLDEN / "run" / name), new, strict=True):
                exact = one.keys() & {"epoch", "model", "seed", "split", "spec"}
                assert {key: other[key] for key in exact} == {key: one[key] for key in exact}
                losses = [key for key in one if key.endswith("loss")]
                assert len(losses) > 1
                for key in losses:
                    assert other[key] == pytest.approx(one[key], rel=1e-2), (name, key)

    def test_reports_read_it(self, old, tmp_path):
        run, other = old("run"), old("interrupted")
        resume(other)
        nlsf("report", run)
        nlsf("report", run, other, "-o", tmp_path / "both.html")
        for page in (run / "report.html", tmp_path / "both.html"):
            assert "att-node" in page.read_text()

    def test_a_comparison_is_kept(self, old):
        folder = old("compared")
        before = contents(folder)
        nlsf("compare", *golden_files.COMPARED, *golden_files.SMALL, "-o", folder)
        after = contents(folder)
        after.pop("comparison.html")
        assert after.keys() == before.keys()
        assert all(after[name][0] == before[name][0] for name in before)
        assert all(after[name] == before[name] for name in before if "/" in name)

    def test_settings_mean_what_they_meant(self, old, tmp_path):
        quick = ("--set", "epochs=1", "--no-report", "--no-cache", "--quiet")
        nlsf("train", "-c", old("settings.toml"), *quick, "-o", tmp_path / "new")
        before, after = (
            tomllib.loads((place / "config.toml").read_text())
            for place in (GOLDEN / "run", tmp_path / "new")
        )
        assert after["training"].pop("epochs") == 1
        before["training"].pop("epochs")
        for section, values in before.items():
            new = after[section]
            assert new | values == new if isinstance(values, dict) else new == values, section


class TestSpectra:
    def test_a_training_finds_them(self, old, monkeypatch):
        cache = old("cache")
        monkeypatch.setenv("NLSF_CACHE", str(cache))
        before = contents(cache)
        assert len(before) == 2
        forget_spectra()
        predict(GOLDEN / "run", load("csbm", **golden_files.DATA))
        assert contents(cache) == before, "a miss writes a new file"

    def test_complex_ones(self, old):
        cache = old("magnetic")
        before = contents(cache)
        shift, bands = golden_files.magnetic(), DyadicBands(S=3)
        found = partial_eigh(shift, bands=bands, cache=cache)
        assert contents(cache) == before
        (file,) = cache.iterdir()
        torch.testing.assert_close(found.values, load_file(file)["values"], rtol=0, atol=0)
        again = partial_eigh(shift, bands=bands)
        torch.testing.assert_close(found.values, again.values, rtol=1e-9, atol=1e-9)

    def test_a_pickled_graph_has_its_spectrum(self):
        data = torch.load(GOLDEN / "graph.pt", weights_only=False)
        new = golden_files.graph_with_spectrum()
        torch.testing.assert_close(data.spectrum.values, new.spectrum.values, rtol=1e-9, atol=1e-9)
        x, edges, layer = data.x, data.edge_index, golden_layers.layer_of("node, a = 0")
        assert layer(x, spectrum=data.spectrum).shape == (20, 3)
        torch.testing.assert_close(data.edge_index, edges)


@pytest.mark.parametrize("name", golden_layers.LAYERS)
def test_the_weights_of_a_layer(name):
    parts = {k.removeprefix(f"{name}/"): v for k, v in LAYERS.items() if k.startswith(f"{name}/")}
    layer = golden_layers.LAYERS[name]().double().eval()
    state = {k.removeprefix("state/"): v for k, v in parts.items() if k.startswith("state/")}
    layer.load_state_dict(state)
    graph = [parts[key] for key in ("edge_index", "edge_weight") if key in parts]
    with torch.no_grad():
        y = layer(parts["x"], *graph)
    torch.testing.assert_close(y, parts["output"], rtol=1e-6, atol=1e-8)


class TestTables:
    def test_rows_are_found_and_nothing_is_trained(self, old, tmp_path):
        folder = old("small")
        places = golden_files.table_places(folder, tmp_path / "work")
        before = contents(folder)
        nlsf("table", "small", "--run", *places)
        assert contents(folder) == before
        assert not (tmp_path / "work").exists()
        nlsf("table", "small", "-f", "csv", "-o", tmp_path / "new.csv", *places)
        assert (tmp_path / "new.csv").read_text() == (GOLDEN / "small" / "small.csv").read_text()

    def test_a_tuning_goes_on(self, old, tmp_path):
        journal = old("study.journal")
        space, trials = GOLDEN / "space.toml", golden_layers.trials_of(journal, "csbm-mlp")
        said = nlsf("tune", *golden_files.TUNED, "--space", space, "-o", tmp_path)
        assert "3 of them done" in said
        assert golden_layers.trials_of(journal, "csbm-mlp") == trials
        assert [trial.state for trial in trials] == ["complete"] * 3
        best = tomllib.loads((tmp_path / "best.toml").read_text())
        assert best["training"]["lr"] == max(trials, key=lambda t: t.value).point["training.lr"]
