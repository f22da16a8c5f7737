"""A batch of graphs with exact and with polynomial bands: the first call, and a step.

    python benchmarks/batches.py            measure, write rows, print the table
    python benchmarks/batches.py --table    print the table of the rows at hand

A pooling filter (16 channels, dyadic bands r = 0.5, S = 6 on N; polynomials of order 16) on batches
of random geometric graphs of average degree 8. The first call finds the eigenpairs, or the ends of
the spectra. A step is forward and backward. One thread, processor time. Both kinds of bands take
turns, and the table shows medians.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch_geometric.data import Batch

from nlsf.data import random_geometric
from nlsf.nn import PoolingNLSF
from nlsf.nn.layers.spectra import forget_spectra
from nlsf.spectral import DyadicBands, PolynomialBands
from nlsf.train.run.run import versions

ROWS = Path(__file__).parent / "results" / "batches.jsonl"
BATCHES = ((100, 30), (100, 100), (20, 500), (10, 2_000))  # graphs, nodes of each
BASE = DyadicBands(r=0.5, S=6)
BANDS = {"exact": BASE, "polynomial": PolynomialBands(BASE, 16)}
FIRST, STEPS = 3, 9
LONG = 10.0  # seconds of a first call that is not repeated


def measure(count, nodes):
    """The row of one batch."""
    batch = Batch.from_data_list([random_geometric(nodes, 8.0, seed=s) for s in range(count)])
    x = torch.randn(batch.num_nodes, 8, generator=torch.Generator().manual_seed(0))
    layers = {kind: PoolingNLSF(8, 3, bands, hidden_channels=16) for kind, bands in BANDS.items()}
    first, steps = {kind: [] for kind in BANDS}, {kind: [] for kind in BANDS}

    def timed(kind, taken):
        start = time.process_time()
        layers[kind](x, batch.edge_index, batch=batch.batch).sum().backward()
        taken[kind].append(time.process_time() - start)

    for _ in range(FIRST):
        forget_spectra()
        for kind in BANDS:
            if max(first[kind], default=0.0) < LONG:
                timed(kind, first)
    for kind in BANDS:
        timed(kind, {kind: []})
    for _ in range(STEPS):
        for kind in BANDS:
            timed(kind, steps)
    medians = {
        name: {kind: statistics.median(values) for kind, values in taken.items()}
        for name, taken in (("first", first), ("step", steps))
    }
    return {"graphs": count, "nodes": nodes, **medians, "versions": versions()}


def table():
    """The rows as Markdown."""
    lines = [
        "| batch | first call, exact | polynomial | ratio | step, exact | polynomial | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in map(json.loads, ROWS.read_text().splitlines()):
        cells = []
        for name, unit in (("first", "s"), ("step", "ms")):
            exact, smooth = row[name]["exact"], row[name]["polynomial"]
            scale, digits = (1, 2) if unit == "s" else (1e3, 1)
            cells += [f"{scale * value:.{digits}f} {unit}" for value in (exact, smooth)]
            cells.append(f"{exact / smooth:.1f} x")
        lines.append(f"| {row['graphs']} x {row['nodes']:,} nodes | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        torch.set_num_threads(1)
        rows = [measure(*sizes) for sizes in BATCHES]
        ROWS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(table())


if __name__ == "__main__":
    main()
