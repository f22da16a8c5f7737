"""The rates of this machine that `cost_model.py` divides counts by.

    python benchmarks/calibrate.py                about a minute, one thread; appends one row
    python benchmarks/calibrate.py --machine 3    of another machine, as in scaling.py

Times are processor seconds of one thread, the least of several repetitions, so other programs
disturb them little. The model assumes that T threads are T times as fast; this is not measured.
"""

import json
import time
from pathlib import Path

HERE = Path(__file__).parent
ROWS = HERE / "results" / "machine.jsonl"
SIZES = HERE / "results" / "sizes.jsonl"


def least(work, repetitions=5):
    """Processor seconds of a call, the least of some."""
    times = []
    for _ in range(repetitions + 1):  # the first one warms up
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:])


def operator(nodes, degree=16):
    """A random operator with about ``degree`` entries a row."""
    from nlsf.data import block_model
    from nlsf.spectral import laplacian

    return laplacian(block_model(nodes, degree=degree), normalization="sym", self_loops=True)


def build(nodes):
    """Seconds an entry from a list of edges to a scaled operator, without the spectrum's ends."""
    from nlsf.data import block_model
    from nlsf.spectral import laplacian
    from nlsf.spectral.eigen.request import ends_request, range_of
    from nlsf.spectral.kernels.chebyshev import ScaledOperator

    edges = block_model(nodes, degree=16).edge_index
    options = {"num_nodes": nodes, "normalization": "sym", "self_loops": True}
    shift = laplacian(edges, **options)
    made = least(lambda: laplacian(edges, **options), 2)
    ends = least(lambda: range_of(ends_request(shift)), 2)
    scaled = least(lambda: ScaledOperator.of(shift), 2) - ends
    return (made + scaled) / shift.matrix.nnz


def product(shift, columns):
    """Seconds of one product, float32."""
    import numpy as np
    import torch

    from nlsf.spectral.operators.csr import csr_tensor

    matrix = csr_tensor(shift.matrix.astype(np.float32))
    x = torch.randn(shift.num_nodes, columns)
    out = torch.empty_like(x)
    return least(lambda: torch.addmm(x, matrix, x, beta=-1, alpha=2, out=out))


def products(columns=64, number=4):
    """``entry``, ``sparse``, ``gather`` and ``cache``, from products of three sizes.

    The smallest operand fits into the cache, the largest does not, and the one between tells how
    much of it does. A single column tells what an entry costs by itself.
    """
    import numpy as np

    sizes = np.array([5_000, 40_000, 320_000])
    shifts = [operator(size) for size in sizes.tolist()]
    entries = np.array([shift.matrix.nnz for shift in shifts])
    small, middle, large = [product(s, columns) for s in shifts] / entries
    single = product(shifts[-1], 1) / entries[-1]
    row = columns * number
    cached = (large - middle) / (large - small)
    return {
        "entry": single,
        "sparse": 2 * columns / small,
        "gather": row / (large - small),
        "cache": float(np.clip(cached, 0, 1) * sizes[1] * row),
    }


def arrays():
    """``stream``, ``fresh`` and ``dense``."""
    import torch

    x, y = torch.randn(2, 20_000_000)
    a, b = torch.randn(8192, 384), torch.randn(384, 64)
    return {
        "stream": 3 * 4 * x.numel() / least(lambda: x.add_(y)),
        "fresh": 4 * x.numel() / least(lambda: torch.zeros_like(x).add_(1)),
        "dense": 2 * a.numel() * b.shape[1] / least(lambda: a @ b, 20),
    }


def step(epochs=40):
    """``step``: an epoch of one step on a few hundred nodes, where only calls take time."""
    import tempfile

    import torch

    from nlsf.data import Dataset, block_model
    from nlsf.train import train

    graph = block_model(400)
    graph.x = torch.randn(400, 64)
    data = Dataset("few", "node", (graph,), graph.y, tuple("01234"))
    settings = {
        "model": {"name": "value"}, "preset": "millions", "protocol": "50-25-25", "seeds": 1,
        "training": {"epochs": epochs, "patience": epochs},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        row = train(data, settings, output=f"{folder}/run", cache=False).rows[0]
    return {"step": row["cpu_seconds"] / row["epochs"]}


def graphs():
    """``eigh`` and ``graph``, from complete spectra of small and of larger graphs."""
    from nlsf.data import block_model
    from nlsf.spectral import batched_eigh

    def seconds(count, nodes):
        sets = [block_model(nodes, degree=6.0, seed=s) for s in range(count)]
        return least(lambda: batched_eigh(sets, normalization="sym", n_jobs=1), 2) / count

    small, large = seconds(200, 20), seconds(10, 300)
    return {"graph": small, "eigh": 10 * 300**3 / (large - small)}


def dask(number=50_000_000, tasks=500):
    """``carry`` and ``task``: an array that goes to a worker and comes back, and empty tasks."""
    import numpy as np

    from nlsf.cluster import connect

    with connect("local", workers=1) as client:

        def spent():
            return time.process_time() + sum(client.run(time.process_time).values())

        array = np.random.default_rng(0).random(number // 8)
        rounds = []
        for _ in range(3):
            before = spent()
            client.submit(np.negative, client.scatter(array, hash=False), pure=False).result()
            rounds.append(spent() - before)
        before = spent()
        client.gather([client.submit(abs, i, pure=False) for i in range(tasks)])
        each = (spent() - before) / tasks
    return {"carry": 2 * number / min(rounds), "task": each}


def cubes():
    """The sums of N^3 of the collections that `cluster.py` decomposes."""
    from nlsf.data import load

    for name in ("ENZYMES", "COLLAB"):
        total = sum(graph.num_nodes**3 for graph in load(name).graphs)
        yield {"set": name, "cubes": total}


def main():
    import argparse

    import torch

    from nlsf.train.run.run import versions

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", type=int, default=1)
    machine = parser.parse_args().machine
    torch.set_num_threads(1)
    row = {"build": build(320_000)} | products() | arrays() | step() | graphs() | dask()
    with ROWS.open("a") as file:
        file.write(json.dumps(row | {"versions": versions(), "machine": machine}) + "\n")
    print(json.dumps(row, indent=1))
    if not SIZES.exists():
        SIZES.write_text("".join(json.dumps(line) + "\n" for line in cubes()))


if __name__ == "__main__":
    main()
