import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from nlsf.errors import ConfigError, DataError, FormatError
from nlsf.store.files import TEMPORARY
from nlsf.train.run.folder import RunFolder
from processes import Process

PRELUDE = """
from pathlib import Path
import torch
from nlsf.train.run.folder import RunFolder
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program in a process of its own."""

    def start(program, *arguments):
        words = {"arguments": list(map(str, arguments))}
        return Process(tmp_path, exec, PRELUDE + program, words)

    return start


def wait_for_word(process, word):
    assert process.wait_for(lambda: process.output == f"{word}\n"), process.errors


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.create_at(tmp_path / "run")
    made.write_config("epochs = 3\n")
    return made


def test_runs_are_numbered(tmp_path):
    parent = tmp_path / "runs"
    assert RunFolder.create(parent, "cora").path == parent / "cora-001"
    assert RunFolder.create(parent, "cora").path == parent / "cora-002"
    assert RunFolder.create(parent, "cora-filtered").path == parent / "cora-filtered-001"
    (parent / "cora-001").rmdir()
    (parent / "cora-1200").mkdir()
    (parent / "cora-old").mkdir()
    assert RunFolder.create(parent, "cora").path == parent / "cora-1201"


@pytest.mark.parametrize(
    ("name", "stem"), [("../../etc/x", "etc-x"), ("a b/c.npz", "a-b-c.npz"), ("..", "run")]
)
def test_names_stay_inside_the_parent(tmp_path, name, stem):
    assert RunFolder.create(tmp_path / "runs", name).path == tmp_path / "runs" / f"{stem}-001"


CREATE = """
for _ in range(60):
    print(RunFolder.create(Path(arguments[0]), "x").path)
"""


def test_creators_at_the_same_time_never_share(tmp_path, start):
    process = start(CREATE, tmp_path)
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: str(RunFolder.create(tmp_path, "x").path), range(60)))
    assert process.end() == 0, process.errors
    assert len({*paths, *process.output.splitlines()}) == 120


def test_a_chosen_folder_may_be_empty_but_not_used(tmp_path):
    path = tmp_path / "a" / "b"
    RunFolder.create_at(path)
    with RunFolder.create_at(path).lock():
        pass
    folder = RunFolder.create_at(path)
    folder.write_config("")
    with pytest.raises(ConfigError, match=f"--resume {re.escape(str(path))}, or .* --output"):
        RunFolder.create_at(path)


def test_a_chosen_folder_may_hold_half_of_the_settings_of_a_killed_run(tmp_path):
    half = tmp_path / ".config.toml-0123456789ab.tmp"
    half.write_text("epo")
    folder = RunFolder.create_at(tmp_path)
    with folder.lock():
        folder.write_config("epochs = 3\n")
    assert not half.exists()
    assert folder.read_config() == "epochs = 3\n"


def test_a_chosen_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="is not empty: choose another --output"):
        RunFolder.create_at(tmp_path)
    for path in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "run"):
        with pytest.raises(ConfigError, match="a file is in its place"):
            RunFolder.create_at(path)


def test_opening(tmp_path, folder):
    assert RunFolder.open(folder.path) == folder
    with pytest.raises(DataError, match="no run folder"):
        RunFolder.open(tmp_path / "none")
    with pytest.raises(FormatError, match=r"no config\.toml"):
        RunFolder.open(tmp_path)


def test_the_configuration_comes_back(folder):
    folder.write_config('name = "λ"\r\n')
    assert folder.read_config() == 'name = "λ"\r\n'


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * (2**20 + 1)])
def test_strange_configurations_are_refused(folder, content):
    (folder.path / "config.toml").write_bytes(content)
    with pytest.raises(FormatError, match=r"config\.toml"):
        folder.read_config()


def test_checkpoint_and_model(folder):
    assert folder.load_checkpoint() is None
    with pytest.raises(DataError, match="no trained model yet"):
        folder.load_model()
    folder.save_checkpoint({"w": torch.ones(2)}, {"epoch": 1})
    folder.save_model({"w": torch.zeros(3)}, {"epoch": 2})
    tensors, meta = folder.load_checkpoint()
    assert (tensors["w"].tolist(), meta) == ([1, 1], {"epoch": 1})
    tensors, meta = folder.load_model()
    assert (tensors["w"].tolist(), meta) == ([0, 0, 0], {"epoch": 2})


def test_results_finish_a_run(folder):
    assert not folder.finished
    with pytest.raises(DataError, match="no results yet"):
        folder.results()
    rows = [{"seed": 0, "accuracy": 0.8}, {"seed": 1, "accuracy": 0.7}]
    folder.write_results(rows)
    assert folder.results() == rows
    assert folder.finished
    path = folder.path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-3])
    assert not folder.finished
    path.write_bytes(b"")
    assert not folder.finished


