"""What a preparation, an epoch and a step on a cluster will take, from counts and a few rates.

    python benchmarks/calibrate.py        measure the rates of this machine
    python benchmarks/cost_model.py           predicted and measured, and graphs of 10^8 nodes

Every formula counts operations, bytes and messages, and divides them by what a thread of the
machine does in a second (`Machine`, from `calibrate.py`). A profile of the code told which parts
count. No rate is fitted to the times that are predicted.
"""

import json
import math
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SHARP = 50_000  # nodes up to which the largest eigenvalue is computed, not bounded
FLOAT = 4  # bytes of a number
INDEX = 4  # bytes of a column index
OPERATOR = 40  # bytes an entry: triplets, their sorted copy and the scaled operator, float64


@dataclass(frozen=True)
class Machine:
    """Rates of one thread, and how many threads there are.

    Attributes:
        build: seconds an entry, from a list of edges to a scaled operator; one thread only.
        entry: seconds an entry of a sparse product, however many columns.
        sparse: operations a second of a sparse product whose operand is in the cache.
        gather: bytes a second of a sparse product that reads rows from memory.
        cache: bytes of an operand that stay in the cache.
        stream: bytes a second, read and written in order.
        fresh: bytes a second of memory that is written for the first time.
        dense: operations a second of a matrix product.
        step: seconds of a training step beside its arithmetic: calls, the optimiser.
        eigh: operations a second of a dense eigensolver on a graph of some hundred nodes.
        graph: seconds a small graph takes beside that.
        carry: bytes a second that Dask moves between two processes, in processor time of both.
        task: processor seconds of a task of Dask, scheduler and worker together.
        disk: bytes a second to a file; assumed.
        network: bytes a second between two machines; assumed, ten gigabits.
        latency: seconds of a message between two machines; assumed.
        threads: threads that work at once.
    """

    build: float
    entry: float
    sparse: float
    gather: float
    cache: float
    stream: float
    fresh: float
    dense: float
    step: float
    eigh: float
    graph: float
    carry: float
    task: float
    disk: float = 1e9
    network: float = 1.25e9
    latency: float = 2e-4
    threads: int = 1

    @classmethod
    def number(cls, machine, threads):
        """A machine by its number: medians of its calibrations, since rates of memory vary."""
        rates = [row for row in rows("machine") if row["machine"] == machine]
        names = set(cls.__dataclass_fields__) & set(rates[0])
        medians = {name: statistics.median(row[name] for row in rates) for name in names}
        return replace(cls(**medians), threads=threads)


@dataclass(frozen=True)
class Problem:
    """A graph with features, and the filter of the preset ``millions``.

    Attributes:
        nodes: N.
        edges: E, each counted once.
        features: F, columns of the signal.
        order: K, sparse products.
        bands: B, the complement included.
        hidden: d, channels after the linear map.
        classes: C.
        batch: rows in a training step.
        train: share of the nodes that are trained on.
        val: share that is validated on, every epoch.
        number: bytes of a number.
    """

    nodes: float
    edges: float
    features: int = 64
    order: int = 16
    bands: int = 6
    hidden: int = 64
    classes: int = 10
    batch: int = 8192
    train: float = 0.5
    val: float = 0.25
    number: int = FLOAT

    @property
    def entries(self):
        """Entries of the operator: both directions of every edge, and the diagonal."""
        return 2 * self.edges + self.nodes

    @property
    def signal(self):
        """Bytes of the signal."""
        return self.number * self.nodes * self.features


def product(machine, nodes, entries, columns, number=FLOAT):
    """Seconds of one sparse product.

    Each entry costs a constant and 2 operations a column, and reads a row of the operand. Rows that
    are not in the cache come from memory. The result is written, and the term before read.
    """
    row = columns * number
    outside = max(0.0, 1 - machine.cache / (nodes * row))
    line = max(row, 64)  # memory is read in lines of 64 bytes
    moved = entries * line * outside / machine.gather + 3 * nodes * row / machine.stream
    work = 2 * entries * columns / machine.sparse + moved
    return (entries * machine.entry + work) / machine.threads


