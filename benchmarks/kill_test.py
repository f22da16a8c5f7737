"""Kills processes while they write, and looks at what is left: writes rows, prints the table.

    python benchmarks/kill_test.py [--kills 200] [--seed 0]    kill, write rows, print the table
    python benchmarks/kill_test.py --table                     print the table of the rows at hand

Three targets, each real work on small data: spectra into the cache, a run with a checkpoint after
every epoch, and a table into its result store. A round begins in an empty folder, kills the work
(SIGKILL) one to five times, each time begun again as a user would, and then lets it end. A moment
is drawn from the clock, or from the work's use of files: some milliseconds after its n-th event.

After every kill each file with a final name must be read without complaint, and hold at least what
it held before. At the end the content is that of work that was never disturbed, but for times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import torch

from nlsf.data import block_model
from nlsf.spectral import SpectrumCache, laplacian, partial_eigh
from nlsf.store import json_lines
from nlsf.tables.fill.fill import fill
from nlsf.tables.fill.results import Store
from nlsf.tables.spec.spec_file import read_experiment
from nlsf.train import resume, train
from nlsf.train.run.folder import RunFolder

ROWS = Path(__file__).parent / "results" / "kill_test.jsonl"
TIMES = ("seconds", "cpu_seconds", "peak_memory", "prepare_seconds")
SHARES = {"spectrum cache": 0.4, "checkpoints": 0.35, "result store": 0.25}
EVENTS = {"open", "os.mkdir", "os.remove", "os.rename", "os.truncate"}
SETTINGS = {
    "data": {"num_nodes": 80},
    "model": {"hidden_channels": 8, "value_bands": {"kind": "uniform", "S": 4}, "name": "value"},
    "training": {"epochs": 12, "patience": 12, "dtype": "float64"},
    "seeds": 2,
}
TABLE = """
title = "A small table"
seeds = 2
[[data]]
name = "csbm"
options = {num_nodes = 80}
training = {epochs = 4}
[[data]]
name = "csbm"
label = "larger"
options = {num_nodes = 100}
training = {epochs = 4}
[[method]]
model = "gcn"
tuned = false
[[method]]
model = "mlp"
tuned = false
"""


class BrokenError(Exception):
    """What a kill must not leave behind."""


class SpectrumFiles:
    """Twelve spectra in a cache; some take one page of the disk, some a megabyte."""

    def __init__(self, folder):
        self.cache = SpectrumCache(folder / "cache")

    def work(self):
        for number in range(12):
            graph = block_model(60 + 90 * (number % 4), 3, 6.0, seed=number)
            partial_eigh(laplacian(graph), cache=self.cache)

    def content(self):
        """The eigenvalues of each spectrum, by its key."""
        keys = [path.stem for path in self.cache.root.glob("*.safetensors")]
        found = {key: self.cache.load(key) for key in keys}
        return {key: spectrum.values.tolist() for key, spectrum in found.items()}

    def lasting(self):
        return self.content()

    def leftovers(self):
        return [path for path in self.cache.root.glob(".*") if not path.is_dir()]


class Run:
    """A training of two models that writes a checkpoint after every epoch."""

    def __init__(self, folder):
        self.folder = RunFolder(folder / "run")

    def work(self):
        path, often = self.folder.path, {"cache": False, "checkpoint_seconds": 0.0}
        if (path / "config.toml").exists():
            resume(path, **often)
        else:
            train("csbm", SETTINGS, output=path, **often)

    def content(self):
        """Settings, rows and weights, as far as they are there."""
        path, found = self.folder.path, {}
        if (path / "config.toml").exists():
            found["config"] = self.folder.read_config()
        if (path / "model.safetensors").exists():
            weights, _ = self.folder.load_model()
            found["weights"] = {name: value.tolist() for name, value in weights.items()}
        if (path / "results.jsonl").exists():
            found["results"] = untimed(self.folder.results())
            found["metrics"] = json_lines.read(path / "metrics.jsonl")
        return found

    def lasting(self):
        """What counts forward: the epochs in the checkpoint, and the rows it needs."""
        there = self.folder.load_checkpoint()
        epochs = {f"epoch {e}": 1 for e in range(there[1]["epoch"])} if there else {}
        if there and len(self.folder.metrics()) < there[1]["epoch"]:
            raise BrokenError("the checkpoint counts on rows of metrics.jsonl that are not there")
        return {**epochs, **self.content()}

    def leftovers(self):
        return list(self.folder.path.glob("*.tmp"))


class Table:
    """Four cells of a table."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        (folder / "small.toml").write_text(TABLE)
        self.experiment = read_experiment(folder / "small.toml")
        self.store, self.place = Store(folder / "results"), folder / "runs"

    def work(self):
        filled = fill(self.experiment, self.store, self.place, cache=False)
        assert not filled.failed + filled.held + filled.left, filled

    def content(self):
        """The rows of each cell, as far as they are there."""
        cells = {cell.stem: self.store.rows(cell) for _, _, cell in self.experiment.cells()}
        return {stem: untimed(rows) for stem, rows in cells.items() if rows}

    def lasting(self):
        return self.content()

    def leftovers(self):
        return [*self.store.path.rglob("*.tmp"), *self.place.rglob("*.tmp")]


