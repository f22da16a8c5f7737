"""The golden runs themselves: short trainings and calls of every kind, each a dict of numbers.

    python benchmarks/golden_runs.py OUTPUT [NAME ...]    write their numbers as JSON

`golden.py` starts this file once a checkout and compares. It therefore uses names that last: the
command line, settings, `train`, `predict`, layers. Names that differ between checkouts stand in
"What differs between checkouts" of `golden_layers.py`, and nowhere else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch_geometric.data import Data

import golden_layers
from golden_layers import Numbers, digest, norm, trials_of
from nlsf.data import Dataset, load
from nlsf.train import predict, train

# --- Numbers --------------------------------------------------------------------------------------

UNEQUAL = ("seconds", "cpu_seconds", "peak_memory", "prepare_seconds", "versions")
"""What differs from one run to the next, among the results of a training."""


def json_lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def of_run(folder: Path) -> Numbers:
    """What a training left behind: every epoch, results, selected weights."""
    metrics = folder / "metrics.jsonl"
    rows = json_lines(metrics) if metrics.exists() else []  # a kernel has no epochs
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    return {
        "epochs": {k: [row[k] for row in rows] for k in rows[0]} if rows else {},
        "seeds": of_results(folder / "results.jsonl"),
        "weights": {
            "norm": norm(*(weights[name] for name in names)),
            "digest": digest(*(weights[name] for name in names)),
            "names digest": hashlib.sha256(" ".join(names).encode()).hexdigest()[:16],
        },
    }


def of_results(file: Path) -> list[Numbers]:
    """Rows of results, without times and versions."""
    return [{k: v for k, v in row.items() if k not in UNEQUAL} for row in json_lines(file)]


def of_prediction(folder: Path, dataset: Dataset) -> Numbers:
    """What a run says of a data set."""
    found = predict(folder, dataset, cache=False)
    return {
        "predicted": found.output[:4].tolist(),
        "labels": found.output[:40].argmax(-1).tolist(),
        "prediction digest": digest(found.output),
    }


# --- Data -----------------------------------------------------------------------------------------

BLOCKS = {"num_nodes": 120, "num_features": 8, "separation": 1.5}


@cache
def graphs(features: bool = True) -> Dataset:
    """Ninety small graphs of three digits."""
    whole = load("digits-graphs")
    chosen = (whole.y < 3).nonzero().squeeze(-1)[:90].tolist()
    some = [whole.graphs[i] for i in chosen]
    if not features:
        some = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in some]
    return replace(
        whole, name="few", graphs=tuple(some), y=whole.y[chosen], classes=("0", "1", "2")
    )


@cache
def signals() -> Dataset:
    """Ninety images of three digits on the grid of their pixels."""
    whole = load("digits-grid")
    chosen = (whole.y < 3).nonzero().squeeze(-1)[:90]
    assert whole.signals is not None
    return replace(
        whole,
        name="few",
        y=whole.y[chosen],
        signals=whole.signals[chosen],
        classes=("0", "1", "2"),
    )


@cache
def words() -> Dataset:
    """A graph whose features are words, most of them absent, and whose edges have weights."""
    data = load("csbm", num_nodes=120)
    graph = data.graphs[0]
    word = 4 * data.y + torch.arange(120) % 5
    x = torch.nn.functional.one_hot(word, 40).float()
    start, end = graph.edge_index
    weight = 1 + (start + end) % 3 / 4
    new = Data(x=x, edge_index=graph.edge_index, edge_weight=weight, num_nodes=120)
    return replace(data, name="words", graphs=(new,))


# --- Trainings ------------------------------------------------------------------------------------

Run = Callable[[Path], Numbers]
# By the loss, because ties of an accuracy fall as rounding wants on another processor.
QUICK = {"epochs": 5, "monitor": "loss"}


def training(
    data: str | Callable[[], Dataset],
    model: str,
    config: dict[str, Any] | None = None,
    predicts: bool = True,
    options: dict[str, Any] | None = None,
    memory: int | None = None,
    **settings: Any,
) -> Run:
    """A short training, and what the trained model says of its own data.

    Args:
        data: a name of the catalogue, or what makes a data set.
        model: its name.
        config: of the model.
        predicts: whether the model can be applied after its training.
        options: of the named data.
        memory: bytes for its preparation, which then goes through files.
        settings: further tables, and keys of ``[training]``.
    """
    kept = {"cache": memory is not None, "memory": memory}

    def run(folder: Path) -> Numbers:
        table = {"seeds": 2, **{k: v for k, v in settings.items() if k in ("seeds", "protocol")}}
        rest = {k: v for k, v in settings.items() if k not in table and k != "protocol"}
        table |= {"model": {"name": model, **(config or {})}, "training": {**QUICK, **rest}}
        if isinstance(data, str):
            chosen = BLOCKS if options is None else options
            table["data"] = {"name": data, **chosen}
            train(data, table, output=folder / "run", **kept)
            dataset = load(data, **chosen)
        else:
            dataset = data()
            train(dataset, table, output=folder / "run", cache=False)
        found = of_run(folder / "run")
        return found | of_prediction(folder / "run", dataset) if predicts else found

    return run


INDEX = {"kind": "index", "J": 8}
DYADIC = {"kind": "dyadic", "r": 0.5, "S": 4}
SOFT = {"kind": "polynomial", "base": DYADIC, "order": 12}
SMALL: dict[str, Any] = {"hidden_channels": 12, "index_bands": INDEX, "value_bands": DYADIC}
LINEAR = {**SMALL, "encoder": "linear", "input_dropout": 0.0}
FIRST = {**SMALL, "encoder": "none", "place": "hidden", "input_dropout": 0.0}
EVEN = {**SMALL, "value_bands": {"kind": "uniform", "S": 5}}
HEAD = {**SMALL, "head": [10]}
GRAPH_SOFT = {**HEAD, "value_bands": SOFT}

NODES: dict[str, Run] = {
    "attention, exact bands": training("csbm", "att-node", SMALL),
    "attention, by accuracy": training(
        "csbm", "att-node", SMALL, monitor="metric", epochs=30, patience=6
    ),
    "attention, polynomial bands": training("csbm", "att-node", {**SMALL, "value_bands": SOFT}),
    "attention, spectral scores": training("csbm", "att-node", {**SMALL, "score": "spectral"}),
    "attention, by rows": training("csbm", "att-node", LINEAR),
    "attention, by rows, polynomial": training("csbm", "att-node", {**LINEAR, "value_bands": SOFT}),
    "attention, by rows, in files": training(
        "csbm", "att-node", {**LINEAR, "value_bands": SOFT}, memory=3_000
    ),
    "attention, two layers": training(
        "csbm", "att-node", {**EVEN, "num_layers": 2, "residual": True, "place": "hidden"}
    ),
    "index": training("csbm", "index", SMALL),
    "value, even bands": training("csbm", "value", EVEN, seeds=1),
    "value, polynomial with leading pairs": training(
        "csbm", "value", {**SMALL, "value_bands": {**SOFT, "pairs": 4}}
    ),
    "value, bandwise": training("csbm", "value", {**EVEN, "response": "bandwise", "a": 0.5}),
    "value, full": training("csbm", "value", {**EVEN, "response": "full", "complement": False}),
    "value, additive": training("csbm", "value", {**EVEN, "mode": "additive", "relative": False}),
    "value, filter first": training("csbm", "value", FIRST),
    "value, filter first, words": training(words, "value", FIRST),
    "attention, filter first, words": training(words, "att-node", FIRST),
    "attention, filter first, polynomial": training(
        "csbm", "att-node", {**FIRST, "value_bands": SOFT}
    ),
    "attention, words": training(words, "att-node", SMALL),
    "linear-node": training("csbm", "linear-node", SMALL),
    "attention, float64, small batches": training(
        "csbm", "att-node", LINEAR, dtype="float64", batch_size=8, average=0.1
    ),
    "regression": training(
        "geometric", "att-node", SMALL, options={"num_nodes": 120}, psi_lr=0.02, warmup=1
    ),
}

GRAPHS: dict[str, Run] = {
    "graph": training(graphs, "graph", HEAD),
    "graph, polynomial bands": training(graphs, "graph", GRAPH_SOFT),
    "graph, spectral scores": training(graphs, "graph", {**HEAD, "score": "spectral"}),
    "pooling": training(graphs, "pooling", HEAD),
    "pooling, polynomial bands": training(graphs, "pooling", GRAPH_SOFT),
    "pooling, not prepared": training(
        graphs, "pooling", {**HEAD, "branches": "value", "response": "full"}
    ),
    "pooling, no features": training(lambda: graphs(False), "pooling", HEAD),
    "linear-pooling": training(graphs, "linear-pooling", HEAD),
    "graph, signals": training(signals, "graph", HEAD),
    "pooling, signals": training(signals, "pooling", HEAD),
    "signal": training(signals, "signal", {"widths": [4, 6], "head": [12]}, epochs=3),
    "linear-signal": training(signals, "linear-signal", {"widths": [4, 6], "head": [12]}, epochs=3),
}

NODE_PEERS = (
    *("mlp", "gcn", "chebnet", "chebnetii", "cayleynet", "arma", "appnp", "gprgnn", "bernnet"),
    *("jacobiconv", "optbasisgnn", "specformer", "gat", "gat-sep", "gt", "gt-sep", "sage"),
    *("fagcn", "h2gcn", "cpgnn", "gbkgnn", "gin", "fsgnn", "glognn", "resnet", "resnet-sgc"),
    *("resnet-adj", "link", "linkx"),
)
GRAPH_PEERS = ("gin", "diffpool", "gcn", "sage", "gprgnn", "mlp")
SOLVERS = ("wl", "gk", "majority")
PEERS: dict[str, Run] = {
    **{f"{name}, nodes": training("csbm", name, epochs=3) for name in NODE_PEERS},
    "gcn, words": training(words, "gcn", epochs=3),
    **{f"{name}, graphs": training(graphs, name, epochs=3) for name in GRAPH_PEERS},
    "gin, no features": training(lambda: graphs(False), "gin", epochs=3),
    **{f"{name}, graphs": training(graphs, name, predicts=False) for name in SOLVERS},
}


# --- Commands -------------------------------------------------------------------------------------


def nlsf(*words: object) -> str:
    """Runs the program; what it printed."""
    from typer.testing import CliRunner

    from nlsf.cli import app

    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code:
        raise RuntimeError(f"nlsf {' '.join(map(str, words))}: {done.output}") from done.exception
    return done.output


def defaults(folder: Path) -> Numbers:
    """``nlsf train digits`` with the settings that suit it, but for the number of epochs."""
    quick = ("--set", "epochs=3", "--no-report", "--no-cache", "--quiet")
    nlsf("train", "digits", *quick, "--seed", 0, "-o", folder / "run")
    config = tomllib.loads((folder / "run" / "config.toml").read_text())
    return of_run(folder / "run") | {"texts": config}


def predictions(folder: Path) -> Numbers:
    """``nlsf predict`` on the graph of the training and on a larger one."""
    small = [w for s in ("num_nodes=120", "separation=2.0") for w in ("--set", f"data.{s}")]
    larger = [w for s in ("num_nodes=300", "separation=2.0") for w in ("--set", f"data.{s}")]
    quick = ("--set", "epochs=6", "--no-report", "--no-cache", "--quiet", "--seeds", 2)
    nlsf("train", "csbm", *small, *quick, "-o", folder / "run")
    found = of_run(folder / "run")
    for name, options in (("same", small), ("larger", larger)):
        output = folder / f"{name}.csv"
        nlsf("predict", folder / "run", "csbm", *options, "--no-cache", "-o", output)
        rows = [line.split(",") for line in output.read_text().splitlines()]
        found[f"{name} labels"] = [row[1] for row in rows[:60]]
        found[f"{name} file digest"] = hashlib.sha256(output.read_bytes()).hexdigest()[:16]
    return found


EXPERIMENT = """
title = "A small table"
seeds = 2
[tuning]
trials = 2
splits = 2
training = {epochs = 2}
[space]
"training.lr" = [0.02, 0.01]
[[data]]
name = "csbm"
options = {num_nodes = 100}
training = {epochs = 3}
[[method]]
label = "Value NLSF"
model = "value"
ours = true
space = {"model.dropout" = [0.3, 0.5]}
[[method]]
label = "GCN"
model = "gcn"
tuned = false
"""


def cells(folder: Path, text: str = EXPERIMENT) -> Numbers:
    """``nlsf table``: a tuned cell and one with default settings."""
    (folder / "experiments").mkdir()
    (folder / "experiments" / "small.toml").write_text(text)
    places = [w for p in ("experiments", "results", "work") for w in (f"--{p}", folder / p)]
    nlsf("table", "small", "--run", "--quiet", *places)
    stored = sorted((folder / "results").glob("*/results.jsonl"))
    rows = {file.parent.name: of_results(file) for file in stored}
    trials = {
        file.parent.name: [
            {k: v for k, v in row.items() if k != "seconds"} for row in json_lines(file)
        ]
        for file in sorted((folder / "results").glob("*/trials.jsonl"))
    }
    return {
        "seeds": [row for some in rows.values() for row in some],
        "trials": trials,
        "texts": {"cells": sorted(rows)},
        "table digest": hashlib.sha256(
            nlsf("table", "small", "--format", "csv", *places).encode()
        ).hexdigest()[:16],
    }  # fmt: skip


def tuning(folder: Path) -> Numbers:
    """``nlsf tune``: three trials."""
    small = ("--set", "data.num_nodes=100", "--set", "epochs=3", "--quiet")
    nlsf("tune", "csbm", "-m", "value", "-t", 3, "--splits", 2, *small, "-o", folder / "out")
    found = trials_of(folder / "out" / "study.journal", "csbm-value")
    return {
        "trials": [
            {"point": t.point, "value": t.value, "state": t.state, "epochs": t.epochs}
            for t in found
        ],
        "texts": {"number": len(found), "first": found[0].point},
        "best digest": hashlib.sha256((folder / "out" / "best.toml").read_bytes()).hexdigest()[:16],
    }


RUNS: dict[str, Run] = {
    **NODES,
    **GRAPHS,
    **PEERS,
    "digits by default": defaults,
    "predictions": predictions,
    "cells of a table": cells,
    "tuning": tuning,
    **golden_layers.RUNS,
}


def numbers(name: str) -> Numbers:
    """The numbers of one run, as JSON has them."""
    with tempfile.TemporaryDirectory() as folder:
        found: Numbers = json.loads(json.dumps(RUNS[name](Path(folder))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("names", nargs="*", default=list(RUNS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {"source": sys.modules["nlsf"].__file__, "runs": {}}
    for name in options.names:
        try:
            found["runs"][name] = numbers(name)
        except Exception as error:  # the others have something to say still
            found["runs"][name] = {"error": f"{type(error).__name__}: {error}"}
    options.output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
