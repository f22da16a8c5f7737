"""The steps that `steps.py` times, and the process that times them on one checkout.

Started by `steps.py`, it answers lines of JSON: the name of a case and how often, by seconds.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import torch

import golden_runs
import nlsf
from nlsf.data import random_geometric
from nlsf.nn import (
    GraphNLSF,
    LaplacianAttention,
    MixingNLSF,
    NLSFStack,
    NodeNLSF,
    PoolingNLSF,
    forget_spectra,
)
from nlsf.spectral import DyadicBands, IndexBands, PolynomialBands, UniformBands
from nlsf.testing.graphs import torus
from nlsf.train import train

Step = Callable[[], float | None]
"""What is measured; it may return seconds that it has measured itself."""


def layer_step(layer: Any, x: Any, *graph: Any, **options: Any) -> Step:
    """Forward and backward."""

    def step() -> None:
        layer.zero_grad()
        layer(x, *graph, **options).square().sum().backward()

    return step


def first_call(layer: Any, x: Any, *graph: Any) -> Step:
    """Forward, with nothing remembered of the graph."""

    def step() -> None:
        forget_spectra()
        with torch.no_grad():
            layer(x, *graph)

    return step


def trained(data: Any, model: dict[str, Any], epochs: int = 8, **training: Any) -> Step:
    """An epoch of a training, by the processor time that its results tell."""
    settings: dict[str, Any] = {"seeds": 1, "model": model}
    settings["training"] = {"epochs": epochs, "patience": epochs, **training}
    if data == "csbm":
        settings["data"] = {"num_nodes": 1000, "num_features": 32}

    def step() -> float:
        with tempfile.TemporaryDirectory() as folder:
            (row,) = train(data, settings, output=f"{folder}/run").rows
            return float(row["cpu_seconds"]) / epochs

    return step


def whole_training() -> Step:
    """A training from its settings to its results, preparation included."""

    def step() -> None:
        settings = {"data": {"num_nodes": 500}, "training": {"epochs": 5}, "seeds": 2}
        with tempfile.TemporaryDirectory() as folder:
            train("csbm", settings, output=f"{folder}/run", cache=False)

    return step


def cases(share: int = 1) -> dict[str, Callable[[], Step]]:
    """Every case by its name, still to be prepared; tests take a share of nodes and graphs."""

    def random(*shape: int) -> Any:
        return torch.randn(shape, generator=torch.Generator().manual_seed(0))

    def graph(nodes: int, channels: int = 16) -> tuple[Any, Any]:
        nodes //= share
        return random(nodes, channels), random_geometric(nodes, 8.0, seed=1).edge_index

    def batch(channels: int = 16) -> tuple[Any, ...]:
        edges, owner, first = [], [], 0
        for number in range(64 // share):
            nodes = 10 + 7 * number % 40
            edges.append(random_geometric(nodes, 5.0, seed=number).edge_index + first)
            owner.append(torch.full((nodes,), number))
            first += nodes
        return random(first, channels), torch.cat(edges, dim=1), None, torch.cat(owner)

    index, value = IndexBands(16), DyadicBands(S=4)
    soft = PolynomialBands(DyadicBands(S=5), order=16)
    told = {"a": 0.0, "complement": True}

    def node(bands: Any = value, channels: int = 16, **options: Any) -> Any:
        return NodeNLSF(channels, channels, bands=bands, **{**told, **options})

    def attention(second: Any = value) -> Any:
        return LaplacianAttention(node(index, normalization=None), node(second), "spectral")

    def signal() -> tuple[Any, Any]:
        return random(64, 64, 4), torus(8, 8).edge_index

    small: dict[str, Any] = {"hidden_channels": 32}
    polynomial = {"kind": "polynomial", "base": {"kind": "dyadic", "r": 0.5, "S": 5}, "order": 16}
    linear = {**small, "encoder": "linear", "input_dropout": 0.0}
    first = {**small, "encoder": "none", "place": "hidden", "input_dropout": 0.0}
    few, waves = golden_runs.graphs, golden_runs.signals
    return {
        "layer, node, 100 nodes": lambda: layer_step(node(), *graph(100)),
        "layer, node, 600 nodes": lambda: layer_step(node(), *graph(600)),
        "layer, node, index": lambda: layer_step(node(index), *graph(600)),
        "layer, node, full response": lambda: layer_step(node(response="full"), *graph(600)),
        "layer, node, batch": lambda: layer_step(node(), *batch()),
        "layer, node, polynomial": lambda: layer_step(node(soft), *graph(3000)),
        "layer, node, polynomial, batch": lambda: layer_step(node(soft), *batch()),
        "layer, attention": lambda: layer_step(attention(), *graph(600)),
        "layer, attention, polynomial": lambda: layer_step(attention(soft), *graph(600)),
        "layer, stack of three": lambda: layer_step(
            NLSFStack([node(), node(), node()]), *graph(500)
        ),
        "layer, graph": lambda: layer_step(GraphNLSF(16, 8, bands=value), *graph(600)),
        "layer, graph, batch": lambda: layer_step(GraphNLSF(16, 8, bands=value), *batch()),
        "layer, pooling": lambda: layer_step(PoolingNLSF(16, 8, bands=value), *graph(600)),
        "layer, pooling, batch": lambda: layer_step(PoolingNLSF(16, 8, bands=value), *batch()),
        "layer, mixing, signals": lambda: layer_step(
            MixingNLSF(4, 8, bands=UniformBands(8)), *signal()
        ),
        "first call, node": lambda: first_call(node(), *graph(400)),
        "first call, node, index, large": lambda: first_call(node(index), *graph(3000)),
        "first call, node, polynomial": lambda: first_call(node(soft), *graph(3000)),
        "first call, node, batch": lambda: first_call(node(), *batch()),
        "first call, pooling, polynomial, batch": lambda: first_call(
            PoolingNLSF(16, 8, bands=soft), *batch()
        ),
        "train, att-node": lambda: trained("csbm", {"name": "att-node", **small}),
        "train, att-node, polynomial": lambda: trained(
            "csbm", {"name": "att-node", "value_bands": polynomial, **small}
        ),
        "train, att-node, by rows": lambda: trained("csbm", {"name": "att-node", **linear}, 12),
        "train, att-node, by rows, polynomial": lambda: trained(
            "csbm", {"name": "att-node", "value_bands": polynomial, **linear}, 12
        ),
        "train, value, filter first": lambda: trained("csbm", {"name": "value", **first}, 20),
        "train, value, filter first, words": lambda: trained(
            golden_runs.words(), {"name": "value", **first}, 20
        ),
        "train, graph": lambda: trained(few(), {"name": "graph"}, 5),
        "train, pooling": lambda: trained(few(), {"name": "pooling"}, 4),
        "train, pooling, not prepared": lambda: trained(
            few(), {"name": "pooling", "response": "full"}, 2
        ),
        "train, pooling, polynomial": lambda: trained(
            few(), {"name": "pooling", "value_bands": polynomial}, 4
        ),
        "train, signal": lambda: trained(waves(), {"name": "signal"}, 4),
        "train, graph, signals": lambda: trained(waves(), {"name": "graph"}),
        "train, gcn": lambda: trained("csbm", {"name": "gcn"}, 20),
        "train, gat": lambda: trained("csbm", {"name": "gat"}),
        "train, gcn, words": lambda: trained(golden_runs.words(), {"name": "gcn"}, 20),
        "train, gin, graphs": lambda: trained(few(), {"name": "gin"}, 4),
        "train, from settings to results": whole_training,
    }


def main() -> None:
    """Answers the questions of the other process: lines of JSON."""
    channel, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(1)
    known, steps = cases(), {}
    found = {"source": nlsf.__file__, "cases": list(known), "versions": _versions()}
    print(json.dumps(found), file=channel, flush=True)
    for line in sys.stdin:
        name, count = json.loads(line)
        try:
            if name not in steps:
                steps.clear()
                torch.manual_seed(0)
                steps[name] = known[name]()
                timed(steps[name], 1)  # some things are computed when first needed
            answer: Any = timed(steps[name], count)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=channel, flush=True)


def timed(step: Step, count: int) -> list[float]:
    gc.collect()
    taken = []
    for _ in range(count):
        start = time.process_time()
        own = step()
        taken.append(time.process_time() - start if own is None else own)
    return taken


def _versions() -> dict[str, str]:
    names = ("torch", "torch_geometric", "numpy", "scipy")
    return {"python": sys.version.split()[0], **{name: metadata.version(name) for name in names}}


if __name__ == "__main__":
    main()
