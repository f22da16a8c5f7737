"""Small runs, and what tells two of them apart."""

import torch

from nlsf.display.progress import Progress
from nlsf.train import train
from nlsf.train.run.folder import RunFolder
from train.small import NODE_MODEL, given

TRAINING = {"epochs": 8, "patience": 4, "lr": 0.05, "dtype": "float64"}
QUICK = {"model": NODE_MODEL, "training": TRAINING, "seeds": 3}
GROUPS = given(60, (20, 10), (30, 12), (20, 10), (25, 10))
TIMES = ("seconds", "cpu_seconds", "peak_memory", "prepare_seconds")


def untimed(rows):
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def metrics(path):
    return (path / "metrics.jsonl").read_bytes()


def weights(path):
    return RunFolder(path).load_model()[0]


def assert_same(path, other):
    """Two runs that cannot be told apart but by the clock."""
    assert metrics(path) == metrics(other)
    assert untimed(RunFolder(path).results()) == untimed(RunFolder(other).results())
    assert (path / "config.toml").read_bytes() == (other / "config.toml").read_bytes()
    expected = weights(other)
    assert set(weights(path)) == set(expected)
    assert all(torch.equal(value, expected[name]) for name, value in weights(path).items())


def quick(dataset, path, settings=QUICK, **options):
    return train(dataset, settings, output=path, cache=False, **options)


def settings_for(dataset):
    if dataset.level == "node":
        return QUICK
    model = {"hidden_channels": 8, "head": [5]}
    return {"model": model, "training": {**TRAINING, "warmup": 0, "batch_size": 10}, "seeds": 3}


class Stop(Progress):
    """Fails in an epoch of the n-th group, counted from 1; keeps what it was told."""

    def __init__(self, group=0, epoch=0, error=RuntimeError):
        super().__init__()
        self.wanted, self.error = (group, epoch), error
        self.group, self.messages, self.models = 0, [], []

    def started(self, phase):
        self.group += 1
        self.models.append(int(phase.detail.split()[0]))

    def advanced(self, phase):
        if (self.group, phase.done) == self.wanted:
            raise self.error("stop")

    def say(self, text):
        self.messages.append(text)
