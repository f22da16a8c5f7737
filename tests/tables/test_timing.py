"""Times are measured of all methods of a data set together, once, and kept whole."""

import json

import pytest
import torch

from nlsf.errors import ConfigError, FormatError
from nlsf.tables.fill.fill import fill, held
from nlsf.tables.fill.results import Store
from nlsf.tables.fill.timing import Timings, measure, stem_of, time_all
from nlsf.tables.spec.spec_file import read_experiment
from tables.spec_texts import GCN, VALUE, experiment
from tables.test_fill import Watch

TOP = 'title = "Times"\nmeasure = "time"\n'
SMALL, LARGE = (
    f'[[data]]\nname = "csbm"\nlabel = "{label}"\noptions = {{num_nodes = {nodes}}}\n'
    f"training = {{epochs = {epochs}, patience = {epochs}}}\n"
    for label, nodes, epochs in (("small", 80, 4), ("large", 120, 3))
)


def table(folder, *parts, name="times"):
    path = folder / f"{name}.toml"
    path.write_text(experiment(*parts, top=TOP))
    return read_experiment(path)


@pytest.fixture
def times(tmp_path):
    return table(tmp_path, LARGE, SMALL, GCN, VALUE)


def test_a_row_has_what_was_measured(times):
    watch = Watch()
    rows = measure(times, times.columns[1], rounds=3, display=watch)
    assert [row["method"] for row in rows] == ["GCN", "Value NLSF"]
    for row, method in zip(rows, times.methods, strict=True):
        assert row["cell"] == times.cell(method, times.columns[1]).id
        assert row["error"] is None
        assert row["epochs"] == 4
        assert row["rounds"] == 3
        assert row["threads"] == torch.get_num_threads()
        assert row["parameters"] > 0
        for kind in ("", "cpu_"):
            assert 0 < row[f"epoch_{kind}seconds"] < row[f"train_{kind}seconds"]
            parts = row[f"prepare_{kind}seconds"] + row[f"train_{kind}seconds"]
            assert row[f"total_{kind}seconds"] == parts
    assert len(watch.said) == 2
    json.dumps(rows)


def test_nothing_is_chosen(times):
    assert all(not cell.space for _, _, cell in times.cells())


def test_a_method_that_fails_leaves_the_others_alone(tmp_path):
    broken = '[[method]]\nlabel = "Broken"\nmodel = "value"\n'
    broken += 'settings = {model = {response = "full", place = "hidden", hidden_channels = 512}}\n'
    times = table(tmp_path, SMALL, GCN, broken)
    rows = measure(times, times.columns[0], rounds=1)
    assert rows[0]["error"] is None
    assert rows[0]["epoch_seconds"] > 0
    assert "parameters" in rows[1]["error"]
    timings = Timings(tmp_path / "rows")
    timings.write(times, times.columns[0], rows)
    assert timings.rows(times, times.columns[0]) == {row["method"]: row for row in rows}


def test_data_sets_are_measured_once_the_smallest_first(times, tmp_path):
    timings, watch = Timings(tmp_path / "rows"), Watch()
    done = time_all(times, timings, tmp_path / "work", rounds=1, display=watch)
    assert done.filled == ["small", "large"]
    assert done.failed == []
    before = {path: path.read_bytes() for path in timings.path.rglob("*.jsonl")}
    assert {path.parent.name for path in before} == {stem_of(times, c) for c in times.columns}
    again = time_all(times, timings, tmp_path / "work", rounds=1)
    assert again.kept == ["small", "large"]
    assert {path: path.read_bytes() for path in timings.path.rglob("*.jsonl")} == before


def test_a_new_method_makes_the_data_set_incomplete(times, tmp_path):
    timings = Timings(tmp_path / "rows")
    column = times.columns[1]
    timings.write(times, column, measure(times, column, rounds=1))
    assert timings.is_whole(times, column)
    index = '[[method]]\nlabel = "Index NLSF"\nmodel = "index"\n'
    more = table(tmp_path, LARGE, SMALL, GCN, VALUE, index)
    assert not timings.is_whole(more, more.columns[1])
    assert set(timings.rows(more, more.columns[1])) == {"GCN", "Value NLSF"}
    changed = table(tmp_path, LARGE, SMALL, GCN + "settings = {training = {lr = 0.5}}\n", VALUE)
    assert set(timings.rows(changed, changed.columns[1])) == {"Value NLSF"}
    time_all(changed.select(None, ["small"]), timings, tmp_path / "work", rounds=1)
    assert timings.is_whole(changed, changed.columns[1])


def test_a_budget_and_another_process_leave_data_sets(times, tmp_path):
    timings, work = Timings(tmp_path / "rows"), tmp_path / "work"
    assert time_all(times, timings, work, budget=0.0).left == ["small", "large"]
    with held(work / stem_of(times, times.columns[0])) as free:
        assert free
        done = time_all(times, timings, work, rounds=1)
    assert (done.held, done.filled) == (["large"], ["small"])


def test_where_the_data_lie_does_not_matter(times, tmp_path):
    moved = times.at(tmp_path, offline=True)
    assert stem_of(moved, moved.columns[0]) == stem_of(times, times.columns[0])


def test_rows_that_were_changed_are_refused(times, tmp_path):
    timings, column = Timings(tmp_path / "rows"), times.columns[1]
    row = measure(times, column, rounds=1)[0]
    for change, says in (
        ({"epoch_seconds": "fast"}, "line 1: epoch_seconds must be a number"),
        ({"total_cpu_seconds": None}, "total_cpu_seconds must be a number"),
        ({"method": 3}, "method must be a text"),
        ({"error": 3}, "error must be a reason or null"),
    ):
        timings.write(times, column, [{**row, **change}])
        with pytest.raises(FormatError, match=says):
            timings.rows(times, column)
    timings.write(times, column, [row, row])
    with pytest.raises(FormatError, match="line 2: 'GCN' stands there twice"):
        timings.rows(times, column)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((SMALL, VALUE), "needs a method with model = 'gcn'"),
        ((SMALL, GCN, "[tuning]\ntrials = 3\n"), r"\[tuning\] has no place"),
        ((SMALL, GCN, '[space]\n"training.lr" = [0.1]\n'), r"\[space\] has no place"),
    ],
)
def test_what_makes_no_sense_for_times_is_refused(tmp_path, parts, says):
    with pytest.raises(ConfigError, match=says):
        table(tmp_path, *parts)


def test_times_are_not_filled_like_accuracies(times, tmp_path):
    with pytest.raises(ConfigError, match="is a table of times"):
        fill(times, Store(tmp_path / "rows"), tmp_path / "work")


def test_a_model_without_epochs_has_no_time(tmp_path):
    majority = '[[method]]\nlabel = "Majority"\nmodel = "majority"\n'
    times = table(tmp_path, SMALL, GCN, majority)
    rows = measure(times, times.columns[0], rounds=1)
    assert "has no epochs" in rows[1]["error"]
