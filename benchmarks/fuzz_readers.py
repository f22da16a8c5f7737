"""Damages the files that nlsf reads, in many ways: writes rows, prints the table.

    python benchmarks/fuzz_readers.py [--cases 400] [--seed 0]    fuzz, write rows, print the table
    python benchmarks/fuzz_readers.py --table                     print the table of the rows

A small whole file of each kind is damaged again and again. Bits and bytes are flipped, pieces are
cut, repeated and inserted, numbers become huge, negative or impossible. The same is done inside
compressed files, whose checksums are then made right. A case must end in a valid result, or in an
error of nlsf that is one line long and a sentence. Anything else is a fault: another error, a
warning, a crash, more than 1 GB of memory, more than 10 seconds, or an attempt to start a program,
to connect or to write a file. Rows count how cases ended; a fault has a row of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import torch

from fuzz_damage import damaged
from fuzz_files import KINDS
from nlsf.data.dataset import Dataset
from nlsf.errors import CacheWarning, NLSFError

ROWS = Path(__file__).parent / "results" / "fuzz_readers.jsonl"
SECONDS, MEMORY = 10.0, 1 << 30
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect")
FORBIDDEN_CODE = 99


def outcome(read):
    """``read``, ``refused``, or what should not have happened."""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = read()
    except NLSFError as error:
        text = str(error)
        plain = "\n" not in text and text[-1:] in (".", "?") and len(text) < 2000
        return "refused" if plain else f"no sentence: {text[:200]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    unexpected = [w for w in warned if not issubclass(w.category, CacheWarning)]
    if unexpected:
        return f"{unexpected[0].category.__name__}: {unexpected[0].message}"[:300]
    return "refused" if warned else fault(found) or "read"


def fault(found):
    """What is wrong with a result, if anything."""
    if not isinstance(found, Dataset):
        return None
    for graph in found.graphs:
        ends = graph.edge_index
        if ends.numel() and not 0 <= int(ends.min()) <= int(ends.max()) < graph.num_nodes:
            return "an edge leads nowhere"
        x = None if graph.x is None else graph.x
        x = x.values() if x is not None and x.layout != torch.strided else x
        if x is not None and not bool(x.isfinite().all()):
            return "a feature is not finite"
        weight = graph.edge_weight
        if weight is not None and not bool((weight.isfinite() & (weight > 0)).all()):
            return "a weight is not positive"
    if not found.is_regression and found.y.numel() and int(found.y.max()) >= len(found.classes):
        return "a label has no class"
    return None


def forbid(event, arguments):
    """Ends the process where a file gets it to do anything but read."""
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if event in FORBIDDEN or writes:
        os._exit(FORBIDDEN_CODE)


def limited():
    """No more memory than there is in use now and the limit."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Reader:
    """A process that reads one case after another, begun again where it dies."""

    def __init__(self, kind, folder):
        self.read, self.folder, self.pid = KINDS[kind](folder), folder, None
        self.whole = {path: path.read_bytes() for path in sorted(folder.iterdir())}

    def ask(self, rng=None):
        """How a case ends, drawn by ``rng``; without one, how the whole files are read."""
        for path, content in self.whole.items():
            path.write_bytes(content)
        if rng is not None:
            path = rng.choice(list(self.whole))
            content = self.whole[path]
            while content == self.whole[path]:
                content = damaged(self.whole[path], rng)
            path.write_bytes(content)
        if self.pid is None:
            self._begin()
        os.write(self.to, b"\n")
        ready = select.select([self.back], [], [], SECONDS)[0]
        answer = os.read(self.back, 4096).decode() if ready else ""
        if answer:
            return answer
        if not ready:
            os.kill(self.pid, signal.SIGKILL)
        code = self.close()
        if not ready:
            return f"takes more than {SECONDS:.0f} seconds"
        return "does more than read" if code == FORBIDDEN_CODE else f"crash (exit {code})"

    def _begin(self):
        question, self.to = os.pipe()
        self.back, answer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.to)
            limited()
            sys.addaudithook(forbid)
            while os.read(question, 1):
                os.write(answer, outcome(self.read).encode()[:4000])
            os._exit(0)
        os.close(question)
        os.close(answer)

    def close(self):
        """Waits until the process has ended; its exit code."""
        if self.pid is None:
            return 0
        os.close(self.to)
        os.close(self.back)
        pid, self.pid = self.pid, None
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def measure(kinds, cases, seed, rows_path):
    torch.set_num_threads(1)
    with rows_path.open("w") as file:
        for kind in kinds:
            counts = Counter()
            with tempfile.TemporaryDirectory() as folder:
                reader = Reader(kind, Path(folder))
                if (found := reader.ask()) != "read":
                    raise SystemExit(f"{kind}: the whole file is not read, but {found}")
                for number in range(cases):
                    found = reader.ask(random.Random(f"{kind} {seed} {number}"))
                    counts[found if found in ("read", "refused") else "other"] += 1
                    if found not in ("read", "refused"):
                        row = {"kind": kind, "seed": seed, "case": number, "outcome": found}
                        file.write(json.dumps(row) + "\n")
                reader.close()
            row = {"kind": kind, "seed": seed, "cases": cases, **counts}
            file.write(json.dumps(row) + "\n")
            file.flush()


def table(rows_path):
    rows = [json.loads(line) for line in rows_path.read_text().splitlines()]
    lines = ["| file | cases | refused | read | other |", "|---|---|---|---|---|"]
    columns = ("cases", "refused", "read", "other")
    total = Counter()
    for row in [row for row in rows if "cases" in row]:
        total.update({column: row.get(column, 0) for column in columns})
        numbers = " | ".join(f"{row.get(column, 0):,}" for column in columns)
        lines.append(f"| {row['kind']} | {numbers} |")
    numbers = " | ".join(f"{total[column]:,}" for column in columns)
    return "\n".join([*lines, f"| together | {numbers} |"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=400, help="for each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        kinds = arguments.kind or list(KINDS)
        measure(kinds, arguments.cases, arguments.seed, arguments.rows)
    print(table(arguments.rows))


if __name__ == "__main__":
    main()
