"""Training steps that do not see the graph, against the same steps that do.

    python benchmarks/fast_path.py            measure, write rows, print the table
    python benchmarks/fast_path.py --table    print the table of the rows at hand

Nodes: a `NodeClassifier` with a linear encoder, on the graphs of Cora, Squirrel and Pubmed (data
root) with random features of the size of the real ones, 20 labels a class. Graphs: a graph-level
`GraphClassifier` on 600 random graphs of 33 nodes on average with 18 features, as ENZYMES has.
A step is forward, backward and Adam. Plain and prepared steps are interleaved; medians.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch

from nlsf.data import load, random_geometric
from nlsf.nn import GraphClassifier, NodeClassifier
from nlsf.spectral import IndexBands

ROWS = Path(__file__).parent / "results" / "fast_path.jsonl"
SETS = {"cora": (1433, 7), "squirrel": (2089, 5), "pubmed": (500, 3)}
REPETITIONS = 15


def nodes(name, features, classes):
    """Plain and prepared step of a node classifier, and the seconds of its preparation."""
    graph = load(name).graphs[0]
    x = torch.randn(graph.num_nodes, features)
    rows = torch.randperm(graph.num_nodes)[: 20 * classes]
    y = torch.randint(classes, (len(rows),))
    model = NodeClassifier(
        in_channels=features, out_channels=classes, encoder="linear", input_dropout=0.0,
        branches="value", value_bands=IndexBands(31),
    )  # fmt: skip
    model(x, graph.edge_index)  # the spectra are computed once, for both
    start = time.perf_counter()
    prepared = model.prepare(rows, x, graph.edge_index)
    preparation = time.perf_counter() - start
    return (
        model,
        lambda: cross_entropy(model(x, graph.edge_index)[rows], y),
        lambda: cross_entropy(model.forward_rows(prepared), y),
        preparation,
    )


def graphs():
    """The same of a graph classifier."""
    sizes = torch.randint(10, 57, (600,)).tolist()
    batch = Batch.from_data_list([random_geometric(n, 5.0, seed=n) for n in sizes])
    x, y = torch.randn(batch.num_nodes, 18), torch.randint(6, (600,))
    model = GraphClassifier(in_channels=18, out_channels=6)
    model(x, batch.edge_index, None, batch.batch)
    start = time.perf_counter()
    prepared = model.prepare(x, batch.edge_index, None, batch.batch)
    preparation = time.perf_counter() - start
    return (
        model,
        lambda: cross_entropy(model(x, batch.edge_index, None, batch.batch), y),
        lambda: cross_entropy(model.forward_prepared(prepared), y),
        preparation,
    )


def measure(name, model, plain, fast, preparation):
    optimizer = torch.optim.Adam(model.parameters())
    assert torch.allclose(plain(), fast(), rtol=1e-3), "both paths give the same loss"
    seconds = {"plain": [], "prepared": []}
    for _ in range(REPETITIONS):
        for key, loss in (("plain", plain), ("prepared", fast)):
            start = time.perf_counter()
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
            seconds[key].append(time.perf_counter() - start)
    row = {"set": name, "preparation": preparation, "threads": torch.get_num_threads(), **seconds}
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")


def table():
    lines = ["| set | plain step | prepared step | ratio | preparation, once |", "|---" * 5 + "|"]
    for line in ROWS.read_text().splitlines():
        row = json.loads(line)
        plain, fast = (1000 * statistics.median(row[key]) for key in ("plain", "prepared"))
        lines.append(
            f"| {row['set']} | {plain:.1f} ms | {fast:.1f} ms | {plain / fast:.1f} x | "
            f"{1000 * row['preparation']:.0f} ms |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        torch.manual_seed(0)
        ROWS.parent.mkdir(exist_ok=True)
        ROWS.unlink(missing_ok=True)
        for name, (features, classes) in SETS.items():
            measure(name, *nodes(name, features, classes))
        measure("600 graphs", *graphs())
    print(table())


if __name__ == "__main__":
    main()
