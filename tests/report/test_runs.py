"""What runs have written down, and how models rank."""

import csv
import json
import math

import pytest

from nlsf.data.metrics import interval
from nlsf.errors import ConfigError, FormatError
from nlsf.report.runs import RunRecord, ranking, write_ranking
from nlsf.train import RunFolder, train
from report.small_runs import trained_folder, without
from train.small import NODE_MODEL, given, node_data, regression_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return trained_folder(node_data(), tmp_path_factory.mktemp("runs") / "run", seeds=[4, 1, 2])


def test_the_shown_seed_did_best_on_validation(folder):
    record = RunRecord.read(folder)
    best = max(row["val_accuracy"] for row in record.results)
    assert record.result["val_accuracy"] == best
    assert record.result["seed"] == record.seed


def test_of_errors_the_smallest_is_best(tmp_path):
    folder = trained_folder(regression_data(), tmp_path / "run", seeds=3)
    record = RunRecord.read(folder)
    assert record.result["val_rmse"] == min(row["val_rmse"] for row in folder.results())


def test_the_names_are_those_of_the_run(folder):
    record = RunRecord.read(folder)
    assert (record.name, record.model, record.metric) == ("small", "att-node", "accuracy")
    assert record.seeds == [4, 1, 2]


def test_epochs_are_those_of_one_seed(folder):
    rows = RunRecord.read(folder).epochs(1)
    assert [row["epoch"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["seed"] for row in rows} == {1}


def test_an_unfinished_run_shows_its_first_seed(folder, tmp_path):
    record = RunRecord.read(without(folder, tmp_path / "copy", "results.jsonl"))
    assert not record.finished
    assert record.seed == 4
    assert record.name == "small"


def test_a_seed_of_another_run_is_refused(folder):
    with pytest.raises(ConfigError, match="has no seed 0: it has 4, 1, 2"):
        RunRecord.read(folder, 0)


@pytest.mark.parametrize("key", ["seeds", "metric", "protocol", "name"])
def test_a_configuration_that_is_none_is_refused(folder, tmp_path, key):
    copy = without(folder, tmp_path / "copy")
    lines = [line for line in copy.read_config().splitlines() if not line.startswith(f"{key} =")]
    (copy.path / "config.toml").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="is not the configuration of a run"):
        RunRecord.read(copy)


def test_a_row_without_a_number_is_named(folder, tmp_path):
    copy = without(folder, tmp_path / "copy")
    first, *rows = copy.results()
    del rows[0]["val_accuracy"]
    copy.write_results([first, *rows])
    with pytest.raises(FormatError, match=r"results.jsonl, line 2: 'val_accuracy' is missing"):
        RunRecord.read(copy)


def test_a_failed_model_is_not_the_best(folder, tmp_path):
    copy = without(folder, tmp_path / "copy")
    rows = copy.results()
    best = RunRecord.read(folder).seed
    copy.write_results([{**r, "val_accuracy": None} if r["seed"] == best else r for r in rows])
    assert RunRecord.read(copy).seed != best


def test_damaged_results_count_as_none_but_damaged_metrics_are_named(folder, tmp_path):
    copy = without(folder, tmp_path / "copy")
    (copy.path / "results.jsonl").write_text("{")
    assert not RunRecord.read(copy).finished
    (copy.path / "metrics.jsonl").write_text(json.dumps([1]) + "\n")
    with pytest.raises(FormatError, match="line 1"):
        RunRecord.read(copy)


SPLITS = given(60, (20, 20), (20, 20), (25, 20))


def copy(run, place, **numbers):
    """The run with other numbers, one a seed."""
    folder = RunFolder.create_at(place)
    folder.write_config(run.folder.read_config())
    rows = [dict(row) for row in run.rows]
    for key, values in numbers.items():
        for row, value in zip(rows, values, strict=True):
            row[key] = value
    folder.write_results(rows)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    table = {"model": NODE_MODEL, "seeds": 3, "training": {"epochs": 2}}
    place = tmp_path_factory.mktemp("runs") / "run"
    return train(node_data(given=SPLITS), table, output=place, cache=False)


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_best_is_first_and_the_others_are_paired_with_it(run, tmp_path):
    values = {"low": [0.5, 0.6, 0.7], "high": [0.7, 0.9, 0.8]}
    folders = {n: copy(run, tmp_path / n, test_accuracy=v) for n, v in values.items()}
    first, second = ranking(folders)
    assert (first.name, second.name) == ("high", "low")
    assert first.test == pytest.approx(interval(values["high"]))
    assert first.difference == (0, 0)
    assert second.difference == pytest.approx(interval([-0.2, -0.3, -0.1]))
    write_ranking(tmp_path / "out.csv", [first, second])
    row = read(tmp_path / "out.csv")[1]
    assert float(row["behind_first"]) == pytest.approx(-0.2)
    assert float(row["behind_95"]) == pytest.approx(interval([-0.2, -0.3, -0.1])[1], rel=1e-5)
    assert (row["status"], row["reason"]) == ("finished", "")


def test_the_smallest_error_is_first(tmp_path):
    table = {"model": NODE_MODEL, "seeds": 2, "training": {"epochs": 2}}
    run = train(regression_data(), table, output=tmp_path / "run", cache=False)
    folders = {
        name: copy(run, tmp_path / name, test_rmse=[error, error])
        for name, error in (("far", 2.0), ("near", 1.0))
    }
    assert [place.name for place in ranking(folders)] == ["near", "far"]


def test_a_result_that_is_not_a_number_is_last(run, tmp_path):
    folders = {
        "broken": copy(run, tmp_path / "broken", test_accuracy=[math.nan] * 3),
        "poor": copy(run, tmp_path / "poor", test_accuracy=[0.1, 0.1, 0.1]),
        "half": copy(run, tmp_path / "half", test_accuracy=[math.nan, 0.5, 0.5]),
    }
    places = ranking(folders)
    assert [place.name for place in places] == ["half", "poor", "broken"]
    assert RunRecord.read(folders["half"]).known_values("test") == [0.5, 0.5]
    write_ranking(tmp_path / "out.csv", places)
    broken = read(tmp_path / "out.csv")[-1]
    assert (broken["model"], broken["test"], broken["behind_first"]) == ("broken", "", "")


def test_the_time_counts_models_that_trained_together_once(run):
    # Two splits of one size train together, the third by itself.
    groups = {row["seconds"]: row["together"] for row in run.rows}
    assert sorted(groups.values()) == [1, 2]
    expected = sum(groups) + run.rows[0]["prepare_seconds"]
    assert RunRecord.read(run.folder).seconds == pytest.approx(expected)


def test_models_without_a_result_have_a_reason(run, tmp_path):
    reason = 'The loss is nan, so "lower" training.lr,\nor look.'
    write_ranking(tmp_path / "out.csv", ranking({"a": run.folder}), {"b": reason})
    a, b = read(tmp_path / "out.csv")
    assert (a["model"], a["status"]) == ("a", "finished")
    assert (b["model"], b["status"], b["reason"], b["test"]) == ("b", "failed", reason, "")
    write_ranking(tmp_path / "none.csv", [], {"b": reason})
    assert [row["model"] for row in read(tmp_path / "none.csv")] == ["b"]
    assert ranking({}) == []
