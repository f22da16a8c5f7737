"""What a run has written down, as charts."""

import dataclasses
import math

import pytest

from nlsf.data.metrics import interval
from nlsf.report.charts import BarChart, Tiles
from nlsf.report.numbers import seconds
from nlsf.report.results_section import (
    binomial_noise,
    learning_curves,
    overview_charts,
    setting_text,
    settings_charts,
    timing_charts,
)
from nlsf.report.runs import RunRecord
from nlsf.train.settings.toml import flat
from report.small_runs import trained_folder, without
from train.small import node_data, regression_data


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = trained_folder(node_data(), tmp_path_factory.mktemp("runs") / "many", seeds=13)
    return RunRecord.read(folder)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return RunRecord.read(
        trained_folder(regression_data(), tmp_path_factory.mktemp("runs") / "one")
    )


def tiles(record):
    chart = overview_charts(record)[0]
    assert isinstance(chart, Tiles)
    return {label: (value, note) for label, value, note in chart.items}


def test_the_first_tile_is_the_mean_with_its_interval(many):
    mean, half = interval([row["test_accuracy"] for row in many.results])
    value, note = tiles(many)["Test accuracy"]
    assert value == f"{100 * mean:.2f} ± {100 * half:.2f} %"
    noise = 100 * 1.96 * math.sqrt(mean * (1 - mean) / many.result["sizes"][2])
    assert f"± {noise:.1f} points" in note


def test_one_seed_has_no_interval(one):
    value, note = tiles(one)["Test root mean square error"]
    assert value == f"{one.result['test_rmse']:.4g}"
    assert "points" not in note
    assert len(overview_charts(one)) == 1


def test_a_model_that_failed_makes_the_mean_unknown(one):
    rows = [{**one.result, "test_rmse": None}, one.result]
    assert tiles(dataclasses.replace(one, results=rows))["Test root mean square error"][0] == (
        "unknown"
    )


def test_the_split_is_counted(many):
    assert tiles(many)["Examples"][0] == "36 / 12 / 12"


def test_every_seed_has_its_bars(many):
    bars = overview_charts(many)[1]
    assert isinstance(bars, BarChart)
    assert bars.categories == [str(seed) for seed in range(13)]
    assert dict(bars.series)["test"] == [row["test_accuracy"] for row in many.results]


def test_more_seeds_than_there_is_room_for_are_counted(many):
    rows = [{**many.results[0], "seed": seed} for seed in range(70)]
    bars = overview_charts(dataclasses.replace(many, results=rows))[1]
    assert len(bars.categories) == 60
    assert "10 more seeds are not shown" in bars.caption


@pytest.mark.parametrize(("accuracy", "examples", "noise"), [(0.5, 100, 0.098), (1.0, 10, 0.0)])
def test_binomial_noise(accuracy, examples, noise):
    assert binomial_noise(accuracy, examples) == pytest.approx(noise)


def test_curves_are_the_rows_of_the_shown_seed(many):
    loss, metric = learning_curves(many)
    rows = many.epochs(many.seed)
    assert loss.series[0].y == [row["train_loss"] for row in rows]
    assert loss.series[1].y == [row["val_loss"] for row in rows]
    assert metric.series[0].y == [row["val_accuracy"] for row in rows]
    assert [x for x, _ in loss.marks] == [many.result["best_epoch"]]


def test_at_most_ten_other_seeds_are_faint(many):
    loss, metric = learning_curves(many)
    assert [series.faint for series in loss.series] == [False, False] + [True] * 10
    assert [series.faint for series in metric.series] == [False] + [True] * 10


def test_long_trainings_are_thinned_and_keep_the_best_epoch(many):
    rows = [
        {"seed": 0, "epoch": e, "train_loss": 1 / e, "val_loss": None, "val_accuracy": 0.5,
         "best": e == 12_346}
        for e in range(1, 50_001)
    ]  # fmt: skip
    loss, _ = learning_curves(dataclasses.replace(many, metrics=rows, seed=0))
    assert 2_000 <= len(loss.series[0].x) <= 2_001
    assert 12_346 in loss.series[0].x
    assert loss.marks == [(12_346.0, "best epoch: 12346")]


