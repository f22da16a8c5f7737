"""Damages the files that nlsf reads, in many ways: writes rows, prints the table.

    python benchmarks/fuzz_readers.py [--cases 400] [--seed 0]    fuzz, write rows, print the table
    python benchmarks/fuzz_readers.py --table                     print the table of the rows

For each kind of file a small whole one is damaged, so many times: bits and bytes flipped, pieces
cut, repeated, inserted, numbers replaced by huge, negative and impossible ones; also inside of
compressed files, whose checksums are then made right again. A case must end in a valid result or
in an error of nlsf that is one line long and a sentence. Anything else counts: another error, a
warning, a crash, more than 1 GB of memory, more than 10 seconds, or an attempt to start a program,
to connect or to write a file. Rows count the ways in which cases ended; a case that should not
have ended so has a row of its own.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import pickle
import random
import re
import resource
import select
import signal
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from scipy.io import savemat

from nlsf.data.catalogue import find
from nlsf.data.dataset import Dataset, Split
from nlsf.data.own import open_dataset
from nlsf.data.readers import facebook, genius, heterophilous, mnist, planetoid, twitch, wiki
from nlsf.data.split_file import read_split, write_split
from nlsf.errors import CacheWarning, NLSFError
from nlsf.experiments.spec import Experiment
from nlsf.spectral import SpectrumCache, laplacian, partial_eigh
from nlsf.testing.graphs import path as path_graph
from nlsf.train import checkpoint
from nlsf.train.job import Job
from nlsf.train.tables import read_toml

ROWS = Path(__file__).parent / "results" / "fuzz_readers.jsonl"
SECONDS, MEMORY = 10.0, 1 << 30
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect")
FORBIDDEN_CODE = 99

RNG = np.random.default_rng(0)
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
X = RNG.normal(size=(6, 3))
Y = np.array([0, 1, 0, 1, 2, 2])
MASKS = {f"{part}_masks": np.eye(6, dtype=bool)[2 * k : 2 * k + 2] for k, part in
         enumerate(("train", "val", "test"))}  # fmt: skip
A = sparse.csc_matrix((np.ones(5), EDGES.T), shape=(6, 6))

TWITCH = """views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate
7879,1,969,2016-02-16,2018-10-12,0,0,EN,1
500,0,2699,2011-05-19,2018-10-08,2,0,FR,1
382502,1,3149,2010-02-27,2018-10-12,1,1,EN,0
"""
RUN = """seeds = 2
metric = "accuracy"
[data]
name = "csbm"
num_nodes = 60
[model]
name = "value"
hidden_channels = 8
dropout = 0.5
value_bands = {kind = "dyadic", r = 0.5, S = 4}
[training]
epochs = 3
lr = 0.01
psi_lr = 0.002
"""
TABLE = """title = "A table"
seeds = 2
[tuning]
trials = 2
splits = 2
[space]
"training.lr" = [0.02, 0.01]
[[data]]
name = "digits"
protocol = "random"
training = {epochs = 60}
[[method]]
label = "GCN"
model = "gcn"
settings = {model = {num_layers = 2}}
"""


# Kinds of files: each writes a whole one into a folder and gives a function that reads it.


def tu_folder(folder):
    texts = {
        "A": "1, 2\n2, 1\n3, 4\n4, 5\n",
        "graph_indicator": "1\n1\n2\n2\n2\n",
        "graph_labels": "0\n1\n",
        "node_labels": "3\n1\n3\n1\n1\n",
        "node_attributes": "0.5, 1\n1, 0\n2, 1e-3\n3, 4\n-1, 2\n",
    }
    for kind, text in texts.items():
        (folder / f"TOY_{kind}.txt").write_text(text)
    return lambda: open_dataset(folder)


def tu_archive(folder):
    with tempfile.TemporaryDirectory() as place:
        tu_folder(Path(place))
        with zipfile.ZipFile(folder / "TOY.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(place).iterdir()):
                archive.write(path, f"TOY/{path.name}")
    return lambda: open_dataset(folder / "TOY.zip")


def planetoid_pickles(folder):
    rows = sparse.csr_matrix(np.eye(503, 3, dtype=np.float32))
    labels = np.eye(503, 2, dtype=np.int32)
    parts = {"x": rows[:2], "tx": rows[:2], "allx": rows}
    parts |= {"y": labels[:2], "ty": labels[:2], "ally": labels}
    parts["graph"] = defaultdict(list, {0: [1], 1: [0, 504], 7: [3, 4]})
    for kind, value in parts.items():
        (folder / f"ind.cora.{kind}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / "ind.cora.test.index").write_text("504\n503\n")
    return lambda: planetoid.read(find("Cora"), sorted(folder.iterdir()))


def heterophilous_npz(folder):
    np.savez(folder / "actor.npz", edges=EDGES, node_features=X, node_labels=Y, **MASKS)
    return lambda: heterophilous.read(find("Actor"), [folder / "actor.npz"])


def own_npz(folder):
    np.savez_compressed(
        folder / "own.npz", edge_index=EDGES.T, edge_weight=np.arange(1.0, 6), x=X, y=Y, **MASKS
    )
    return lambda: open_dataset(folder / "own.npz")


def own_csv(folder):
    lines = ["id,a,b,label,split"]
    parts = ("train", "train", "val", "val", "test", "test")
    lines += [f"n{k},{X[k, 0]:.3f},{k},{Y[k]},{parts[k]}" for k in range(6)]
    (folder / "features.csv").write_text("\n".join(lines) + "\n")
    (folder / "edges.csv").write_text("".join(f"n{a},n{b},{a + 1}.5\n" for a, b in EDGES))
    return lambda: open_dataset(folder / "edges.csv")


def own_mat(folder):
    savemat(folder / "own.mat", {"A": A + A.T, "X": X, "y": Y})
    return lambda: open_dataset(folder / "own.mat")


def facebook_mat(folder):
    info = RNG.integers(1, 3, size=(6, 7)).astype(np.uint16)
    savemat(folder / "Penn94.mat", {"A": A + A.T, "local_info": info}, do_compression=True)
    return lambda: facebook.read(find("Penn94"), [folder / "Penn94.mat"])


def edge_list_mat(folder):
    savemat(folder / "genius.mat", {"edge_index": EDGES.T, "node_feat": X, "label": Y})
    return lambda: genius.read(find("Genius"), [folder / "genius.mat"])


def twitch_csv(folder):
    (folder / "twitch-gamer_feat.csv").write_text(TWITCH)
    (folder / "twitch-gamer_edges.csv").write_text("numeric_id_1,numeric_id_2\n0,1\n2,1\n")
    return lambda: twitch.read(find("Twitch-Gamers"), sorted(folder.iterdir()))


def wiki_tensors(folder):
    torch.save(torch.from_numpy(X).float(), folder / "wiki_features2M.pt")
    torch.save(torch.from_numpy(EDGES), folder / "wiki_edges2M.pt")
    torch.save(torch.from_numpy(Y), folder / "wiki_views2M.pt")
    return lambda: wiki.read(find("Wiki"), sorted(folder.iterdir()))


def mnist_idx(folder):
    for part in ("train", "t10k"):
        images = b"\x00\x00\x08\x03" + struct.pack(">III", 12, 2, 3) + bytes(range(72))
        labels = b"\x00\x00\x08\x01" + struct.pack(">I", 12) + bytes([3, 1, 2] * 4)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return lambda: mnist.read(find("MNIST"), sorted(folder.iterdir()))


def split_json(folder):
    dataset = Dataset("six", "node", (), torch.from_numpy(Y), classes=("a", "b", "c"))
    write_split(folder / "split.json", Split([0, 1], [2], [3, 4], "random", 3), dataset)
    return lambda: read_split(folder / "split.json", dataset)


def checkpoint_file(folder):
    tensors = {"w": torch.from_numpy(X), "z": torch.from_numpy(X).to(torch.complex128)}
    checkpoint.save(folder / "checkpoint.safetensors", tensors, {"epoch": 3, "rate": [0.1, None]})
    return lambda: checkpoint.load(folder / "checkpoint.safetensors")


def cached_spectrum(folder):
    cache = SpectrumCache(folder)
    partial_eigh(laplacian(path_graph(6)), cache=cache)
    (path,) = folder.glob("*.safetensors")
    return lambda: cache.load(path.stem)


def run_toml(folder):
    (folder / "run.toml").write_text(RUN)
    return lambda: Job.of(read_toml(folder / "run.toml"))


def experiment_toml(folder):
    (folder / "table.toml").write_text(TABLE)
    return lambda: Experiment.read(folder / "table.toml")


KINDS = {
    "TU tables": tu_folder,
    "TU archive": tu_archive,
    "Planetoid pickles": planetoid_pickles,
    "heterophilous .npz": heterophilous_npz,
    "own .npz": own_npz,
    "own .csv": own_csv,
    "own .mat": own_mat,
    "Facebook .mat": facebook_mat,
    "edge list .mat": edge_list_mat,
    "Twitch .csv": twitch_csv,
    "Wiki .pt": wiki_tensors,
    "MNIST idx": mnist_idx,
    "split .json": split_json,
    "checkpoint": checkpoint_file,
    "cached spectrum": cached_spectrum,
    "run .toml": run_toml,
    "experiment .toml": experiment_toml,
}

# Damage.

NUMBERS = (b"-1", b"0", b"99999999999999999999999", b"4294967296", b"2147483648", b"1e308", b"nan",
           b"-inf", b"1_0", b"0.5", b"", b"1e999", b"[1]", b'"a"', b"true", b"null")  # fmt: skip
WORDS = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x00\x00\x00\x00",
         b"\x01\x00\x00\x00\x00\x00\x00\x80", b"\x7f\xff\xff\xff", b"\x00\x00\xf8\x7f",
         b"\x00\x00\x00\x10")  # fmt: skip


def flip_bit(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def flip_byte(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def truncate(data, rng):
    return data[: rng.randrange(len(data))]


def cut_out(data, rng):
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 1 + len(data) // 4) :]


def repeat(data, rng):
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 1 + len(data) // 4)]
    return data[:start] + piece * rng.randint(2, 20) + data[start:]


def insert(data, rng):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randint(1, 16)) + data[at:]


def swap_number(data, rng):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return flip_byte(data, rng)
    start, end = rng.choice(found).span()
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def overwrite(data, rng):
    at, word = 4 * rng.randrange(1 + len(data) // 4), rng.choice(WORDS)
    return data[:at] + word + data[at + len(word) :]


def swap_lines(data, rng):
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


DAMAGE = (flip_bit, flip_byte, truncate, cut_out, repeat, insert, swap_number, overwrite,
          swap_lines)  # fmt: skip


def damaged(data, rng):
    """One or several faults; inside of a compressed file in half of the cases."""
    inside = rng.random() < 0.5
    if inside and data[:2] == b"\x1f\x8b":
        return gzip.compress(damaged(gzip.decompress(data), rng))
    if inside and data[:2] == b"PK":
        return _rezipped(data, rng)
    if inside and data[126:128] == b"IM" and data[128:132] == b"\x0f\x00\x00\x00":
        return _recompressed(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = rng.choice(DAMAGE)(data, rng) if data else rng.randbytes(3)
    return data


def _rezipped(data, rng):
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w") as new:
        chosen = rng.choice([name for name in old.namelist() if old.read(name)])
        for member in old.infolist():
            content = old.read(member)
            member.compress_type = zipfile.ZIP_STORED
            new.writestr(member, damaged(content, rng) if member.filename == chosen else content)
    return result.getvalue()


def _recompressed(data, rng):
    """A MATLAB file whose first variable is damaged before it is compressed."""
    (length,) = struct.unpack("<I", data[132:136])
    body = zlib.compress(damaged(zlib.decompress(data[136 : 136 + length]), rng))
    return data[:128] + struct.pack("<II", 15, len(body)) + body + data[136 + length :]


# Cases.


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
