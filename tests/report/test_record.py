import json

import pytest

from nlsf.errors import ConfigError, FormatError
from nlsf.report.record import RunRecord
from report.small_runs import trained_folder, without
from train.small import node_data, regression_data


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
    assert record.spec == record.result["spec"]


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
