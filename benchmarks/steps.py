"""Times of steps on this checkout and on another one, measured in turns.

    python benchmarks/steps.py --against FOLDER                   all cases, and the table
    python benchmarks/steps.py --against FOLDER --only polynomial  the cases with this in their name
    python benchmarks/steps.py --against FOLDER --record          also append rows to results

Two processes of one thread, one a checkout, take turns: there, here, here, there. Only one of them
works at a time. A case is prepared once on each side, and a turn repeats it for a moment. Times are
of the processor, so that other work on the machine counts little. The ratio is that of the medians
of all steps; above 1, this checkout is slower. After the +- stands its standard error, as the
ratios of the rounds tell it: where it is large the machine was busy, and more rounds help.

- *layer*: forward and backward of a layer that knows the graph already; *first call*: forward of
  one that does not, spectrum included.
- *train*: an epoch of a run (`nlsf.train.train`), with its validation and its rows of metrics.
- *import*: a process of its own.

Both sides run the `steps_work.py` of this checkout. It therefore uses names that last: layers,
`train`, settings.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from golden import ROOT, environment

ROWS = Path(__file__).parent / "results" / "steps.jsonl"
TURN = 0.06
"""Seconds of a turn, about; a case that takes longer is done once."""

FEW = 3
"""Rounds of processes that only import: each turn takes seconds."""

IMPORTS = {
    "import nlsf.nn": "import nlsf.nn",
    "import nlsf.train": "import nlsf.train",
    "import, nlsf --help": "from nlsf.cli import app; app(['--help'], standalone_mode=False)",
}


class Side:
    """One checkout, with a process that measures there.

    Args:
        checkout: its folder.
        place: an empty folder for its cache.
    """

    def __init__(self, checkout: Path, place: str) -> None:
        self.checkout, self.place = checkout.resolve(), place
        self.environment = environment(self.checkout, f"{place}/cache")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("steps_work.py"))],
            env=self.environment,
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.facts = self._answer()
        if not Path(self.facts["source"]).is_relative_to(self.checkout / "src"):
            raise SystemExit(f"{checkout} is not measured, but {self.facts['source']}.")

    @property
    def commit(self) -> str:
        """What the checkout stands on, and whether it has changes."""
        command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        done = subprocess.run(command, cwd=self.checkout, capture_output=True, text=True)
        return done.stdout.strip()

    def measure(self, name: str, count: int) -> list[float]:
        """Seconds of each of so many steps."""
        if name in IMPORTS:
            import import_cost

            return [import_cost.cost(IMPORTS[name], self.environment)[0] for _ in range(count)]
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, count]) + "\n")
        self.process.stdin.flush()
        found: Any = self._answer()
        if isinstance(found, dict):
            raise RuntimeError(f"{self.checkout}: {found['error']}")
        return [float(seconds) for seconds in found]

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The process of {self.checkout} ended: its error stands above.")
        return json.loads(line)

    def end(self) -> None:
        """Lets the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(there: Side, here: Side, name: str, rounds: int) -> dict[str, Any]:
    """The row of a case."""
    start = time.perf_counter()
    rounds = min(rounds, FEW) if name in IMPORTS else rounds
    row: dict[str, Any] = {"case": name, "rounds": rounds}
    found: dict[Side, list[float]] = {there: [], here: []}
    ratios = []
    try:
        once = min(side.measure(name, 1)[0] for side in (there, here))
        # An epoch is a part of its step.
        count = 1 if name.startswith("train") else max(1, min(200, round(TURN / once)))
        for _ in range(rounds):
            turns = {there: 0.0, here: 0.0}
            for side in (there, here, here, there):
                taken = side.measure(name, count)
                found[side] += taken
                turns[side] += statistics.median(taken)
            ratios.append(turns[here] / turns[there])
    except RuntimeError as error:
        return {**row, "failed": str(error)}
    for key, side in (("there", there), ("here", here)):
        row[key] = {"median": statistics.median(found[side]), "least": min(found[side])}
    row["ratio"] = row["here"]["median"] / row["there"]["median"]
    row["error"] = statistics.stdev(ratios) / rounds**0.5 if rounds > 1 else None
    return {**row, "steps": len(found[here]), "wall": round(time.perf_counter() - start, 2)}


def line(row: dict[str, Any]) -> str:
    """The row of a table."""
    if "failed" in row:
        return f"| {row['case']} | {row['failed']} | | | |"
    times = [f"{1e3 * row[side]['median']:.3g}" for side in ("there", "here")]
    spread = "" if row["error"] is None else f" +- {row['error']:.2f}"
    return f"| {row['case']} | {' | '.join(times)} | {row['ratio']:.2f}{spread} | {row['steps']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=7, help="two turns a side each; 7")
    parser.add_argument("--only", action="append", metavar="NAME", help="cases with this in a name")
    parser.add_argument("--record", action="store_true", help=f"append rows to {ROWS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for name in ("there", "here"):
            os.mkdir(f"{place}/{name}")
        there, here = Side(options.against, f"{place}/there"), Side(ROOT, f"{place}/here")
        names = [*here.facts["cases"], *IMPORTS]
        if options.only:
            names = [name for name in names if any(part in name for part in options.only)]
        print("| case | there, ms | here, ms | ratio | steps |")
        print("|---|---:|---:|---:|---:|", flush=True)
        rows = []
        for name in names:
            rows.append(compare(there, here, name, options.rounds))
            print(line(rows[-1]), flush=True)
        facts = {"commits": [there.commit, here.commit], "versions": here.facts["versions"]}
        there.end()
        here.end()
    if options.record:
        with ROWS.open("a") as file:
            file.writelines(json.dumps({**row, **facts}) + "\n" for row in rows)
    if any("failed" in row for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
