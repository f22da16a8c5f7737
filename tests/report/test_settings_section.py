import pytest

from nlsf.report.record import RunRecord
from nlsf.report.settings_section import flat, setting, settings_charts
from report.small_runs import trained_folder, without
from train.small import node_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return trained_folder(node_data(), tmp_path_factory.mktemp("runs") / "run")


def test_nested_tables_are_flat():
    table = {"a": 1, "b": {"c": [2], "d": {"e": "f"}}}
    assert list(flat(table)) == [("a", 1), ("b.c", [2]), ("b.d.e", "f")]


def test_long_values_are_cut():
    text = setting([0.123456] * 1000)
    assert len(text) < 250
    assert text.endswith("... (1,000 entries)")
    assert setting("x" * 300) == "x" * 200 + " ..."


def test_all_settings_and_versions_are_there(folder):
    record = RunRecord.read(folder)
    settings, versions = settings_charts(record)
    rows = dict(settings.rows)
    assert rows["training.lr"] == "0.05"
    assert rows["model.index_bands.J"] == "4"
    assert rows["data.offline"] == "false"
    found = dict(versions.rows)
    assert found["torch"] == record.result["versions"]["torch"]
    assert found["hash of the settings"] == record.spec
    assert found["hash of the split of seed 0"] == record.result["split"]


def test_an_unfinished_run_has_settings_only(folder, tmp_path):
    record = RunRecord.read(without(folder, tmp_path / "copy", "results.jsonl"))
    assert [chart.title for chart in settings_charts(record)] == ["Settings"]
