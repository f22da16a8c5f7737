import sys

import pytest

from nlsf.errors import ConfigError
from nlsf.train.tensorboard import TensorBoardWriter


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
    with TensorBoardWriter(tmp_path / "events") as writer:
        writer.write(1, {"loss/train": 0.5, "loss/val": 0.75})
        writer.write(2, {"loss/train": 0.25, "loss/val": float("nan")})
    assert curves(tmp_path / "events") == {
        "loss/train": [(1, 0.5), (2, 0.25)],
        "loss/val": [(1, 0.75)],
    }


def test_a_continued_run_replaces_what_it_repeats(tmp_path):
    pytest.importorskip("tensorboard")
    with TensorBoardWriter(tmp_path) as writer:
        for epoch in (1, 2, 3):
            writer.write(epoch, {"loss": 1.0})
    with TensorBoardWriter(tmp_path, done=1) as writer:
        writer.write(2, {"loss": 0.5})
    assert curves(tmp_path) == {"loss": [(1, 1.0), (2, 0.5)]}


def test_a_run_that_was_killed_before_its_first_checkpoint_has_one_curve(tmp_path):
    pytest.importorskip("tensorboard")
    for value in (1.0, 0.5):
        with TensorBoardWriter(tmp_path) as writer:
            for epoch in (1, 2):
                writer.write(epoch, {"loss": value})
    assert curves(tmp_path) == {"loss": [(1, 0.5), (2, 0.5)]}


def test_without_tensorboard_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ConfigError, match=r"pip install 'nlsf\[tensorboard\]'"):
        TensorBoardWriter(tmp_path)
