import dataclasses
import hashlib
import json

import pytest

from nlsf.errors import ConfigError, FormatError
from nlsf.tables.fill.results import Store
from nlsf.tables.spec.experiment import Cell
from nlsf.tables.tune.space import Space
from nlsf.tables.tune.trials import Trial, Tuning

CELL = Cell(
    {"name": "csbm", "num_nodes": 100, "root": "/data"},
    "60-20-20",
    "gcn",
    {"training": {"epochs": 5}},
    Space({"training.lr": (0.1, 0.01)}),
    Tuning(2, 2),
)
CONFIG = (
    'protocol = "60-20-20"\nseeds = [{}]\n\n[data]\nname = "csbm"\nroot = "{}"\noffline = true\n'
)
POINT = {"training.lr": 0.1}
TRIALS = (
    Trial(0, {"training.lr": 0.01}, 0.7, "complete", 1.0, 5, None, "host-1"),
    Trial(1, POINT, 0.8, "complete", 1.0, 5, None, "host-1"),
)


def config(seeds="0, 1", root="/data"):
    return CONFIG.format(seeds, root)


def row(seed, accuracy=0.5):
    return {"seed": seed, "test_accuracy": accuracy, "spec": "of the run", "point": POINT}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "tables")


@pytest.fixture
def full(store):
    store.write(CELL, config(), TRIALS, [row(1), row(0)])
    return store


def test_an_empty_store_has_nothing(store):
    assert store.rows(CELL) == []
    assert store.missing(CELL, 3) == [0, 1, 2]
    assert store.trials(CELL) == []
    assert list(store.cells()) == []
    assert not store.path.exists()


def test_rows_and_trials_come_back(full):
    rows = full.rows(CELL)
    assert [r["seed"] for r in rows] == [0, 1]
    assert {r["cell"] for r in rows} == {CELL.id}
    assert [r["point"] for r in rows] == [POINT, POINT]
    assert [r["trials"] for r in rows] == [2, 2]
    assert full.missing(CELL, 2) == []
    assert full.missing(CELL, 4) == [2, 3]
    assert [t["value"] for t in full.trials(CELL)] == [0.7, 0.8]
    (cell,) = full.cells()
    assert cell.id == CELL.id


def test_the_folder_has_nothing_of_the_machine_and_its_settings_have_their_hash(full):
    folder = full.path / CELL.stem
    assert {f.name for f in folder.iterdir()} == {
        "cell.toml",
        "config.toml",
        "trials.jsonl",
        "results.jsonl",
    }
    for file in folder.iterdir():
        assert "/data" not in file.read_text()
        assert "host" not in file.read_text()
    spec = hashlib.sha256((folder / "config.toml").read_bytes()).hexdigest()
    assert {r["spec"] for r in full.rows(CELL)} == {spec}


def test_rows_are_merged_by_seed_and_none_is_doubled(full):
    full.write(CELL, config("1, 2", "/elsewhere"), (), [row(1, 0.9), row(2, 0.6)])
    rows = full.rows(CELL)
    assert [(r["seed"], r["test_accuracy"]) for r in rows] == [(0, 0.5), (1, 0.5), (2, 0.6)]
    assert [r["trials"] for r in rows] == [2, 2, 2]
    assert len(full.trials(CELL)) == 2
    before = (full.path / CELL.stem / "results.jsonl").read_bytes()
    full.write(CELL, config(), TRIALS, rows)
    assert (full.path / CELL.stem / "results.jsonl").read_bytes() == before


def test_rows_of_other_settings_are_not_mixed_in(full):
    with pytest.raises(ConfigError, match="rows of a run with other settings"):
        full.write(CELL, config().replace("60-20-20", "sparse"), (), [row(2)])
    assert full.missing(CELL, 3) == [2]


def test_seeds_are_added_to_rows_that_are_older_than_a_setting(store):
    store.write(CELL, config() + "\n[training]\nlr = 0.1\n", TRIALS, [row(0)])
    store.write(CELL, config("1") + "\n[training]\nlr = 0.1\naverage = 0.0\n", (), [row(1)])
    assert store.missing(CELL, 3) == [2]
    later = config("2") + "\n[training]\nlr = 0.1\naverage = 0.1\n"
    with pytest.raises(ConfigError, match="rows of a run with other settings"):
        store.write(CELL, later, (), [row(2)])


