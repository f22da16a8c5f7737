"""One training in two processes, against one: writes rows, prints the table.

    python benchmarks/shared_training.py [--rounds 5] [--epochs 1]    measure, write rows
    python benchmarks/shared_training.py --table                 print the table of those at hand

Two processes of one thread are started once. Round after round, the first one trains a few epochs
alone, then both train together. Rows hold medians over the rounds. ``cpu`` is the CPU time of an
epoch in the first process, ``wall`` the time of the clock. The CPU time says how the work is
divided, whatever else the cores do. The clock says it only where each process has a core of its
own. ``messages`` are the sums over all processes in a step, ``bytes`` what a process sends to them.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import time
from pathlib import Path
from typing import ClassVar

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor

from nlsf.train.loop.fit import Fit
from nlsf.train.loop.group import Group
from nlsf.train.run.job import Job
from nlsf.train.run.run import versions

RESULTS = Path(__file__).parent / "results" / "shared_training.jsonl"
CASES = [
    ("ENZYMES", "graph", 64, 1),
    ("ENZYMES", "graph", 64, 10),
    ("ENZYMES", "graph", 240, 10),
    ("ENZYMES", "pooling", 64, 10),
]
PROCESSES = 2


class Counting(Group):
    """Counts what is summed, in bytes."""

    sizes: ClassVar[list[int]] = []

    def sum(self, own: Tensor) -> Tensor:
        """As ever."""
        self.sizes.append(own.numel() * own.element_size())
        return super().sum(own)


def fit_of(job: Job, plan, group: Group) -> Fit:
    return Fit(
        [job.model(seed) for seed in job.config.seeds],
        plan,
        [job.lesson(split) for split in job.splits],
        [job.config.training] * len(job.splits),
        job.config.seeds,
        job.config.metric,
        group,
    )


def timed(fit: Fit, epochs: int) -> dict[str, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        fit.step()
    spent = {"wall": time.perf_counter() - clock, "cpu": time.process_time() - cpu}
    return {key: value / epochs for key, value in spent.items()}


def measure(rounds: int, epochs: int, group: Group) -> list[dict]:
    rows = []
    for name, model, batch_size, seeds in CASES:
        training = {"batch_size": batch_size, "patience": 10**6, "epochs": 10**6}
        table = {"data": {"name": name}, "model": {"name": model}, "training": training}
        job = Job.of({**table, "seeds": seeds})
        plan = job.plan(cache=True, progress=lambda text: None)
        alone, shared = fit_of(job, plan, Group()), fit_of(job, plan, group)
        times: dict[str, list[dict]] = {"1": [], str(group.size): []}
        for number in range(rounds + 1):  # the first round warms up
            dist.barrier()
            one = timed(alone, epochs) if group.first else {}
            dist.barrier()
            Counting.sizes.clear()
            steps = -shared.adam.steps
            many = timed(shared, epochs)
            steps += shared.adam.steps
            if number > 0 and group.first:
                times["1"].append(one)
                times[str(group.size)].append(many)
        for processes, values in times.items():
            if not group.first:
                continue
            medians = {k: statistics.median(v[k] for v in values) for k in ("wall", "cpu")}
            about = {"data": name, "model": model, "batch_size": batch_size, "seeds": seeds}
            row = {**about, "processes": int(processes), **medians}
            if processes != "1":
                row["bytes"] = sum(Counting.sizes) / steps
                row["messages"] = len(Counting.sizes) / steps
                row["parameters"] = sum(p.numel() for p in job.model(0).parameters())
            rows.append({**row, "rounds": rounds, "epochs": epochs, "versions": versions()})
            print({k: v for k, v in rows[-1].items() if k != "versions"}, flush=True)
    return rows


def work(rank: int, port: int, rounds: int, epochs: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"WORLD_SIZE": str(PROCESSES), "RANK": str(rank)}
    with Group.joined() as group:
        rows = measure(rounds, epochs, Counting(group.rank, group.size))
    if group.first:
        RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(table(rows))


def table(rows: list[dict]) -> str:
    lines = [
        "| data | model | batch | seeds | parameters a model | MB a step | messages a step | "
        "CPU of a process, to one alone | clock, to one alone |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one, two in zip(rows[::2], rows[1::2], strict=True):
        words = [two["data"], two["model"], two["batch_size"], two["seeds"]]
        words += [f"{two['parameters']:,}", f"{two['bytes'] / 1e6:.2f}", f"{two['messages']:.0f}"]
        words += [f"{two[key] / one[key]:.2f}" for key in ("cpu", "wall")]
        lines.append(f"| {' | '.join(map(str, words))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(table([json.loads(line) for line in RESULTS.read_text().splitlines()]))
        raise SystemExit
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = (port, options.rounds, options.epochs)
    torch.multiprocessing.spawn(work, arguments, nprocs=PROCESSES)
