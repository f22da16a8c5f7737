"""A small search, and what a process does that works at it."""

import time

from nlsf.display.progress import Progress
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


class Halting(Progress):
    """Does something in the first epoch of a trial."""

    def __init__(self, after, act):
        super().__init__()
        self.left, self.act = after, act

    def noted(self, phase):
        if self.left == 0 and "epoch" in phase.note:
            self.act()

    def advanced(self, phase):
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
