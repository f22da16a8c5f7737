"""Small whole files of every kind that nlsf reads, for `fuzz_readers`.

Each function writes them into a folder and gives a function that reads them.
"""

from __future__ import annotations

import gzip
import pickle
import struct
import tempfile
import zipfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from scipy.io import savemat

from nlsf.data.catalogue import find
from nlsf.data.catalogue.files import RemoteFile
from nlsf.data.dataset import Dataset, Split
from nlsf.data.own import open_dataset
from nlsf.data.protocols import read_split, write_split
from nlsf.data.readers import heterophilous, images, planetoid
from nlsf.spectral import SpectrumCache, laplacian, partial_eigh
from nlsf.store.files import file_checksum
from nlsf.tables.spec.spec_file import read_experiment
from nlsf.testing.graphs import path as path_graph
from nlsf.train.run.folder import load, save
from nlsf.train.run.job import Job
from nlsf.train.settings.toml import read_toml

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


def known(name, folder):
    """The entry of a data set, as if the files in this folder were the published ones."""
    paths = sorted(folder.iterdir())
    files = tuple(RemoteFile(f"{name}/{p.name}", sha256=file_checksum(p)) for p in paths)
    return replace(find(name), files=files)


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
    labels = np.eye(2, dtype=np.int32)[np.arange(503) % 2]
    parts = {"x": rows[:2], "tx": rows[:2], "allx": rows}
    parts |= {"y": labels[:2], "ty": labels[:2], "ally": labels}
    parts["graph"] = defaultdict(list, {0: [1], 1: [0, 504], 7: [3, 4]})
    for kind, value in parts.items():
        (folder / f"ind.cora.{kind}").write_bytes(pickle.dumps(value, protocol=4))
    (folder / "ind.cora.test.index").write_text("504\n503\n")
    entry = known("Cora", folder)
    return lambda: planetoid.read(entry, sorted(folder.iterdir()))


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
    return lambda: heterophilous.read_facebook(find("Penn94"), [folder / "Penn94.mat"])


def edge_list_mat(folder):
    savemat(folder / "genius.mat", {"edge_index": EDGES.T, "node_feat": X, "label": Y})
    return lambda: heterophilous.read_edge_list(find("Genius"), [folder / "genius.mat"])


def twitch_csv(folder):
    (folder / "twitch-gamer_feat.csv").write_text(TWITCH)
    (folder / "twitch-gamer_edges.csv").write_text("numeric_id_1,numeric_id_2\n0,1\n2,1\n")
    return lambda: heterophilous.read_twitch(find("Twitch-Gamers"), sorted(folder.iterdir()))


def wiki_tensors(folder):
    torch.save(torch.from_numpy(X).float(), folder / "wiki_features2M.pt")
    torch.save(torch.from_numpy(EDGES), folder / "wiki_edges2M.pt")
    torch.save(torch.from_numpy(Y), folder / "wiki_views2M.pt")
    return lambda: heterophilous.read_wiki(find("Wiki"), sorted(folder.iterdir()))


def mnist_idx(folder):
    for part in ("train", "t10k"):
        grey = b"\x00\x00\x08\x03" + struct.pack(">III", 12, 2, 3) + bytes(range(72))
        labels = b"\x00\x00\x08\x01" + struct.pack(">I", 12) + bytes([3, 1, 2] * 4)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(grey))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    entry = known("MNIST", folder)
    return lambda: images.read_mnist(entry, sorted(folder.iterdir()))


def split_json(folder):
    dataset = Dataset("six", "node", (), torch.from_numpy(Y), classes=("a", "b", "c"))
    write_split(folder / "split.json", Split([0, 1], [2], [3, 4], "random", 3), dataset)
    return lambda: read_split(folder / "split.json", dataset)


def checkpoint_file(folder):
    tensors = {"w": torch.from_numpy(X), "z": torch.from_numpy(X).to(torch.complex128)}
    save(folder / "checkpoint.safetensors", tensors, {"epoch": 3, "rate": [0.1, None]})
    return lambda: load(folder / "checkpoint.safetensors")


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
    return lambda: read_experiment(folder / "table.toml")


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
