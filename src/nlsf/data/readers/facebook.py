"""Networks of the Facebook-100 collection: Penn94, Cornell5, Johns Hopkins55 and the like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Metric
from nlsf.data.edges import undirected
from nlsf.data.readers import checks
from nlsf.data.readers.mat import read_mat
from nlsf.data.readers.raw_files import ending, need
from nlsf.data.sparse_rows import sparse_csr
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.data.entry import Entry

_GENDER = 1
_MAX_FEATURES = 1 << 20


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """One university's network; see `read_network`.

    Args:
        entry: names the data set.
        paths: the ``.mat`` file.
    """
    return read_network(ending(paths, ".mat"), name=entry.name, metric=entry.metric)


def read_network(path: Path, *, name: str, metric: Metric = "accuracy") -> Dataset:
    """A ``.mat`` file with ``A`` (N, N), the friendships, and ``local_info`` (N, 7).

    The columns of ``local_info`` are status, gender, major, second major, dorm, year and high
    school; 0 is not known. As in LINKX, the class is the gender minus 1, and the features are the
    one-hot values of each other column (0 is a value of its own), columns in their order, values
    ascending.

    Args:
        path: the file.
        name: of the data set.
        metric: of the data set.

    Returns:
        ``x`` is ``torch.sparse_csr``: six ones a row.
    """
    found = read_mat(path, ("A", "local_info"))
    need(path, found, ("A", "local_info"))
    start, end, num_nodes = adjacency(path, "A", found["A"])
    info = checks.integers(str(path), "local_info", np.asarray(found["local_info"]))
    if info.ndim != 2 or info.shape[0] != num_nodes or info.shape[1] <= _GENDER:
        raise FormatError(
            f"{path}: 'local_info' has the shape {info.shape}; expected ({num_nodes}, 7)."
        )
    gender = info[:, _GENDER].astype(np.int64)
    if not np.isin(gender, (0, 1, 2)).all():
        node = int((~np.isin(gender, (0, 1, 2))).argmax())
        raise FormatError(
            f"{path}: the gender of node {node} in 'local_info' is {gender[node]}; expected 0, 1 "
            "or 2."
        )
    x = sparse_csr(_one_hot(path, np.delete(info, _GENDER, axis=1)))
    graph = Data(x=x, edge_index=undirected(start, end, num_nodes), num_nodes=num_nodes)
    return Dataset(
        name=name,
        level="node",
        graphs=(graph,),
        y=torch.from_numpy(gender - 1),
        classes=("1", "2"),
        metric=metric,
    )


def adjacency(path: Path, field: str, A: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Starts, ends and the number of nodes of a square matrix.

    Raises:
        FormatError: it is not square.
    """
    if getattr(A, "ndim", 0) != 2 or A.shape[0] != A.shape[1]:
        raise FormatError(f"{path}: {field!r} has the shape {A.shape}; expected a square matrix.")
    if A.dtype.kind not in "biuf":
        raise FormatError(f"{path}: {field!r} holds {A.dtype} values; expected numbers.")
    entries = sparse.coo_array(A)
    kept = entries.data != 0
    return entries.row[kept], entries.col[kept], int(A.shape[0])


def _one_hot(path: Path, columns: NDArray[Any]) -> sparse.csr_array:
    codes, width = [], 0
    for column in columns.T:
        values, code = np.unique(column, return_inverse=True)
        codes.append(code.reshape(-1) + width)
        width += len(values)
    if width > _MAX_FEATURES:
        raise FormatError(f"{path}: 'local_info' has {width:,} different values, too many.")
    indices = np.stack(codes, axis=1).ravel()
    indptr = np.arange(0, indices.size + 1, len(codes))
    ones = np.ones(indices.size, dtype=np.float32)
    return sparse.csr_array((ones, indices, indptr), shape=(len(columns), width))