TARGETS = {"spectrum cache": SpectrumFiles, "checkpoints": Run, "result store": Table}


def untimed(rows):
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


class Child:
    """Work in a process of its own; it says in a pipe when it uses a file below its folder."""

    def __init__(self, target, folder):
        self.pipe, write = os.pipe()
        # What the parent has in its buffers, the child would print again.
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._live(target, folder, write)
        os.close(write)

    def _live(self, target, folder, pipe):
        def tell(event, arguments):
            if event in EVENTS and str(folder) in str(arguments[0]):
                os.write(pipe, b".")

        status = 1
        try:
            sys.addaudithook(tell)
            target(folder).work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def kill(self, *, after_events=0, after_seconds=0.0):
        """Waits so long, then kills; whether the work was still going on."""
        while after_events > 0:
            seen = len(os.read(self.pipe, after_events))
            if seen == 0:  # it has ended
                break
            after_events -= seen
        end = time.perf_counter() + after_seconds
        while time.perf_counter() < end and not self._ended():
            time.sleep(min(0.0005, max(0.0, end - time.perf_counter())))
        os.kill(self.pid, signal.SIGKILL)
        return self._status() == -signal.SIGKILL

    def end(self):
        """Waits for the end; the number of events."""
        events = 0
        while some := os.read(self.pipe, 4096):
            events += len(some)
        if self._status() != 0:
            raise BrokenError("the work cannot be gone on with")
        return events

    def _ended(self):
        """Whether the other end of the pipe is closed; drops what was in it."""
        readable = select.select([self.pipe], [], [], 0)[0]
        return bool(readable) and os.read(self.pipe, 4096) == b""

    def _status(self):
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def moment(rng, seconds, events):
    """How long to wait: by the clock, or by the work's own events."""
    if rng.random() < 0.5:
        return {"after_seconds": round(rng.uniform(0.0, seconds), 4)}
    delay = round(rng.choice((0.0, 0.0005, 0.003)) * rng.random(), 6)
    return {"after_events": rng.randint(1, events), "after_seconds": delay}


def check(found, before, whole):
    """Refuses what was lost, and what never was."""
    lost = [key for key in before if key not in found]
    if lost:
        raise BrokenError(f"lost: {lost[0]}")
    other = [key for key in found if key in whole and found[key] != whole[key]]
    if other:
        raise BrokenError(f"not as in undisturbed work: {other[0]}")


def undisturbed(target, folder):
    """What the work leaves, how long it takes, and how often it uses a file."""
    start = time.perf_counter()
    events = Child(target, folder).end()
    return target(folder).content(), time.perf_counter() - start, events


def rounds(name, kills, rng, folder):
    """Kills one target so often; gives a row for each."""
    target = TARGETS[name]
    whole, seconds, events = undisturbed(target, folder / "undisturbed")
    done = number = 0
    while done < kills:
        number += 1
        place, before, rows = folder / f"{name.replace(' ', '-')}-{number}", {}, []
        for _ in range(min(rng.randint(1, 5), kills - done)):
            wait = moment(rng, seconds, events)
            if not Child(target, place).kill(**wait):
                break  # it was faster: there is nothing left to kill in this folder
            rows.append({"target": name, "round": number, **wait, "outcome": "whole"})
            try:
                found = target(place).lasting()
                check(found, before, whole)
                before = found
            except Exception as error:
                rows[-1]["outcome"] = f"{type(error).__name__}: {error}"
            rows[-1] |= {"finished": len(before), "leftovers": len(target(place).leftovers())}
        try:
            Child(target, place).end()
            if target(place).content() != whole:
                raise BrokenError("going on does not end as undisturbed work does")
        except Exception as error:
            for row in rows:
                row["outcome"] = f"{type(error).__name__}: {error}"
        for row in rows:
            row["leftovers_at_end"] = len(target(place).leftovers())
            yield row
        done += len(rows)


def measure(kills, seed, rows_path):
    rng = random.Random(seed)
    torch.set_num_threads(1)  # a fork does not take threads along
    warnings.simplefilter("error")  # a damaged file in the cache is only warned about
    with tempfile.TemporaryDirectory() as folder, rows_path.open("w") as file:
        for name, share in SHARES.items():
            place = Path(folder) / name.replace(" ", "-")
            place.mkdir()
            for row in rounds(name, round(share * kills), rng, place):
                file.write(json.dumps({"seed": seed, **row}) + "\n")
                file.flush()


def table(rows_path):
    rows = [json.loads(line) for line in rows_path.read_text().splitlines()]
    lines = [
        "| target | kills | by the clock | at a file | in the middle of a file | not whole |",
        "|---|---|---|---|---|---|",
    ]
    names = list(dict.fromkeys(row["target"] for row in rows))
    for name in [*names, "together"]:
        chosen = [row for row in rows if name in (row["target"], "together")]
        count = Counter("at a file" if "after_events" in row else "clock" for row in chosen)
        torn = sum(row["leftovers"] > 0 for row in chosen)
        broken = sum(row["outcome"] != "whole" for row in chosen)
        cells = [len(chosen), count["clock"], count["at a file"], torn, broken]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        measure(arguments.kills, arguments.seed, arguments.rows)
    print(table(arguments.rows))


if __name__ == "__main__":
    main()
