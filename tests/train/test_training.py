import json
import sys
import threading
import time
from contextlib import closing

import pytest

from nlsf.display.progress import Progress
from nlsf.errors import ConfigError
from nlsf.train.run.training import Meter, TensorBoardWriter, peak_memory
from processes import Process
from train.growing import BLOCK, growing
from train.runs import QUICK, quick
from train.small import node_data


def curves(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(folder))
    reader.Reload()
    return {
        name: [(point.step, point.value) for point in reader.Scalars(name)]
        for name in reader.Tags()["scalars"]
    }


def test_scalars_can_be_read_back(tmp_path):
    pytest.importorskip("tensorboard")
    with closing(TensorBoardWriter(tmp_path / "events")) as writer:
        writer.write(1, {"loss/train": 0.5, "loss/val": 0.75})
        writer.write(2, {"loss/train": 0.25, "loss/val": float("nan")})
    assert curves(tmp_path / "events") == {
        "loss/train": [(1, 0.5), (2, 0.25)],
        "loss/val": [(1, 0.75)],
    }


def test_a_continued_run_replaces_what_it_repeats(tmp_path):
    pytest.importorskip("tensorboard")
    with closing(TensorBoardWriter(tmp_path)) as writer:
        for epoch in (1, 2, 3):
            writer.write(epoch, {"loss": 1.0})
    with closing(TensorBoardWriter(tmp_path, done=1)) as writer:
        writer.write(2, {"loss": 0.5})
    assert curves(tmp_path) == {"loss": [(1, 1.0), (2, 0.5)]}


def test_a_run_that_was_killed_before_its_first_checkpoint_has_one_curve(tmp_path):
    pytest.importorskip("tensorboard")
    for value in (1.0, 0.5):
        with closing(TensorBoardWriter(tmp_path)) as writer:
            for epoch in (1, 2):
                writer.write(epoch, {"loss": value})
    assert curves(tmp_path) == {"loss": [(1, 0.5), (2, 0.5)]}


def test_without_tensorboard_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ConfigError, match=r"pip install 'nlsf\[tensorboard\]'"):
        TensorBoardWriter(tmp_path)


def busy(seconds):
    """Computes until this thread has used so much time of a processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


def test_sleep_costs_no_cpu_time():
    meter = Meter()
    time.sleep(0.2)
    spent = meter.read()
    assert spent["seconds"] >= 0.2
    assert spent["cpu_seconds"] < spent["seconds"] / 2


def test_every_thread_is_counted():
    meter = Meter()
    threads = [threading.Thread(target=busy, args=(0.1,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.read()["cpu_seconds"] >= 0.2


def test_what_was_spent_before_is_added():
    before = {"seconds": 100.0, "cpu_seconds": 200.0, "peak_memory": 2**60}
    spent = Meter(before).read()
    assert spent.keys() == before.keys()
    assert 100 < spent["seconds"] < 200
    assert 200 <= spent["cpu_seconds"] < 400
    assert spent["peak_memory"] == 2**60
    assert Meter({**before, "peak_memory": 1}).read()["peak_memory"] == peak_memory()


def test_a_part_that_was_not_measured_makes_the_sum_unknown():
    """As in a checkpoint from before these numbers were kept."""
    spent = Meter({"seconds": 3.0, "epoch": 7}).read()
    assert spent["seconds"] > 3
    assert spent["cpu_seconds"] is None
    assert spent["peak_memory"] == peak_memory()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the peak")
def test_the_peak_is_in_bytes_and_stays(tmp_path):
    # In a small process: this one may once have been larger than the machine has room for again.
    process = Process(tmp_path, growing)
    assert process.end() == 0, process.said
    before, after, later = json.loads(process.output)
    assert before + BLOCK <= after < 4 * (before + BLOCK)
    assert later >= after


class Told(Progress):
    """Keeps what every epoch shows."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def advanced(self, phase):
        self.epochs.append((dict(phase.numbers), phase.note))


def test_nothing_is_best_in_the_warm_up(tmp_path):
    told, settings = Told(), {**QUICK, "seeds": 2}
    settings["training"] = {**QUICK.get("training", {}), "epochs": 4, "warmup": 2}
    quick(node_data(), tmp_path / "run", settings, display=told)
    for number, (numbers, note) in enumerate(told.epochs, start=1):
        assert ("best_val_accuracy" in numbers) == (number > 2)
        assert note.startswith("warm-up until epoch 2") == (number <= 2)
        assert note.endswith("2 of 2 models training")
        assert all(value == value for value in numbers.values())