def test_averaged_weights_are_said(many):
    training = {**many.settings["training"], "average": 0.1}
    averaged = dataclasses.replace(many, settings={**many.settings, "training": training})
    assert "averaged" not in learning_curves(many)[1].caption
    assert "averaged over the epochs before it" in learning_curves(averaged)[1].caption


def test_no_epochs_give_no_curves(many):
    assert learning_curves(dataclasses.replace(many, metrics=[])) == []


def test_times_are_counted_once_a_group(many):
    (bars,) = timing_charts(many)
    row = many.results[0]
    assert bars.series[0][1] == pytest.approx([row["prepare_seconds"], row["seconds"]])
    assert "13 models" in bars.caption


@pytest.mark.parametrize("second", [3.0, 2.0], ids=["other time", "same time"])
def test_groups_that_trained_one_after_the_other_add_up(many, second):
    rows = [
        {**row, "seconds": time, "together": 1}
        for row, time in zip(many.results, (2.0, second), strict=False)
    ]
    record = dataclasses.replace(many, results=rows, seed=rows[0]["seed"])
    (bars,) = timing_charts(record)
    assert bars.series[0][1][1] == 2.0 + second
    assert tiles(record)["Training"][0] == seconds(2.0 + second)
    assert record.seconds == 2.0 + second + many.results[0]["prepare_seconds"]


def test_the_cost_is_told(many):
    rows = [
        {**row, "together": together, "cpu_seconds": cpu, "peak_memory": peak}
        for row, together, cpu, peak in zip(
            many.results, (2, 2, 1), (70.0, 70.0, 5.0), (10**9, 10**9, 2 * 10**9), strict=False
        )
    ]
    (bars,) = timing_charts(dataclasses.replace(many, results=rows))
    assert "The processors worked 1 min 15 s for it" in bars.caption  # once a group
    assert "at most 2,000 MB of memory" in bars.caption


def test_a_cost_that_was_not_kept_is_not_told(many):
    kept = [{k: v for k, v in r.items() if k != "cpu_seconds"} for r in many.results]
    (bars,) = timing_charts(dataclasses.replace(many, results=kept))
    assert "processors" not in bars.caption
    assert "MB of memory" in bars.caption
    unknown = [{**r, "cpu_seconds": None, "peak_memory": None} for r in many.results]
    (bars,) = timing_charts(dataclasses.replace(many, results=unknown))
    assert "processors" not in bars.caption
    assert "memory" not in bars.caption
    # A resumed run of an older version knows a part only.
    mixed = [{**many.results[0], "seconds": 9.0, "cpu_seconds": None}, many.results[1]]
    (bars,) = timing_charts(dataclasses.replace(many, results=mixed))
    assert "processors" not in bars.caption


def test_nested_tables_are_flat():
    table = {"a": 1, "b": {"c": [2], "d": {"e": "f"}}}
    assert list(flat(table)) == [("a", 1), ("b.c", [2]), ("b.d.e", "f")]


def test_long_values_are_cut():
    text = setting_text([0.123456] * 1000)
    assert len(text) < 250
    assert text.endswith("... (1,000 entries)")
    assert setting_text("x" * 300) == "x" * 200 + " ..."


def test_all_settings_and_versions_are_there(many):
    settings, versions = settings_charts(many)
    rows = dict(settings.rows)
    assert rows["training.lr"] == "0.05"
    assert rows["model.index_bands.J"] == "4"
    assert rows["data.offline"] == "false"
    found = dict(versions.rows)
    assert found["torch"] == many.result["versions"]["torch"]
    assert found["hash of the settings"] == many.result["spec"]
    assert found[f"hash of the split of seed {many.seed}"] == many.result["split"]


def test_an_unfinished_run_has_settings_only(many, tmp_path):
    record = RunRecord.read(without(many.folder, tmp_path / "copy", "results.jsonl"))
    assert [chart.title for chart in settings_charts(record)] == ["Settings"]
