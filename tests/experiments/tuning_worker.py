"""A process that tunes: ``python tuning_worker.py STORAGE TRIALS [BLOCK]``.

With BLOCK it stops for good in the first epoch of its BLOCK-th trial, counted from 0, and says so.
"""

import sys
import time

from nlsf.experiments.space import Space
from nlsf.experiments.trial import Tuning
from nlsf.experiments.tune import tune
from nlsf.experiments.tune_display import TuneDisplay

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


if __name__ == "__main__":
    storage, trials, *after = sys.argv[1:]
    run(storage, int(trials), Halting(int(after[0]), block) if after else None)
    print("done")
