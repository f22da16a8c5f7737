"""From ten thousand to millions of nodes: preparation, an epoch, peak memory, accuracy.

    python benchmarks/scaling.py                  measure what is missing, print the tables
    python benchmarks/scaling.py --only block:1e6 one case
    python benchmarks/scaling.py --table          print the tables of the rows at hand
    python benchmarks/scaling.py --machine 3      the same on another machine: rows say which

Generated graphs, 64 features whose classes overlap, half of the nodes to train on:

- block: a degree-corrected block model, 10 blocks, weights of a power law;
- geometric: random points of the unit square, 16 regions.

Their average degree is 37 at 1.6 million nodes, as Pokec has, and 16 below.

The model is ``value`` with the settings that such graphs get by default: linear map, dyadic bands
by polynomials of order 16, mini-batches of rows. Each case runs in a process of its own, so that
the peak of its memory can be read; the graph is generated before, in another one. Preparation goes
from the list of edges to rows that are ready for training. "Products" are the sparse products of
the preparation alone, repeated afterwards in the same process.

``--only collab`` trains the graph-level filter on the 5,000 graphs of COLLAB (data root) instead.
"""

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "scaling.jsonl"
FEATURES = 64
CASES = [
    *(f"block:{n}" for n in ("1e4", "1e5", "1e6", "1.6e6")),
    *(f"geometric:{n}" for n in ("1e4", "1e5", "1e6", "1.6e6")),
]


def block_model(n, degree, rng):
    """Edges (E, 2) and blocks (n,) of a degree-corrected block model, 80 % of edges inside."""
    import numpy as np

    blocks = 10
    label = rng.integers(blocks, size=n)
    weight = rng.pareto(2.5, size=n) + 1
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(weight[order])
    first = np.searchsorted(label[order], np.arange(blocks + 1))
    low = np.concatenate([[0.0], ends])[first]  # where the weights of each block begin

    def members(which):
        place = low[which] + rng.random(len(which)) * (low[which + 1] - low[which])
        return order[np.minimum(np.searchsorted(ends, place), n - 1)]

    wanted = int(n * degree / 2)
    own = rng.integers(blocks, size=wanted)
    other = np.where(rng.random(wanted) < 0.8, own, rng.integers(blocks, size=wanted))
    return np.stack([members(own), members(other)], axis=1), label


def geometric(n, degree, rng):
    """Pairs of near points, and the square of a 4 x 4 grid that each point lies in."""
    import numpy as np
    from scipy.spatial import cKDTree

    points = rng.random((n, 2))
    radius = math.sqrt(degree / (math.pi * n))
    edges = cKDTree(points).query_pairs(radius, output_type="ndarray")
    cell = np.minimum((points * 4).astype(int), 3)
    return edges, cell[:, 0] * 4 + cell[:, 1]


def generate(case, folder):
    """Writes edge_index (2, E), x (n, F) and y (n,) of a case."""
    import numpy as np

    kind, size = case.split(":")
    n = round(float(size))
    rng = np.random.default_rng(0)
    degree = 37 if n > 1_000_000 else 16
    if kind == "block":
        edges, y = block_model(n, degree, rng)
    else:
        edges, y = geometric(n, degree, rng)
    edges = edges[edges[:, 0] != edges[:, 1]]
    low, high = edges.min(1), edges.max(1)
    del edges
    key = np.unique(low * n + high)
    low, high = key // n, key % n
    np.save(folder / "edge_index.npy", np.stack([np.r_[low, high], np.r_[high, low]]))
    centres = rng.normal(size=(y.max() + 1, FEATURES)).astype(np.float32)
    x = rng.standard_normal(size=(n, FEATURES), dtype=np.float32)
    np.save(folder / "x.npy", x + 0.15 * centres[y])
    np.save(folder / "y.npy", y)


