import signal
import time

import pytest

from nlsf.display.progress import Progress
from nlsf.tables.fill.fill import fill, in_order
from nlsf.tables.fill.results import Store
from nlsf.tables.spec.spec_file import read_experiment
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.train import train
from processes import Process, barrier, nlsf
from tables.spec_texts import TUNING, experiment, quick

RUN = ("table", "small", "--run")
TIMES = ("seconds", "prepare_seconds", "cpu_seconds", "peak_memory")


class Watch(Progress):
    """Remembers what it was told."""

    def __init__(self):
        super().__init__()
        self.begun, self.said = [], []

    def advanced(self, phase):
        if phase.unit == "cell":
            self.begin(phase.done + 1, phase.total, phase.item)

    def begin(self, number, total, name):
        self.begun.append((number, total, name))

    def say(self, text):
        self.said.append(text)


def read(tmp_path, text):
    path = tmp_path / "experiments" / "small.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return read_experiment(path)


@pytest.fixture
def places(tmp_path):
    return Store(tmp_path / "results" / "tables"), tmp_path / "runs" / "tables"


def rows_of(table, store):
    """All rows without what a clock or the machine's memory says, by row and column."""
    return {
        (method.label, column.label): [
            {key: value for key, value in row.items() if key not in TIMES}
            for row in store.rows(cell)
        ]
        for method, column, cell in table.cells()
    }


def names(places):
    return [place.name for place in places]


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_are_those_of_a_training_and_a_second_fill_does_nothing(tmp_path, places):
    data = '[[data]]\nname = "digits"\nprotocol = "random"\ntraining = {epochs = 3}\n'
    lr = 'space = {"training.lr" = [0.5]}\nsettings = {model = {hidden_channels = 16}}\n'
    methods = ['[[method]]\nmodel = "gcn"\n' + lr, '[[method]]\nmodel = "mlp"\ntuned = false\n']
    table = read(tmp_path, experiment(TUNING, data, *methods))
    store, work = places
    filled = fill(table, store, work)
    assert filled.filled == ["gcn on digits", "mlp on digits"]
    assert not filled.failed + filled.left + filled.held + filled.kept
    for _, _, cell in table.cells():
        rows = store.rows(cell)
        assert [row["seed"] for row in rows] == [0, 1]
        assert [row["trials"] for row in rows] == [2 if cell.space else 0] * 2
        assert set(rows[0]["point"]) == set(cell.space.choices)
        assert len(store.trials(cell)) == (2 if cell.space else 0)
        again = train("digits", cell.table(rows[0]["point"], [0, 1]), output=tmp_path / cell.model)
        for row, same in zip(rows, again.rows, strict=True):
            own = ("spec", "cell", "point", "trials", *TIMES)
            assert {k: v for k, v in row.items() if k not in own} == {
                k: v for k, v in same.items() if k not in own
            }
    before, watch = content(tmp_path), Watch()
    filled = fill(table, store, work, display=watch)
    assert filled.kept == ["gcn on digits", "mlp on digits"]
    assert not filled.filled
    assert not watch.begun
    assert content(tmp_path) == before


def test_our_methods_come_first_and_small_data_before_large(tmp_path):
    table = read(tmp_path, quick())
    assert names(in_order(table)) == [
        "Value NLSF on small",
        "Value NLSF on large",
        "GCN on small",
        "GCN on large",
    ]


def test_chosen_rows_and_columns_are_filled(tmp_path, places):
    table, watch = read(tmp_path, quick(tuned=())), Watch()
    filled = fill(table.select(["gcn"], ["small"]), *places, display=watch)
    assert filled.filled == ["GCN on small"]
    assert watch.begun == [(1, 1, "GCN on small")]
    assert [key for key, rows in rows_of(table, places[0]).items() if rows] == [("GCN", "small")]