def test_cells_have_folders_of_their_own(full):
    other = dataclasses.replace(CELL, metric="macro_f1")
    assert full.rows(other) == []
    full.write(other, config(), (), [{"seed": 0, "test_macro_f1": 0.5}])
    assert {cell.id for cell in full.cells()} == {CELL.id, other.id}
    assert full.rows(other)[0]["point"] == {}
    assert full.rows(other)[0]["trials"] == 0


def test_what_a_killed_process_left_is_written_again(store):
    folder = store.path / CELL.stem
    folder.mkdir(parents=True)
    assert store.missing(CELL, 1) == [0]
    (folder / "cell.toml").write_text(CELL.to_toml())
    (folder / "config.toml").write_text("protocol = 'of another run'")
    (folder / ".results.jsonl-0123456789ab.tmp").write_text('{"seed": 0')
    assert store.missing(CELL, 1) == [0]
    assert list(store.cells()) == []
    store.write(CELL, config(), TRIALS, [row(0)])
    assert store.missing(CELL, 1) == []
    assert not list(folder.glob(".*"))


def _replace(name, old, new):
    def change(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def _append(name, content):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + content)


FOREIGN = [
    (_replace("cell.toml", "epochs = 5", "epochs = 6"), "cell.toml was changed"),
    (_replace("cell.toml", CELL.id, "0" * 64), "cell.toml was changed"),
    (_replace("cell.toml", "id =", "name ="), "not the description of a cell: There is no key"),
    (_replace("cell.toml", "[data]", "[data"), "not the description of a cell"),
    (_replace("cell.toml", "csbm", "nothing"), "There is no data set 'nothing'"),
    (_replace("cell.toml", 'model = "gcn"', "model = 3"), "model must be a text, not 3"),
    (_replace("cell.toml", 'model = "gcn"', ""), "model is missing"),
    (_append("cell.toml", b"\xff"), "is not text in UTF-8"),
    (_append("cell.toml", b"#" * 2**20), "larger than 1 MiB"),
    (lambda folder: (folder / "cell.toml").unlink(), "has no cell.toml"),
    (lambda folder: (folder / "config.toml").unlink(), "has no config.toml"),
    (_append("config.toml", b"# mine\n"), "line 1: spec is not that of the folder"),
    (_replace("results.jsonl", CELL.id, "1"), "line 1: cell is not that of the folder"),
    (_replace("results.jsonl", '"seed": 1', '"seed": 0'), "line 2: seed 0 stands there twice"),
    (_replace("results.jsonl", '"seed": 1', '"seed": true'), "line 2: seed must be a whole"),
    (_replace("results.jsonl", '"seed": 1', '"seed": -1'), "line 2: seed must be a whole"),
    (_replace("results.jsonl", '{"training.lr": 0.1}', "3"), "line 1: point must be"),
    (_replace("results.jsonl", "test_accuracy", "accuracy"), "line 1: there is no test_accuracy"),
    (_append("results.jsonl", b"{"), "line 3: the line is cut off"),
    (_append("results.jsonl", b"[]\n"), "line 3: expected a JSON object"),
]


@pytest.mark.parametrize(("change", "says"), FOREIGN, ids=[says for _, says in FOREIGN])
def test_foreign_content_is_refused_and_not_overwritten(full, change, says):
    folder = full.path / CELL.stem
    change(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(FormatError) as error:
        full.rows(CELL)
    assert says in str(error.value)
    assert CELL.stem in str(error.value)
    with pytest.raises(FormatError):
        full.write(CELL, config(), TRIALS, [row(2)])
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_the_folder_of_another_cell_is_refused(full):
    other = dataclasses.replace(CELL, metric="macro_f1")
    (full.path / CELL.stem).rename(full.path / other.stem)
    with pytest.raises(FormatError, match=f"describes the cell {CELL.stem}"):
        full.rows(other)
    with pytest.raises(FormatError, match="name its folder so"):
        list(full.cells())


def test_numbers_that_are_not_finite_are_null(store):
    failed = dataclasses.replace(TRIALS[0], value=float("nan"), state="failed", error="No.")
    store.write(CELL, config(), [failed], [row(0, float("nan"))])
    assert store.rows(CELL)[0]["test_accuracy"] is None
    line = (store.path / CELL.stem / "trials.jsonl").read_text()
    assert json.loads(line)["value"] is None