def preparation(machine, p):
    """Seconds from a list of edges to projections on all bands, part by part."""
    if p.nodes <= SHARP:  # ARPACK, one thread: 150 to 300 products, orthogonal to 20 vectors
        single = replace(machine, threads=1)
        basis = 4 * 20 * 8 * p.nodes / machine.stream
        ends = 200 * (product(single, p.nodes, p.entries, 1, 8) + basis)
    else:  # Lanczos
        ends = 30 * product(machine, p.nodes, p.entries, 1, 8)
    signs = max(2, min(32, 2**20 // p.nodes))
    number = 8 if p.nodes <= SHARP else 4
    # Four terms at a time are added to all bands, which are read and written; two are moved.
    passes = (p.order + 1) * (1 + (2 * p.bands + 4) / 4)
    moved = passes * p.signal / machine.stream + (6 + p.bands) * p.signal / machine.fresh
    return {
        "matrix": machine.build * p.entries,
        "ends": ends,
        "traces": p.order * product(machine, p.nodes, p.entries, signs, number),
        "products": products(machine, p),
        "sums": moved / machine.threads,
        "Gram": 2 * p.bands * p.nodes * p.features**2 / machine.dense / machine.threads,
    }


def products(machine, p):
    """Seconds of the sparse products with the signal alone."""
    return p.order * product(machine, p.nodes, p.entries, p.features, p.number)


def epoch(machine, p, processes=1):
    """Seconds of an epoch on prepared rows: training, and validation, by one or more processes.

    A row of B F numbers is gathered, copied twice, and read three times. About 40 passes go over
    its d channels afterwards: gain, batch normalisation, ReLU, dropout, and their gradients; half
    of them write what was not there. Processes divide each batch, and exchange three messages a
    step: gradients, and twice the statistics of a batch.
    """
    rows, seen = p.train * p.nodes, (p.train + p.val) * p.nodes
    maps = p.bands * p.features * p.hidden + p.hidden * (p.hidden + p.classes)
    operations = 2 * maps * (2 * rows + p.val * p.nodes)
    read = seen * p.bands * p.features * p.number
    channels = seen * p.hidden * p.number
    work = operations / machine.dense + read / machine.gather
    work += (5 * read + 20 * channels) / machine.stream + (3 * read + 20 * channels) / machine.fresh
    message = 2 * math.log2(processes) * machine.latency
    step = machine.step + 3 * message + 2 * p.number * maps / machine.network * (processes > 1)
    return work / machine.threads / processes + math.ceil(rows / p.batch) * step


def memory(p, budget=6 << 30):
    """Bytes at the peak: the program, inputs, the operator and its copies, buffers, projections."""
    inputs = 32 * p.edges + p.signal
    operator = OPERATOR * p.entries
    projections = p.bands * p.signal
    buffers = min(6 * p.signal, max(budget - projections, 6 * p.signal / p.features))
    return 4e8 + inputs + max(operator, projections + buffers + (INDEX + FLOAT) * p.entries)


def spectra(machine, graphs, cubes):
    """Processor seconds of the complete spectra of many graphs; ``cubes`` is the sum of N^3."""
    return graphs * machine.graph + 10 * cubes / machine.eigh


def block_rows(machine, p, machines, mesh=False):
    """Seconds of K steps of `BlockLens`, one block a machine, and what a machine needs.

    Args:
        machine: each of them.
        p: the problem.
        machines: how many.
        mesh: whether nodes are ordered so that a block has neighbours in two others only.
    """
    share = replace(p, nodes=p.nodes / machines, edges=p.edges / machines)
    others = min(2, machines - 1) if mesh else machines - 1
    received = share.signal * others
    # The operand of a product are the rows of all nodes. A task changes nothing that it is given:
    # with every term it writes new bands.
    one = product(machine, p.nodes, share.entries, p.features, p.number)
    sums = (1 + 2 * p.bands) * share.signal / machine.stream
    sums += (2 + p.bands) * share.signal / machine.fresh
    # One scheduler hands out two tasks a block and step.
    waits = received / machine.network + (2 * machines * machine.task if machines > 1 else 0)
    operator = (INDEX + p.number) * share.entries
    return {
        "work": p.order * (one + sums / machine.threads),
        "waits": p.order * waits,
        "received": received,
        "memory": operator + share.signal * (2 * p.bands + 5) + received,
    }


def carried(machine, p, blocks):
    """Processor seconds that Dask adds to K steps of `BlockLens` on one machine."""
    once = (INDEX + p.number) * p.entries + p.signal
    steps = p.order * (blocks - 1) * p.signal
    return (once + steps) / machine.carry + (2 * p.order + 1) * blocks * machine.task


def rows(name):
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def compared(number):
    """What was predicted and measured: (what, of what, predicted, measured), times in seconds."""
    for row in {r["case"]: r for r in rows("scaling") if r["machine"] == number}.values():
        if row["case"] == "collab":
            continue
        machine, case = Machine.number(number, row["threads"]), row["case"].replace(":", " ")
        p = Problem(row["nodes"], row["edges"], classes=16 if "geometric" in case else 10)
        suffix = "_cpu" if row["threads"] == 1 else ""  # as `scaling.seconds`
        predicted = sum(preparation(machine, p).values())
        yield "preparation", case, predicted, row[f"prepare{suffix}"]
        yield "products alone", case, products(machine, p), row["products"]
        yield "epoch", case, epoch(machine, p), row[f"epoch{suffix}"]
        yield "peak memory, GB", case, memory(p) / 1e9, row["peak"] / 1e9
    if number != 1:
        return
    machine = Machine.number(1, 1)
    for row in rows("cluster"):
        if row["run"] == "one process":
            sizes = next(r for r in rows("sizes") if r["set"] == row["set"])
            predicted = spectra(machine, row["graphs"], sizes["cubes"])
            yield "spectra, processor", row["set"], predicted, row["cpu"]
    for row in rows("block_rows"):
        p = Problem(row["nodes"], row["edges"], row["columns"], number=row["number"])
        predicted = block_rows(machine, p, 1)["work"] + carried(machine, p, row["blocks"])
        case = f"{row['case']}, {row['blocks']} blocks"
        yield "block rows, processor", case, predicted, row["cpu"]


def comparison(number):
    """Predicted against measured on a machine, as Markdown."""
    lines = ["| | graph | predicted | measured | ratio |", "|---|---|---:|---:|---:|"]
    for what, case, predicted, measured in sorted(compared(number), key=lambda line: line[0]):
        ratio = predicted / measured
        shown = f"{ratio:.2f}" if 0.5 <= ratio <= 2 else f"**{ratio:.2f}**"
        lines.append(f"| {what} | {case} | {predicted:.2f} | {measured:.2f} | {shown} |")
    return "\n".join(lines)


THREADS = 16  # of a machine in the extrapolation


def one_machine():
    """Graphs of average degree 16 prepared and trained on one machine, as Markdown."""
    machine = Machine.number(1, THREADS)
    head = ["nodes", "edges", "preparation", "to files", "an epoch", "memory", "with --memory 8GB"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for nodes in (10**6, 10**7, 10**8):
        p = Problem(nodes, 8 * nodes)
        projections = p.bands * p.signal
        streamed = 4e8 + 32 * p.edges + p.signal
        streamed += max(OPERATOR * p.entries, 8e9 + (INDEX + FLOAT) * p.entries)
        whole = memory(p, math.inf)
        cells = [f"{p.nodes:,}", f"{p.edges:,}", seconds(sum(preparation(machine, p).values()))]
        cells += [f"{seconds(projections / machine.disk)}, {projections / 1e9:.1f} GB"]
        cells += [seconds(epoch(machine, p)), f"{whole / 1e9:.1f} GB"]
        cells += [f"{min(whole, streamed) / 1e9:.1f} GB"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cluster():
    """The same graphs on 1 to 64 machines, as Markdown."""
    machine = Machine.number(1, THREADS)
    head = ["nodes", "machines", "operator, here", "products and sums", "waits, expander"]
    head += ["waits, mesh", "a machine, expander", "an epoch"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for nodes in (10**6, 10**7, 10**8):
        p = Problem(nodes, 8 * nodes)
        here = preparation(machine, p)
        alone = seconds(here["matrix"] + here["ends"] + here["traces"])
        for machines in (1, 4, 16, 64):
            expander, mesh = (block_rows(machine, p, machines, m) for m in (False, True))
            waits = [seconds(case["waits"]) if machines > 1 else "" for case in (expander, mesh)]
            cells = [f"{nodes:,}", str(machines), alone, seconds(expander["work"]), *waits]
            cells += [f"{expander['memory'] / 1e9:.1f} GB", seconds(epoch(machine, p, machines))]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def seconds(value):
    if value >= 120:
        return f"{value / 60:.0f} min"
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


if __name__ == "__main__":
    print(comparison(1), comparison(2), one_machine(), cluster(), sep="\n\n")
