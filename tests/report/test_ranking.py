"""The order of models, and what the CSV says of them and of those that have no place."""

import csv
import math

import pytest

from nlsf.data.metrics import interval
from nlsf.report.ranking import known_values, ranking, run_seconds, write_ranking
from nlsf.report.record import RunRecord
from nlsf.train import RunFolder, train
from train.small import NODE_MODEL, given, node_data, regression_data

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
    assert known_values(RunRecord.read(folders["half"]), "test") == [0.5, 0.5]
    write_ranking(tmp_path / "out.csv", places)
    broken = read(tmp_path / "out.csv")[-1]
    assert (broken["model"], broken["test"], broken["behind_first"]) == ("broken", "", "")


def test_the_time_counts_models_that_trained_together_once(run):
    # Two splits of one size train together, the third by itself.
    groups = {row["seconds"]: row["together"] for row in run.rows}
    assert sorted(groups.values()) == [1, 2]
    expected = sum(groups) + run.rows[0]["prepare_seconds"]
    assert run_seconds(RunRecord.read(run.folder)) == pytest.approx(expected)


def test_models_without_a_result_have_a_reason(run, tmp_path):
    reason = 'The loss is nan, so "lower" training.lr,\nor look.'
    write_ranking(tmp_path / "out.csv", ranking({"a": run.folder}), {"b": reason})
    a, b = read(tmp_path / "out.csv")
    assert (a["model"], a["status"]) == ("a", "finished")
    assert (b["model"], b["status"], b["reason"], b["test"]) == ("b", "failed", reason, "")
    write_ranking(tmp_path / "none.csv", [], {"b": reason})
    assert [row["model"] for row in read(tmp_path / "none.csv")] == ["b"]
    assert ranking({}) == []
