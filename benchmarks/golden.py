"""Golden runs: what short trainings of every kind compute, compared to the last digit.

    python benchmarks/golden.py --against FOLDER [NAME ...]    with another checkout, in FOLDER
    python benchmarks/golden.py --record                       write tests/golden/runs.json anew
    python benchmarks/golden.py --fixtures                     write the files of tests/golden anew

A change that shall not change any number is compared with the commit before it, in a git worktree.
Both sides run the same `golden_runs.py`, that of this checkout, in a process of its own on one
thread. Exit code 1 says that a number differs, or that a run failed.

`tests/test_golden.py` compares with the recorded numbers, within the tolerance that other
processors need. The files of tests/golden are of version 0.1, and `tests/test_reads_old_files.py`
holds later versions to reading them: write them anew only if a format may change.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
RECORD = GOLDEN / "runs.json"
EARLY = 3
"""Epochs whose losses are recorded: later ones depend more on the processor."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def environment(checkout: Path, cache: str) -> dict[str, str]:
    """That of a process which imports the package from a checkout, on one thread, without data."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NLSF_DATA", "NLSF_STORAGE")}
    threads = dict.fromkeys(_THREADS, "1")
    return {**kept, **threads, "PYTHONPATH": str(checkout / "src"), "NLSF_CACHE": cache}


def flat(found: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every number with its place: ``epochs.train_loss[3]``."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from flat(value, f"{place}.{key}" if place else key)
    elif isinstance(found, list):
        for i, value in enumerate(found):
            yield from flat(value, f"{place}[{i}]")
    else:
        yield place, found


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first number that differs, digests last; empty where all are equal."""
    for side, found in (("there", old), ("here", new)):
        if "error" in found:
            return f"{side}: {found['error']}"
    before, after = dict(flat(old)), dict(flat(new))
    places = sorted(before | after, key=lambda place: "digest" in place)
    for place in places:
        # Their text has every digit, and that of NaN is equal to itself.
        values = [repr(side.get(place, "nothing")) for side in (before, after)]
        if values[0] != values[1]:
            return f"{place}: {values[0]} there, {values[1]} here"
    return ""


def both(checkout: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The numbers of another checkout and of this one."""
    runs = Path(__file__).with_name("golden_runs.py")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for number, source in enumerate((checkout.resolve(), ROOT)):
            output = Path(folder) / f"{number}.json"
            command = [sys.executable, str(runs), str(output), *names]
            cache = str(Path(folder) / f"cache-{number}")
            process = subprocess.Popen(
                command, env=environment(source, cache), cwd=folder, stdout=subprocess.DEVNULL
            )
            sides.append((source, output, process))
        for source, output, process in sides:
            if process.wait():
                raise SystemExit(f"The runs of {source} failed: their error stands above.")
            read = json.loads(output.read_text())
            if not Path(read["source"]).is_relative_to(source / "src"):
                raise SystemExit(f"{source} was not run, but {read['source']}.")
            found.append(read["runs"])
    return found


def compare(checkout: Path, names: Sequence[str]) -> bool:
    """Prints a line a run; whether all are equal."""
    old, new = both(checkout, names)
    width = max(map(len, new))
    wrong = 0
    for name, numbers in new.items():
        said = difference(old[name], numbers)
        wrong += bool(said)
        print(f"{name:{width}}  {said or 'equal'} ({sum(1 for _ in flat(numbers))} numbers)")
    print(f"{len(new) - wrong} of {len(new)} runs are equal to the last digit.")
    return not wrong


def without_digests(found: Any) -> Any:
    """The same without hashes, at any depth: the last digit is another on other processors."""
    if isinstance(found, list):
        return [without_digests(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {k: without_digests(v) for k, v in found.items() if not k.endswith("digest")}


def brief(numbers: dict[str, Any]) -> dict[str, Any]:
    """What is recorded: losses of the first epochs, results, outputs; no hashes."""
    kept = {k: v for k, v in without_digests(numbers).items() if not k.endswith("labels")}
    if "epochs" in kept:
        epochs = {k: kept["epochs"].get(k, []) for k in ("epoch", "train_loss", "val_loss")}
        early = [i for i, epoch in enumerate(epochs["epoch"]) if epoch <= EARLY]
        kept["epochs"] = {k: [v[i] for i in early] for k, v in epochs.items()}
    if "seeds" in kept:  # with every new setting, the hash of them all is another
        kept["seeds"] = [{k: v for k, v in row.items() if k != "spec"} for row in kept["seeds"]]
    if "weights" in kept:
        kept["weights"] = {"norm": kept["weights"]["norm"]}
    return kept


def record() -> None:
    """Writes the recorded numbers anew, from this checkout."""
    _, found = both(ROOT, [])
    failed = {name: one["error"] for name, one in found.items() if "error" in one}
    if failed:
        raise SystemExit(f"These runs failed: {failed}.")
    lines = [f"{json.dumps(name)}: {json.dumps(brief(one))}" for name, one in found.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def fixtures() -> None:
    """Writes the files that later versions must read, by the package that Python finds."""
    import golden_files

    for entry in GOLDEN.iterdir():
        if entry != RECORD:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    golden_files.write(GOLDEN)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout")
    what.add_argument("--record", action="store_true", help="write the recorded numbers anew")
    what.add_argument("--fixtures", action="store_true", help="write the old files anew")
    parser.add_argument("names", nargs="*", metavar="NAME", help="runs; all if left out")
    options = parser.parse_args()
    if options.record:
        record()
    elif options.fixtures:
        fixtures()
    elif not compare(options.against, options.names):
        sys.exit(1)


if __name__ == "__main__":
    main()
