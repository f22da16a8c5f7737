"""Polynomial bands of one graph by block rows on a local cluster: processor seconds and agreement.

    python benchmarks/block_rows.py           measure what is missing, append rows

Moments of 32 random columns in float64, order 16, on 100,000 nodes of a block model and of a
geometric graph, by one block and by two on two workers. Processor seconds are those of this process
and of all workers. They begin when the rows are sent: workers are up, and the bands are prepared.
"""

import json
import time
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "block_rows.jsonl"
NODES, COLUMNS, ORDER = 100_000, 32, 16


def measure(case, graph):
    """The rows of one graph."""
    import torch

    from nlsf.cluster import BlockLens, connect
    from nlsf.spectral import DyadicBands, Lens, PolynomialBands, laplacian

    shift = laplacian(graph, normalization="sym", self_loops=True)
    lens = Lens.of(shift, PolynomialBands(DyadicBands(S=5), order=ORDER))
    x = torch.randn(NODES, COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted = lens(x).energies()
    for blocks in (1, 2):
        with connect("local", workers=blocks) as client:

            def spent(client=client):
                return time.process_time() + sum(client.run(time.process_time).values())

            client.run(lambda: __import__("nlsf.cluster"))
            before, start = spent(), time.perf_counter()
            blocked = BlockLens(lens, client, blocks=blocks)
            found = blocked(x).energies()
            seconds, cpu = time.perf_counter() - start, spent() - before
            traffic = blocked.traffic(COLUMNS)
        yield {
            "case": case, "nodes": NODES, "edges": graph.edge_index.shape[1] // 2,
            "columns": COLUMNS, "number": 8, "blocks": blocks, "cpu": cpu, "seconds": seconds,
            "traffic": traffic, "error": float((found - wanted).abs().max() / wanted.abs().max()),
        }  # fmt: skip


def main():
    from nlsf.data import block_model, random_geometric

    makers = {
        "block 1e5": lambda: block_model(NODES, degree=16.0),
        "geometric 1e5": lambda: random_geometric(NODES, 16.0),
    }
    done = ROWS.read_text() if ROWS.exists() else ""
    for case, make in makers.items():
        if case in done:
            continue
        for row in measure(case, make()):
            with ROWS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
