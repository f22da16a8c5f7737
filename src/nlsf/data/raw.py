"""The graphs of benchmark data sets, read from the publishers' raw files as untrusted data."""

from __future__ import annotations

import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from nlsf.errors import DataError, GraphError

_FILES = {
    "cora": "planetoid/ind.cora.graph",
    "citeseer": "planetoid/ind.citeseer.graph",
    "pubmed": "planetoid/ind.pubmed.graph",
    "chameleon": "heterophilous/chameleon.npz",
    "squirrel": "heterophilous/squirrel.npz",
    "actor": "heterophilous/actor.npz",
    "cornell5": "fb100/Cornell5.mat",
}


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of raw files: the argument, or the environment variable ``NLSF_DATA``."""
    chosen = root or os.environ.get("NLSF_DATA")
    if not chosen:
        raise DataError("No data root: pass one, or set NLSF_DATA to the folder of raw files.")
    return Path(chosen)


def raw_graph(name: str, root: str | os.PathLike[str] | None = None) -> Data:
    """The undirected graph of a benchmark data set: edges only, without self loops and doubles.

    Args:
        name: cora, citeseer, pubmed, chameleon, squirrel, actor or cornell5.
        root: the data root; see `data_root`.

    Raises:
        DataError: the file is missing; names it.
        GraphError: the file does not hold what it should.
    """
    if name not in _FILES:
        raise DataError(f"There is no raw graph {name!r}; there are {', '.join(_FILES)}.")
    path = data_root(root) / _FILES[name]
    if not path.is_file():
        raise DataError(f"{path} is missing: put the publisher's file there.")
    try:
        edges, num_nodes = _READERS[path.suffix](path)
    except (pickle.UnpicklingError, KeyError, ValueError, TypeError, EOFError) as error:
        raise GraphError(f"{path} does not hold a graph in the expected form: {error}") from error
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    edges = np.unique(edges[:, edges[0] != edges[1]], axis=1)
    return Data(edge_index=torch.from_numpy(edges.astype(np.int64)), num_nodes=num_nodes)


class _NeighbourLists(pickle.Unpickler):
    """Unpickles lists and default dictionaries of numbers, and refuses to import anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "defaultdict"):
            return defaultdict
        if (module, name) in (("__builtin__", "list"), ("builtins", "list")):
            return list
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a graph does not need")


def _read_planetoid(path: Path) -> tuple[NDArray[Any], int]:
    with path.open("rb") as file:
        neighbours = _NeighbourLists(file, encoding="latin1").load()
    if not isinstance(neighbours, dict):
        raise ValueError("it is not a dictionary of neighbour lists")
    starts = np.repeat(list(neighbours), [len(ends) for ends in neighbours.values()])
    ends = np.concatenate([np.asarray(ends, dtype=np.int64) for ends in neighbours.values()])
    return np.stack([starts, ends]), len(neighbours)


def _read_npz(path: Path) -> tuple[NDArray[Any], int]:
    with np.load(path, allow_pickle=False) as file:
        return file["edges"].T, len(file["node_labels"])


def _read_mat(path: Path) -> tuple[NDArray[Any], int]:
    from scipy.io import loadmat

    A = loadmat(path, variable_names=["A"])["A"].tocoo()
    return np.stack([A.row, A.col]), int(A.shape[0])


_READERS = {".graph": _read_planetoid, ".npz": _read_npz, ".mat": _read_mat}