def test_more_seeds_are_added_with_the_point_that_was_chosen(tmp_path, places):
    store, work = places
    fill(read(tmp_path, quick(seeds=1)).select(["gcn"]), store, work)
    table = read(tmp_path, quick(seeds=3)).select(["gcn"])
    before = rows_of(table, store)
    for journal in work.glob("*/study.journal*"):  # as on another machine, where only rows are
        journal.unlink()
    fill(table, store, work)
    assert not list(work.glob("*/study.journal"))
    for key, rows in rows_of(table, store).items():
        assert [row["seed"] for row in rows] == [0, 1, 2]
        assert rows[:1] == before[key]
        assert len({str(row["point"]) for row in rows}) == 1
        assert {row["trials"] for row in rows} == {2}


def test_an_error_in_one_cell_leaves_the_others(tmp_path, places):
    text = quick(tuned=("gcn",)).replace('label = "small"', 'label = "small"\nprotocol = "dense"')
    table, watch = read(tmp_path, text), Watch()
    filled = fill(table, *places, display=watch)
    assert filled.filled == ["Value NLSF on large", "GCN on large"]
    assert [name for name, _ in filled.failed] == ["Value NLSF on small", "GCN on small"]
    assert all("comes without 'dense' splits" in reason for _, reason in filled.failed)
    reasons = [f"{name}: {reason}" for name, reason in filled.failed]
    assert [text for text in watch.said if "splits" in text] == reasons


def test_a_damaged_cell_of_the_store_leaves_the_others(tmp_path, places):
    table = read(tmp_path, quick(tuned=())).select(["gcn"])
    store, work = places
    fill(table.select(columns=["small"]), store, work)
    damaged = next(store.path.glob("*/results.jsonl"))
    damaged.write_text("{}\n")
    filled = fill(table, store, work)
    assert filled.filled == ["GCN on large"]
    assert [name for name, _ in filled.failed] == ["GCN on small"]
    assert damaged.read_text() == "{}\n"


def test_without_time_nothing_begins(tmp_path, places):
    table, watch = read(tmp_path, quick()), Watch()
    filled = fill(table, *places, budget=0.0, display=watch)
    assert filled.left == names(in_order(table))
    assert not watch.begun
    assert not places[0].path.exists()
    assert not places[1].exists()


def test_when_time_runs_out_while_tuning_trials_are_kept_and_no_run_begins(tmp_path, places):
    store, work = places

    class Slow(Watch):
        def advanced(self, phase):
            super().advanced(phase)
            if phase.unit == "trial":
                time.sleep(1.0)

    table = read(tmp_path, quick()).select(["gcn"], ["small"])
    filled = fill(table, store, work, budget=0.9, display=Slow())
    assert filled.left == ["GCN on small"]
    assert not list(work.glob("*/run-*"))
    (journal,) = work.glob("*/study.journal")
    before = journal.read_bytes()
    assert before
    assert fill(table, store, work).filled == ["GCN on small"]
    assert journal.read_bytes().startswith(before)
    assert {row["trials"] for rows in rows_of(table, store).values() for row in rows} == {2}


def test_a_cell_that_another_process_holds_is_left_to_it(tmp_path, places):
    store, work = places
    table = read(tmp_path, quick(tuned=())).select(["gcn"])
    small = work / in_order(table)[0].cell.stem
    small.mkdir(parents=True)
    with RunFolder(small).lock():
        filled = fill(table, store, work)
    assert filled.held == ["GCN on small"]
    assert filled.filled == ["GCN on large"]
    assert fill(table, store, work).filled == ["GCN on small"]


def test_a_held_cell_is_looked_at_again_at_the_end(tmp_path, places):
    store, work = places
    table = read(tmp_path, quick(tuned=())).select(["gcn"])
    small = work / in_order(table)[0].cell.stem
    small.mkdir(parents=True)
    lock = RunFolder(small).lock()
    lock.__enter__()

    class Free(Watch):
        def begin(self, number, total, name):
            super().begin(number, total, name)
            if number == 2:
                lock.__exit__(None, None, None)

    watch = Free()
    filled = fill(table, store, work, display=watch)
    assert watch.begun == [(2, 2, "GCN on large"), (1, 2, "GCN on small")]
    assert not filled.held


