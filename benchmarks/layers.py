"""Forward and backward time and peak memory of the filters, against peers and against the limit.

    python benchmarks/layers.py            measure, write rows, print the tables
    python benchmarks/layers.py --table    print the tables of the rows at hand

On Cora, Squirrel and Pubmed (data root), 64 channels in and out, 32 bands (31 eigenspaces of N and
the complement). The candidates are interleaved in one process, the table shows medians:

- ours: the layers of `nlsf.nn` on a prepared spectrum;
- naive: the same diagonal filter, written as the equation stands, with all projections stacked;
- PyTorch Geometric: GCNConv, ChebConv (K = 3), GATConv, APPNP (K = 10, after a linear map);
- limit: the two thin products V^T X and V C alone.

Peak memory is that of a process that runs one candidate, above what it had before.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "layers.jsonl"
SETS = ("cora", "squirrel", "pubmed")
WIDTH, BANDS, REPETITIONS, THREADS = 64, 31, 15, 1


def candidates(name):
    """Functions without arguments that give an output, and the tensors to differentiate."""
    import torch
    from torch_geometric import nn as pyg

    from nlsf.data import load
    from nlsf.nn import GraphNLSF, LaplacianAttention, NodeNLSF, PoolingNLSF
    from nlsf.spectral import IndexBands, Lens, laplacian, partial_eigh

    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    graph = load(name).graphs[0]
    bands = IndexBands(BANDS)
    spectrum = partial_eigh(laplacian(graph, normalization="sym"), bands=bands).to(torch.float32)
    lens = Lens.of(spectrum, bands)
    x = torch.randn(graph.num_nodes, WIDTH, requires_grad=True)
    V = lens.vectors
    R = torch.randn(V.shape[1], WIDTH)
    psi = torch.nn.Sequential(
        torch.nn.Linear(BANDS + 1, 32), torch.nn.ReLU(), torch.nn.Linear(32, BANDS + 1)
    )

    def naive():
        parts = [V[:, s] @ (V[:, s].T @ x) for s in lens.slices[:-1]]
        parts = torch.stack([*parts, x - sum(parts)])
        norms = parts.norm(dim=1)  # (B, d), of an array (B, N, d)
        r = 1 + psi(norms.T).T
        return (r[:, None, :] * parts / (norms[:, None, :] + 1e-6)).sum(0)

    def node(a=1.0, **options):  # the paper's exponent, unless a row names another
        layer = NodeNLSF(WIDTH, WIDTH, bands, a=a, **options)
        return lambda: layer(x, spectrum=lens)

    full = NodeNLSF(4, 4, bands, response="full", a=1.0)
    narrow = torch.randn(graph.num_nodes, 4, requires_grad=True)
    phi = GraphNLSF(WIDTH, WIDTH, bands)
    pooling = PoolingNLSF(WIDTH, WIDTH, bands, hidden_channels=WIDTH, a=1.0)
    halves = [NodeNLSF(WIDTH, 32, bands, a=1.0) for _ in range(2)]
    both = LaplacianAttention(*halves)
    gcn, gat = pyg.GCNConv(WIDTH, WIDTH), pyg.GATConv(WIDTH, WIDTH)
    cached = pyg.GCNConv(WIDTH, WIDTH, cached=True)
    cheb, appnp = pyg.ChebConv(WIDTH, WIDTH, K=3), pyg.APPNP(K=10, alpha=0.1)
    linear = torch.nn.Linear(WIDTH, WIDTH)
    edges = graph.edge_index
    return {
        "limit: two thin products": lambda: V @ (V.T @ x * R),
        "NodeNLSF diagonal": node(),
        "NodeNLSF diagonal, a = 0": node(a=0.0),
        "NodeNLSF bandwise": node(response="bandwise"),
        "NodeNLSF full (4 channels)": lambda: full(narrow, spectrum=lens),
        "GraphNLSF": lambda: phi(x, spectrum=lens),
        "PoolingNLSF": lambda: pooling(x, spectrum=lens),
        "LaplacianAttention (2 x 32)": lambda: both(x, spectrum=(lens, lens)),
        "naive: stacked projections": naive,
        "GCNConv": lambda: gcn(x, edges),
        "GCNConv, cached": lambda: cached(x, edges),
        "ChebConv, K = 3": lambda: cheb(x, edges),
        "GATConv": lambda: gat(x, edges),
        "APPNP, K = 10": lambda: appnp(linear(x), edges),
    }  # fmt: skip


def step(run):
    start = time.perf_counter()
    run().square().sum().backward()
    return time.perf_counter() - start


def measure(name):
    """Interleaved times of all candidates on one data set, and their peak memories."""
    runs = candidates(name)
    for run in runs.values():
        step(run)
    seconds = {key: [] for key in runs}
    for _ in range(REPETITIONS):
        for key, run in runs.items():
            seconds[key].append(step(run))
    # Arrays are mapped and given back at once: the process's peak is that of its arrays.
    eager = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    one = os.environ | eager | {"OMP_NUM_THREADS": str(THREADS)}
    with ROWS.open("a") as file:
        for key, times in seconds.items():
            command = [sys.executable, __file__, "--memory", name, key]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=one)
            row = {
                "set": name, "candidate": key, "median": statistics.median(times),
                "seconds": times, "peak": int(done.stdout), "threads": THREADS,
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")
            print(f"{name:10} {key:30} {1000 * row['median']:8.2f} ms", flush=True)


def memory(name, key):
    """Prints the peak memory of a step of one candidate, in bytes, above what it starts with."""
    run = candidates(name)[key]
    step(run)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the preparation
    before = status("VmRSS")
    step(run)
    print(status("VmHWM") - before)


def status(field):
    """A number of bytes from the process's status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def table():
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    time_of = {(r["set"], r["candidate"]): r["median"] for r in rows}
    peak_of = {(r["set"], r["candidate"]): r["peak"] for r in rows}
    sets = [s for s in SETS if any(r["set"] == s for r in rows)]
    names = list(dict.fromkeys(r["candidate"] for r in rows))
    head = [f"{s.capitalize()}: ms | to NodeNLSF | MB" for s in sets]
    lines = ["| layer | " + " | ".join(head) + " |", "|---" * (3 * len(sets) + 1) + "|"]
    for name in names:
        cells = []
        for s in sets:
            seconds = time_of[s, name]
            ratio = seconds / time_of[s, "NodeNLSF diagonal"]
            cells.append(f"{1000 * seconds:.1f} | {ratio:.2f} x | {peak_of[s, name] / 1e6:.0f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--memory", nargs=2, metavar=("SET", "CANDIDATE"))
    arguments = parser.parse_args()
    if arguments.memory:
        memory(*arguments.memory)
        return
    if not arguments.table:
        ROWS.parent.mkdir(exist_ok=True)
        ROWS.unlink(missing_ok=True)
        for name in SETS:
            measure(name)
    print(table())


if __name__ == "__main__":
    main()
