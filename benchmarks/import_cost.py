"""What importing costs: processor time and peak memory, each import in a process of its own.

    python benchmarks/import_cost.py            measure, append rows, print the table
    python benchmarks/import_cost.py nlsf.nn    measure this one anew
    python benchmarks/import_cost.py --table    print the table of the rows at hand

The cases take turns, round after round, and the table holds medians, above those of a Python that
imports nothing. A row is one median; of rows of one case the last one counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "import_cost.jsonl"
CASES = {
    "nothing": "",
    "torch": "import torch",
    "torch_geometric": "import torch_geometric",
    "nlsf": "import nlsf",
    "nlsf --help": "from nlsf.cli import app; app(['--help'], standalone_mode=False)",
    "nlsf.spectral": "import nlsf.spectral",
    "nlsf.nn": "import nlsf.nn",
}
_PROGRAM = """
import contextlib, io, resource
with contextlib.redirect_stdout(io.StringIO()):
    {statement}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def measure(case: str) -> tuple[float, float]:
    """Seconds of processor time and mebibytes of one process, its start included."""
    return cost(CASES[case] or "pass")


def cost(statement: str, environment: dict[str, str] | None = None) -> tuple[float, float]:
    """The same of any statement, in this process's environment or in another one."""
    program = _PROGRAM.format(statement=statement)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{statement} failed: {done.stderr}")
    seconds, kibibytes = map(float, done.stdout.split())
    return seconds, kibibytes / 1024


def run(rounds: int, cases: list[str]) -> list[dict]:
    """One row a case, of the medians."""
    found: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
    for case in cases:
        measure(case)  # the first one reads the files, and compiles them
    for _ in range(rounds):
        for case in cases:
            found[case].append(measure(case))
    return [
        {
            "case": case,
            "seconds": round(statistics.median(s for s, _ in values), 4),
            "mebibytes": round(statistics.median(m for _, m in values), 1),
            "rounds": rounds,
        }
        for case, values in found.items()
    ]


def read() -> dict[str, dict]:
    """The last row of each case."""
    return {row["case"]: row for row in map(json.loads, ROWS.read_text().splitlines())}


def table() -> str:
    rows = read()
    bare = rows["nothing"]
    lines = ["| import | processor time | peak memory |", "|---|---|---|"]
    for case in CASES:
        if case != "nothing":
            seconds = rows[case]["seconds"] - bare["seconds"]
            memory = rows[case]["mebibytes"] - bare["mebibytes"]
            lines.append(f"| `{case}` | {seconds:.2f} s | {memory:.0f} MiB |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all if left out")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        rows = run(options.rounds, options.cases or list(CASES))
        with ROWS.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    print(table())
