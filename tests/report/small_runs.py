"""Runs so small that a test can train them, and ways to look into their pages."""

import shutil

from nlsf.report.run_page import run_page
from nlsf.report.runs import RunRecord
from nlsf.report.trained import TrainedRun
from nlsf.train import train
from nlsf.train.run.folder import RunFolder
from train.small import NODE_MODEL

NODES = {"model": NODE_MODEL, "training": {"epochs": 6, "lr": 0.05}}
GRAPHS = {
    "model": {
        "hidden_channels": 8,
        "head": [5],
        "index_bands": {"kind": "index", "J": 2},
        "value_bands": {"kind": "dyadic", "r": 0.5, "S": 3},
    },
    "training": {"epochs": 3, "warmup": 0, "batch_size": 10},
}


def settings(dataset, **changes):
    base = NODES if dataset.level == "node" else GRAPHS
    model = {**base["model"], **changes.pop("model", {})}
    training = {**base["training"], **changes.pop("training", {})}
    return {"model": model, "training": training, **changes}


def trained_folder(dataset, path, **changes):
    """The folder of a finished run."""
    return train(dataset, settings(dataset, **changes), output=path, cache=False).folder


def trained_run(dataset, path, **changes):
    """A finished run, loaded."""
    folder = trained_folder(dataset, path, **changes)
    return TrainedRun.of(RunRecord.read(folder), dataset, cache=False)


def page_of(dataset, path, **changes):
    return run_page(trained_folder(dataset, path, **changes), dataset=dataset, cache=False)


def without(folder, path, *names):
    """A copy of a run that lacks some files, as an interrupted one does."""
    shutil.copytree(folder.path, path)
    for name in names:
        (path / name).unlink()
    return RunFolder(path)


def sections(page):
    """Heading to charts."""
    return {heading: charts for heading, _, charts in page._sections}


def texts(page):
    """Heading to the sentences below it."""
    return {heading: text for heading, text, _ in page._sections}