def test_an_interrupted_fill_keeps_what_is_finished(tmp_path, places):
    class Stop(Watch):
        def begin(self, number, total, name):
            super().begin(number, total, name)
            if number == 2:
                raise KeyboardInterrupt

    table = read(tmp_path, quick(tuned=())).select(["gcn"])
    with pytest.raises(KeyboardInterrupt):
        fill(table, *places, display=Stop())
    filled = fill(table, *places)
    assert filled.kept == ["GCN on small"]
    assert filled.filled == ["GCN on large"]


def test_killed_at_any_moment_a_table_ends_with_the_same_rows(tmp_path, places):
    store, work = places
    table = read(tmp_path, quick(epochs=30))
    whole = Store(tmp_path / "whole")
    fill(table, whole, tmp_path / "whole-runs")

    def count(pattern, folder):
        return lambda: len(list(folder.glob(pattern)))

    journals, runs = count("*/study.journal", work), count("*/run-*/config.toml", work)
    models, stored = count("*/run-*/model.safetensors", work), count("*/cell.toml", store.path)
    moments = [
        lambda: journals() >= 1,  # tuning the first cell
        lambda: runs() >= 1,  # training it
        lambda: models() >= 2,  # measuring the second
        lambda: stored() >= 3,  # writing its rows
        lambda: journals() >= 4 and runs() < 4,  # tuning the last
    ]
    killed = 0
    for number, moment in enumerate(moments):
        process = Process(tmp_path, nlsf, *RUN, "-q", name=f"killed-{number}")
        if process.wait_for(moment):
            killed += process.signal(signal.SIGKILL) == -signal.SIGKILL
        assert process.end() in (0, -signal.SIGKILL)
    assert killed >= 3
    last = Process(tmp_path, nlsf, *RUN, name="last")
    assert last.end() == 0, last.said
    assert rows_of(table, store) == rows_of(table, whole)
    for rows in rows_of(table, store).values():
        assert [row["seed"] for row in rows] == [0, 1]
        assert [row["trials"] for row in rows] == [2, 2]
    for path in (tmp_path / "results", tmp_path / "runs"):
        assert not list(path.rglob("*.tmp"))


def test_two_processes_share_a_table(tmp_path, places):
    store, work = places
    table = read(tmp_path, quick(epochs=50))
    start = barrier(2)
    pair = [Process(tmp_path, nlsf, *RUN, name=name, barrier=start) for name in ("a", "b")]
    assert [process.end() for process in pair] == [0, 0], pair[0].said
    printed = [process.said for process in pair]
    for place in in_order(table):
        lines = [text.count(f"{place.name}: test accuracy") for text in printed]
        assert sorted(lines) == [0, 1], (place.name, printed)
        (run,) = (work / place.cell.stem).glob("run-*")
        log = (run / "log.txt").read_text()
        assert (log.count("seed(s)"), log.count("finished")) == (1, 1)
        rows = store.rows(place.cell)
        assert [row["seed"] for row in rows] == [0, 1]
        assert [trial["state"] for trial in store.trials(place.cell)] == ["complete"] * 2
    assert all(": test accuracy" in text for text in printed)


def test_a_column_gets_as_many_rows_as_it_asks_for(tmp_path, places):
    text = quick(tuned=()).replace('label = "small"', 'label = "small"\nseeds = 1')
    table = read(tmp_path, text)
    store, work = places
    fill(table, store, work)
    counts = {key: len(rows) for key, rows in rows_of(table, store).items()}
    assert {column: n for (_, column), n in counts.items()} == {"small": 1, "large": 2}
    assert len(fill(table, store, work).kept) == 4