def test_metrics_rewind_to_the_byte(folder):
    assert folder.metrics() == []
    folder.rewind_metrics(0)
    folder.append_metrics([{"epoch": 1, "loss": 0.1}])
    size = folder.metrics_size()
    before = (folder.path / "metrics.jsonl").read_bytes()
    folder.append_metrics([{"epoch": 2, "loss": float("nan")}])
    assert folder.metrics() == [{"epoch": 1, "loss": 0.1}, {"epoch": 2, "loss": None}]
    folder.rewind_metrics(size)
    assert (folder.path / "metrics.jsonl").read_bytes() == before
    with pytest.raises(FormatError, match=r"metrics\.jsonl has \d+ bytes, but"):
        folder.rewind_metrics(size + 1)


def test_a_log_line_is_one_line_with_its_time(folder):
    folder.log("started")
    folder.log("two\nlines λ")
    lines = (folder.path / "log.txt").read_text(encoding="utf-8").splitlines()
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
    assert re.fullmatch(f"{stamp} started", lines[0])
    assert re.fullmatch(f"{stamp} two lines λ", lines[1])


HOLD = """
import time
with RunFolder(Path(arguments[0])).lock():
    print("locked", flush=True)
    time.sleep(60)
"""


def test_the_lock_is_held_by_one_process_until_it_dies(folder, start):
    process = start(HOLD, folder.path)
    wait_for_word(process, "locked")
    with pytest.raises(ConfigError, match="Another process is training in"), folder.lock():
        pytest.fail("locked twice")
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    with folder.lock():
        pass


def test_an_error_frees_the_lock(folder):
    with pytest.raises(RuntimeError, match="stop"), folder.lock():
        raise RuntimeError("stop")
    with folder.lock():
        pass


def test_locking_removes_what_a_killed_process_left(folder):
    leftover = folder.path / ".model.safetensors-0123456789ab.tmp"
    leftover.touch()
    with folder.lock():
        assert not leftover.exists()
    assert folder.read_config() == "epochs = 3\n"


# Every row can be computed from its number, so that the test can tell a wrong one; the state of the
# loop is in the checkpoint only, as in training.
LOOP = """
folder = RunFolder.open(Path(arguments[0]))
with folder.lock():
    state = folder.load_checkpoint()
    tensors, meta = state or ({"w": torch.zeros(50_000)}, {"epoch": 0, "size": 0})
    weight, epoch = tensors["w"], meta["epoch"]
    folder.rewind_metrics(meta["size"])
    print("running", flush=True)
    while epoch < int(arguments[1]):
        epoch += 1
        weight += 1
        rows = [{"epoch": epoch, "model": m, "loss": 1 / (epoch + m)} for m in range(20)]
        folder.append_metrics(rows)
        if epoch % 3 == 0:
            folder.save_checkpoint({"w": weight}, {"epoch": epoch, "size": folder.metrics_size()})
"""


def expected_rows(epochs):
    return [
        {"epoch": epoch, "model": m, "loss": 1 / (epoch + m)}
        for epoch in range(1, epochs + 1)
        for m in range(20)
    ]


def test_a_run_that_is_killed_again_and_again_loses_nothing(folder, start):
    draw, reached = random.Random(0), 0
    for _ in range(10):
        process = start(LOOP, folder.path, 10**9)
        wait_for_word(process, "running")
        time.sleep(draw.uniform(0.0, 0.12))
        assert process.signal(signal.SIGKILL) == -signal.SIGKILL
        # Also before anything is rewound, all but a torn last line can be read.
        rows = folder.metrics()
        assert rows == expected_rows(rows[-1]["epoch"] if rows else 0)[: len(rows)]
        state = folder.load_checkpoint()
        if state is None:
            continue
        tensors, meta = state
        assert meta["epoch"] >= reached
        reached = meta["epoch"]
        assert (tensors["w"] == reached).all()
        folder.rewind_metrics(meta["size"])
        assert folder.metrics() == expected_rows(reached)
    assert reached > 0
    # What was killed and continued is byte for byte what was never stopped.
    straight = RunFolder.create_at(folder.path.parent / "straight")
    straight.write_config("")
    for run in (folder, straight):
        assert start(LOOP, run.path, reached + 4).end() == 0
    for name in ("metrics.jsonl", "checkpoint.safetensors"):
        assert (folder.path / name).read_bytes() == (straight.path / name).read_bytes()
    assert not list(folder.path.glob(TEMPORARY))


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    RunFolder(Path(arguments[0])).save_checkpoint({"w": torch.ones(100_000)}, {"epoch": 2})
except OSError as error:
    print(error.filename)
"""


def test_a_full_disk_keeps_the_last_checkpoint(folder, start):
    folder.save_checkpoint({"w": torch.zeros(10)}, {"epoch": 1})
    before = sorted(os.listdir(folder.path))
    process = start(FULL, folder.path)
    assert process.end() == 0, process.errors
    assert process.output == f"{folder.path / 'checkpoint.safetensors'}\n"
    assert folder.load_checkpoint()[1] == {"epoch": 1}
    assert sorted(os.listdir(folder.path)) == before
