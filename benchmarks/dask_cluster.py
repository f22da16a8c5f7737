"""The spectra of two collections in one process and on a local cluster of two workers.

    python benchmarks/dask_cluster.py            measure, write rows, print the table
    python benchmarks/dask_cluster.py --table    print the table of the rows at hand

Complete spectra of N of all graphs of ENZYMES and COLLAB (data root): by `batched_eigh` in one
thread, by `cluster_eigh` on two processes, and again with one of these killed (SIGKILL) when a
third of the graphs are done. Every spectrum is compared with that of the single process, bit by
bit. Seconds are those of the work, when the workers are up. *Start* is the time until they are up,
imports included. CPU seconds are those of this process and the workers together. They say what
distribution costs even where the cores are busy, or fewer than the processes.
"""

import argparse
import json
import os
import signal
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = HERE / "results" / "cluster.jsonl"
SETS = ("ENZYMES", "COLLAB")
WORKERS = 2


def same(found, expected):
    """Whether all spectra agree to the last bit."""
    return len(found) == len(expected) and all(
        a.values.equal(b.values) and a.vectors.equal(b.vectors)
        for a, b in zip(found, expected, strict=True)
    )


def spent(client=None):
    """CPU seconds so far, of this process and of the workers."""
    of_workers = client.run(time.process_time).values() if client else ()
    return time.process_time() + sum(of_workers)


def measure(name):
    """The rows of one set."""
    from nlsf.cluster import cluster_eigh, connect
    from nlsf.data import load
    from nlsf.spectral import batched_eigh

    graphs = load(name).graphs
    about = {
        "set": name,
        "graphs": len(graphs),
        "nodes": sum(graph.num_nodes for graph in graphs),
        "cores": len(os.sched_getaffinity(0)),
    }
    before, start = spent(), time.perf_counter()
    expected = batched_eigh(graphs, normalization="sym", n_jobs=1)
    seconds = time.perf_counter() - start
    yield {**about, "run": "one process", "seconds": seconds, "cpu": spent() - before}

    start = time.perf_counter()
    with connect("local", workers=WORKERS) as client:
        cluster_eigh(graphs[:64], cluster=client)
        ready = time.perf_counter() - start
        before, start = spent(client), time.perf_counter()
        found = cluster_eigh(graphs, normalization="sym", cluster=client)
        row = {**about, "run": f"{WORKERS} workers", "seconds": time.perf_counter() - start}
        row |= {"cpu": spent(client) - before, "start": ready, "same": same(found, expected)}
        yield row
        del found

        victims = list(client.run(os.getpid).values())

        def kill(done, total):
            if victims and done > total / 3:
                os.kill(victims.pop(), signal.SIGKILL)
                victims.clear()

        start = time.perf_counter()
        found = cluster_eigh(graphs, normalization="sym", cluster=client, progress=kill)
        row = {**about, "run": f"{WORKERS} workers, 1 killed"}
        row |= {"seconds": time.perf_counter() - start, "same": same(found, expected)}
        yield row


def table():
    """The rows as Markdown."""
    head = ["set", "graphs", "nodes", "run", "start, s", "s", "CPU s", "same bits"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for line in ROWS.read_text().splitlines():
        row = json.loads(line)
        numbers = [f"{row[n]:.1f}" if n in row else "" for n in ("start", "seconds", "cpu")]
        bits = {True: "yes", False: "**no**", None: ""}[row.get("same")]
        cells = [row["set"], f"{row['graphs']:,}", f"{row['nodes']:,}", row["run"], *numbers, bits]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        ROWS.parent.mkdir(exist_ok=True)
        with ROWS.open("w") as file:
            for name in SETS:
                for row in measure(name):
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                    print(row, flush=True)
    print(table())


if __name__ == "__main__":
    main()