def collab(folder):
    """One row: the spectra of 5,000 graphs, and training of Phi on them."""
    import resource

    import torch

    from nlsf.data import load
    from nlsf.train import train
    from nlsf.train.run.run import versions

    dataset = load("COLLAB")
    graphs = dataset.graphs
    settings = {"model": {"name": "graph"}, "training": {"epochs": 5}, "seeds": 1}
    before = time.process_time()
    row = train(dataset, settings, output=folder / "run", cache=False).rows[0]
    spent = time.process_time() - before
    return {
        "case": "collab",
        "nodes": sum(graph.num_nodes for graph in graphs),
        "edges": sum(graph.edge_index.shape[1] for graph in graphs) // 2,
        "prepare": row["prepare_seconds"],
        "epoch": row["seconds"] / row["epochs"],
        "prepare_cpu": spent - row["cpu_seconds"],
        "epoch_cpu": row["cpu_seconds"] / row["epochs"],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "accuracy": row["test_accuracy"],
        "epochs": row["epochs"],
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def measure(case, folder):
    """One row."""
    import resource

    import numpy as np
    import torch
    from torch_geometric.data import Data

    from nlsf.data import Dataset
    from nlsf.spectral import laplacian
    from nlsf.spectral.kernels.chebyshev import ScaledOperator
    from nlsf.train import train
    from nlsf.train.run.run import versions

    edge_index, x, y = (
        torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("edge_index", "x", "y")
    )
    n = len(y)
    graph = Data(x=x, edge_index=edge_index, num_nodes=n)
    classes = tuple(str(c) for c in range(int(y.max()) + 1))
    dataset = Dataset(case, "node", (graph,), y, classes)
    settings = {
        "model": {"name": "value"},
        "preset": "millions",
        "protocol": "50-25-25",
        "training": {"epochs": 5 if n > 200_000 else 50},
        "seeds": 1,
    }
    # The report after a training, spectra on disk and progress have no part in this.
    before = time.process_time()
    row = train(dataset, settings, output=folder / "run", cache=False).rows[0]
    spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    shift = laplacian(edge_index, num_nodes=n, normalization="sym", self_loops=True)
    operator = ScaledOperator.of(shift).to(dtype=torch.float32)
    terms = [x, torch.empty_like(x)]
    order = 16
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    for _ in range(order):
        operator.advance(terms[0], terms[0], terms[1])
    products = clock() - started
    return {
        "case": case,
        "nodes": n,
        "edges": edge_index.shape[1] // 2,
        "prepare": row["prepare_seconds"],
        "products": products,
        "epoch": row["seconds"] / row["epochs"],
        "prepare_cpu": spent - row["cpu_seconds"],
        "epoch_cpu": row["cpu_seconds"] / row["epochs"],
        "peak": peak,
        "inputs": sum(t.numel() * t.element_size() for t in (edge_index, x, y)),
        "accuracy": row["test_accuracy"],
        "epochs": row["epochs"],
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def run(case, machine):
    with tempfile.TemporaryDirectory() as name:
        for step in ("--generate", "--measure")[case == "collab" :]:
            command = [sys.executable, __file__, "--machine", str(machine), step, case, name]
            subprocess.run(command, check=True)


def rows():
    lines = ROWS.read_text().splitlines() if ROWS.exists() else []
    return {(row["machine"], row["case"]): row for row in map(json.loads, lines)}


def seconds(row, what):
    """Of the clock; of the processor where one thread worked, which other programs slow less."""
    return row[f"{what}_cpu"] if row["threads"] == 1 else row[what]


def slope(machine, kind, what):
    """The slope of log time against log edges, between the smallest and the largest case.

    Cases of two threads only: others cannot be compared with them.
    """
    mine = [
        row for (m, case), row in rows().items()
        if m == machine and case.startswith(kind) and row["threads"] == 2
    ]  # fmt: skip
    mine.sort(key=lambda row: row["edges"])
    if len(mine) < 2:
        return math.nan
    a, b = mine[0], mine[-1]
    return math.log(b[what] / a[what]) / math.log(b["edges"] / a["edges"])


def table():
    """The rows as Markdown, and the slopes."""
    head = ["graph", "nodes", "edges", "machine", "threads", "preparation", "products alone"]
    head += ["an epoch", "peak memory", "accuracy"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    machines = sorted({machine for machine, _ in rows()})
    for case, machine in itertools.product((*CASES, "collab"), machines):
        if (row := rows().get((machine, case))) is None:
            continue
        products = f"{row['products']:.1f} s" if "products" in row else ""
        cells = [case.split(":")[0], f"{row['nodes']:,}", f"{row['edges']:,}"]
        cells += [str(machine), str(row["threads"])]
        cells += [f"{seconds(row, 'prepare'):.1f} s", products, f"{seconds(row, 'epoch'):.2f} s"]
        cells += [f"{row['peak'] / 1e9:.1f} GB", f"{100 * row['accuracy']:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    slopes = [
        f"{kind} on machine {machine}: preparation {slope(machine, kind, 'prepare'):.2f}, "
        f"epoch {slope(machine, kind, 'epoch'):.2f}"
        for kind in ("block", "geometric")
        for machine in machines
    ]
    return "\n".join([*lines, "", f"Slope in edges, {'; '.join(slopes)}."])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--machine", type=int, default=1)
    parser.add_argument("--generate", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.generate:
        return generate(options.generate[0], Path(options.generate[1]))
    if options.measure:
        case, folder = options.measure[0], Path(options.measure[1])
        row = collab(folder) if case == "collab" else measure(case, folder)
        row["machine"] = options.machine
        ROWS.parent.mkdir(exist_ok=True)
        with ROWS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return print(json.dumps({k: v for k, v in row.items() if k != "versions"}), flush=True)
    if not options.table:
        for case in [options.only] if options.only else CASES:
            if options.only or (options.machine, case) not in rows():
                run(case, options.machine)
    print(table())


if __name__ == "__main__":
    main()
