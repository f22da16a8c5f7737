"""What a model costs in a batch of models, against alone: writes rows, prints the table.

    python benchmarks/together.py [--rounds 7] [--epochs 5]

Every configuration trains a few epochs in turn, round after round; the table holds medians of the
CPU time of an epoch a model, and their ratios. ``plain`` is the usual PyTorch script: the same
module, dense features, ``torch.optim.Adam``, one model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from nlsf.nn.plans import WholeGraph
from nlsf.train.loop.fit import Fit
from nlsf.train.run.job import Job
from nlsf.train.run.run import versions

RESULTS = Path(__file__).parent / "results" / "together.jsonl"
CASES = [
    ("digits", "att-node"),
    ("cora", "att-node"),
    ("chameleon", "att-node"),
    ("MUTAG", "graph"),
]
SIZES = (1, 10)


def fit_of(job: Job, plan, size: int) -> Fit:
    chosen = range(size)
    return Fit(
        [job.model(job.config.seeds[i]) for i in chosen],
        plan,
        [job.lesson(job.splits[i]) for i in chosen],
        [job.config.training] * size,
        [job.config.seeds[i] for i in chosen],
        job.config.metric,
    )


def plain_of(job: Job, plan: WholeGraph):
    """One epoch of the usual script."""
    model, lesson = job.model(0), job.lesson(job.splits[0])
    x, graph = job.dataset.graphs[0].x, plan.graph
    adam = torch.optim.Adam(model.parameters(), lr=job.config.training.lr, weight_decay=5e-4)

    def step():
        model.train()
        adam.zero_grad()
        out = model(x, **graph)[lesson.train]
        torch.nn.functional.cross_entropy(out, lesson.train_y).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            (model(x, **graph)[lesson.val].argmax(-1) == lesson.val_y).float().mean().item()

    return step


def measure(rounds: int, epochs: int) -> list[dict]:
    rows = []
    for name, model in CASES:
        job = Job.of({"data": {"name": name}, "model": {"name": model}, "seeds": max(SIZES)})
        plan = job.plan(cache=True, progress=lambda text: None)
        steps = {str(size): fit_of(job, plan, size).step for size in SIZES}
        if isinstance(plan, WholeGraph):
            steps["plain"] = plain_of(job, plan)
        for step in steps.values():
            step()
        times: dict[str, list[float]] = {key: [] for key in steps}
        for _ in range(rounds):
            for key, step in steps.items():
                start = time.process_time()
                for _ in range(epochs):
                    step()
                models = int(key) if key.isdigit() else 1
                times[key].append((time.process_time() - start) / epochs / models)
        for key, values in times.items():
            median = statistics.median(values)
            rows.append({"data": name, "model": model, "together": key, "seconds": median})
            print(rows[-1])
    about = {"rounds": rounds, "epochs": epochs, "versions": versions()}
    return [{**row, **about} for row in rows]


def table(rows: list[dict]) -> str:
    lines = [
        "| data | model | plain | alone | in a batch of 10 | alone / batch | plain / batch |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, model in CASES:
        mine = {
            r["together"]: r["seconds"] for r in rows if (r["data"], r["model"]) == (name, model)
        }
        plain = mine.get("plain")
        shown = [f"{1e3 * v:.1f} ms" if v else "" for v in (plain, mine["1"], mine["10"])]
        ratios = [f"{v / mine['10']:.1f}" if v else "" for v in (mine["1"], plain)]
        lines.append(f"| {' | '.join([name, model, *shown, *ratios])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    rows = measure(options.rounds, options.epochs)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(table(rows))
