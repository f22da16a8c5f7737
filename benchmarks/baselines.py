"""All peers on Cora (graph-only ones on MUTAG): accuracy of three splits, parameters, epoch times.

    python benchmarks/baselines.py accuracy      train what has no rows yet (results/baselines)
    python benchmarks/baselines.py time          epoch times on Cora and Squirrel, interleaved
    python benchmarks/baselines.py table         print the table of docs/baselines.md

Times are CPU times of an epoch (step and validation) of one model, medians over rounds in which
every method takes its turn; they are written as ratios to GCN.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from nlsf.data.metrics import interval
from nlsf.errors import NLSFError
from nlsf.peers import PEERS
from nlsf.train import train
from nlsf.train.loop.fit import Fit
from nlsf.train.run.job import Job
from nlsf.train.run.run import versions
from nlsf.train.settings.models import MODELS

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "results" / "baselines"
TIMES = Path(__file__).parent / "results" / "baselines.jsonl"
SETS = ("Cora", "Squirrel")
OURS = ("att-node", "value", "linear-node")
GRAPHS = ("majority", "mlp", "linear-pooling", "pooling", "gin", "gcn", "diffpool", "wl", "gk")


def names() -> list[str]:
    return [*OURS, *(name for name, peer in PEERS.items() if "node" in peer.for_levels)]


def accuracy(data: str, protocol: str, only: Sequence[str]) -> None:
    ROWS.mkdir(parents=True, exist_ok=True)
    for name in only:
        target = ROWS / f"{data.lower()}-{name}.jsonl"
        if target.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            settings = {"model": {"name": name}, "seeds": 3, "protocol": protocol}
            try:
                result = train(data, settings, output=Path(folder) / "run")
            except NLSFError as error:
                print(f"{name}: {error}", flush=True)
                continue
            shutil.copy(result.folder.path / "config.toml", target.with_suffix(".toml"))
            shutil.copy(result.folder.path / "results.jsonl", target)
            mean, half = result.summary()
            took = time.perf_counter() - start
            print(f"{name}: {100 * mean:.2f} +- {100 * half:.2f} in {took:.0f} s", flush=True)


def fit_of(data: str, name: str) -> Fit:
    job = Job.of({"data": {"name": data}, "model": {"name": name}, "protocol": "60-20-20"})
    plan = job.plan(cache=True, progress=lambda text: None)
    lesson = job.lesson(job.splits[0])
    return Fit([job.model(0)], plan, [lesson], [job.config.training], [0], "accuracy")


def times(rounds: int, only: list[str]) -> None:
    rows = []
    for data in SETS:
        steps = {}
        for name in only or names():
            try:
                fit = fit_of(data, name)
                fit.step()
            except NLSFError as error:
                print(f"{data} {name}: {error}", flush=True)
                continue
            steps[name] = fit
        taken: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(rounds):
            for name, fit in steps.items():
                start = time.process_time()
                fit.step()
                taken[name].append(time.process_time() - start)
        for name, values in taken.items():
            params = sum(p[0].numel() for p in steps[name].batch.params.values())
            rows.append(
                {
                    "data": data,
                    "model": name,
                    "seconds": statistics.median(values),
                    "rounds": rounds,
                    "parameters": params,
                    "versions": versions(),
                }
            )
            print(data, name, f"{1e3 * rows[-1]['seconds']:.1f} ms", flush=True)
    TIMES.write_text("".join(json.dumps(row) + "\n" for row in rows))


def published() -> dict[str, list[str]]:
    """The paper's values on Cora, from its table of random splits and from its main table."""
    with (ROOT / "docs" / "published_cora.csv").open() as file:
        return {row["model"]: [row["random"], row["main"]] for row in csv.DictReader(file)}


def table() -> str:
    timed = [json.loads(line) for line in TIMES.read_text().splitlines()] if TIMES.exists() else []
    seconds = {(row["data"], row["model"]): row["seconds"] for row in timed}
    counts = {row["model"]: row["parameters"] for row in timed if row["data"] == "Cora"}
    paper = published()
    lines = [
        "| model | formula | reference | parameters | Cora epoch | Squirrel epoch | Cora "
        "| paper, random splits | paper, main table |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names():
        peer = PEERS.get(name)
        formula, reference = (peer.formula, peer.reference) if peer else (MODELS[name].summary, "")
        cells = [f"`{name}`", formula.replace("|", "\\|"), reference]
        cells.append(f"{counts[name]:,}" if name in counts else "")
        for data in SETS:
            base, mine = seconds.get((data, "gcn")), seconds.get((data, name))
            cells.append(f"{mine / base:.2f}" if base and mine else "")
        lines.append(
            f"| {' | '.join([*cells, measured('cora', name), *paper.get(name, ['', ''])])} |"
        )
    lines += ["", "| graph level | MUTAG |", "|---|---|"]
    lines += [f"| `{name}` | {measured('mutag', name)} |" for name in GRAPHS]
    return "\n".join(lines)


def measured(data: str, name: str) -> str:
    """Mean and half of the 95 % interval of the committed rows; empty if there are none."""
    rows = ROWS / f"{data}-{name}.jsonl"
    if not rows.exists():
        return ""
    values = [json.loads(line)["test_accuracy"] for line in rows.read_text().splitlines()]
    mean, half = interval([100 * value for value in values])
    return f"{mean:.1f} +- {half:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["accuracy", "time", "table"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--models", nargs="*", default=[])
    options = parser.parse_args()
    if options.what == "accuracy":
        chosen = set(options.models or (*names(), *GRAPHS))
        accuracy("Cora", "random", [name for name in names() if name in chosen])
        accuracy("MUTAG", "80-10-10", [name for name in GRAPHS if name in chosen])
    elif options.what == "time":
        times(options.rounds, options.models)
    else:
        print(table())
