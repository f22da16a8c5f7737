"""A small search, and what a process does that works at it."""

import time

from nlsf.tables.tune.display import TuneDisplay
from nlsf.tables.tune.search import tune
from nlsf.tables.tune.space import Space
from nlsf.tables.tune.trials import Tuning

TABLE = {
    "data": {"name": "csbm", "num_nodes": 100},
    "model": {"name": "mlp"},
    "training": {"epochs": 3},
}
SPACE = Space(
    {"training.lr": (0.1, 0.03, 0.01), "model.hidden_channels": (4, 8), "model.dropout": (0.0, 0.5)}
)


class Halting(TuneDisplay):
    """Does something in the first epoch of a trial."""

    def __init__(self, after, act):
        self.left, self.act = after, act

    def epoch(self, number, epoch, value):
        if self.left == 0:
            self.act()

    def trial(self, trial, done, best):
        self.left -= 1


def block():
    print("blocked", flush=True)
    time.sleep(600)


def run(storage, trials, display=None):
    return tune(
        TABLE,
        SPACE,
        Tuning(trials, splits=2),
        storage=storage,
        study="s",
        display=display,
        cache=False,
    )


def work(storage, trials, blocked=None):
    """With ``blocked`` it stops for good in its trial of that number, and says so."""
    run(storage, trials, None if blocked is None else Halting(blocked, block))
    print("done")
