"""Networks whose neighbours differ: the LINKX collection, Chameleon, Squirrel and Actor.

LINKX: Facebook-100, Genius and Pokec as ``.mat``, Twitch-Gamers as tables, Wiki as tensors.
"""

from __future__ import annotations

import warnings
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nlsf.data.dataset import Dataset, Metric, sparse_csr
from nlsf.data.readers import checks
from nlsf.data.readers.array_files import need, read_mat, read_npz
from nlsf.data.readers.raw_files import CsvTable, ending, table
from nlsf.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry


_MASKS = tuple(f"{part}_masks" for part in checks.PARTS)
_FIELDS = ("node_features", "node_labels", "edges", *_MASKS)


def read(entry: Entry, paths: Sequence[Path], *, directed: bool = False) -> Dataset:
    """One network, with the ten splits ``"dense"`` (48/32/20 %) of its file.

    Args:
        entry: names the data set.
        paths: ``NAME.npz``, and ``NAME_directed.npz`` where there is one.
        directed: read the file that keeps the direction of links. The graph has both directions of
            every link all the same, as spectra need; the matrix of the links as they were,
            ``torch.sparse_csr`` (N, N) with row = start, is its attribute ``adj_out``.

    Raises:
        ConfigError: ``directed``, but there is no such file.
    """
    fitting = [path for path in paths if path.stem.endswith("_directed") == directed]
    if not fitting:
        raise ConfigError(f"{entry.name} has no file with directed links: leave out 'directed'.")
    path = fitting[0]
    arrays = read_npz(path, _FIELDS)
    need(path, arrays, _FIELDS)
    data = _network(
        entry,
        (path, "node_features", arrays["node_features"]),
        (path, "node_labels", arrays["node_labels"]),
        (path, "edges", arrays["edges"]),
        masks={field: arrays[field] for field in _MASKS},
    )
    if directed:
        graph = data.graphs[0]
        start, end = checks.pairs(str(path), "edges", arrays["edges"], graph.num_nodes)
        out = sparse.csr_array((np.ones(len(start)), (start, end)), shape=2 * (graph.num_nodes,))
        out.sum_duplicates()
        out.data[:] = 1.0
        graph.adj_out = sparse_csr(out)
    return data


_Field: TypeAlias = tuple[Path, str, Any]
"""A file, the name of an array in it, and the array."""


def _network(
    entry: Entry,
    features: _Field,
    labels: _Field,
    edges: _Field,
    masks: Mapping[str, NDArray[Any]] | None = None,
) -> Dataset:
    x = checks.features(str(features[0]), *features[1:])
    y, classes = checks.classes(str(labels[0]), *labels[1:], len(x))
    ends = checks.pairs(str(edges[0]), *edges[1:], len(x))
    source = str(edges[0])
    given = {"dense": checks.splits(source, masks, y, "dense")} if masks else {}
    return checks.network(
        source, entry.name, ends, x, (y, classes), metric=entry.metric, given=given
    )


_EDGE_FIELDS = ("node_feat", "label", "edge_index")


def read_edge_list(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Genius and Pokec; an account's class is whether it is marked as gone, or the gender.

    The graph has both directions of every edge.

    Args:
        entry: names the data set.
        paths: a ``.mat`` file with ``edge_index`` (2, E), directed, ``node_feat`` (N, F) and
            ``label`` (1, N), -1 if not known.
    """
    path = ending(paths, ".mat")
    found = read_mat(path, _EDGE_FIELDS)
    need(path, found, _EDGE_FIELDS)
    features, labels, edges = ((path, field, found[field]) for field in _EDGE_FIELDS)
    return _network(entry, features, labels, edges)


_GENDER = 1
_MAX_FEATURES = 1 << 20


def read_facebook(entry: Entry, paths: Sequence[Path]) -> Dataset:
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
    labels = torch.from_numpy(gender - 1), ("1", "2")
    return checks.network(str(path), name, np.stack([start, end]), x, labels, metric=metric)


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
    joined = entries.data != 0
    return entries.row[joined], entries.col[joined], int(A.shape[0])


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


_TASK, _ID = "mature", "numeric_id"
_COLUMNS = (
    *("views", _TASK, "life_time", "created_at", "updated_at"),
    *(_ID, "dead_account", "language", "affiliate"),
)


def read_twitch(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """The network; a streamer's class is whether the content is for adults.

    Features as in LINKX, seven: views, life_time, created_at and updated_at (a day as the number
    YYYYMMDD), dead_account, language (numbered in the order of first appearance) and affiliate,
    each shifted and scaled to mean 0 and standard deviation 1.

    Args:
        entry: names the data set.
        paths: ``twitch-gamer_feat.csv`` and ``twitch-gamer_edges.csv``, in any order.
    """
    path = ending(paths, "_feat.csv")
    columns = _columns(path)
    y = columns.pop(_TASK).astype(np.int64)
    ids = columns.pop(_ID).astype(np.int64)
    num_nodes = len(ids)
    if not num_nodes or not np.array_equal(np.sort(ids), np.arange(num_nodes)):
        raise FormatError(f"{path}: {_ID!r} does not number the rows from 0, each once.")
    if not np.isin(y, (0, 1)).all():
        line = int((~np.isin(y, (0, 1))).argmax()) + 2
        raise FormatError(f"{path}, line {line}: {_TASK!r} is {y[line - 2]}; expected 0 or 1.")
    x = np.stack(list(columns.values()), axis=1)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0, ddof=1) if num_nodes > 1 else np.ones(x.shape[1])
    x = x / np.where(spread > 0, spread, 1.0)
    order = np.argsort(ids)
    ends = _edges(ending(paths, "_edges.csv"), num_nodes)
    features = torch.from_numpy(x[order].astype(np.float32))
    labels = torch.from_numpy(y[order]), ("0", "1")
    return checks.network(str(path), entry.name, ends, features, labels, metric=entry.metric)


def _day(text: str) -> float:
    return float(date.fromisoformat(text).strftime("%Y%m%d"))


def _columns(path: Path) -> dict[str, NDArray[np.float64]]:
    """The columns of the table of streamers by name, as numbers."""
    streamers = CsvTable.read(path)
    if sorted(streamers.header) != sorted(_COLUMNS):
        raise FormatError(f"{path}, line 1: expected the columns {', '.join(_COLUMNS)}.")
    parsers: dict[str, Callable[[str], float]] = dict.fromkeys(_COLUMNS, int)
    parsers |= {"created_at": _day, "updated_at": _day}
    parsers["language"] = defaultdict[str, float](count().__next__).__getitem__
    return {
        name: streamers.parsed(
            name, parse, "a date YYYY-MM-DD" if parse is _day else "a whole number"
        )
        for name, parse in parsers.items()
    }


def _edges(path: Path, num_nodes: int) -> NDArray[np.int64]:
    header, _, body = path.read_bytes().partition(b"\n")
    if b"numeric_id" not in header:
        raise FormatError(f"{path}, line 1: expected the columns numeric_id_1, numeric_id_2.")
    # The line of the header stays, empty, so that messages count lines as editors do.
    ends = table(str(path), b"\n" + body, kind=int, columns=2).T
    bad = ((ends < 0) | (ends >= num_nodes)).any(axis=0)
    if bad.any():
        line = int(bad.argmax()) + 2
        raise FormatError(
            f"{path}, line {line} names a node outside 0 to {num_nodes - 1}, the nodes of the "
            "table of features."
        )
    return ends


def read_wiki(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """The network, both directions of every link; a page's class is how often it is viewed.

    Args:
        entry: names the data set.
        paths: ``wiki_features2M.pt`` (N, 600), ``wiki_edges2M.pt`` (E, 2) and ``wiki_views2M.pt``
            (N,), the class; in any order.
    """
    kinds = ("features", "views", "edges")
    files = [ending(paths, f"wiki_{kind}2M.pt") for kind in kinds]
    features, labels, edges = (
        (path, kind, _tensor(path).numpy()) for path, kind in zip(files, kinds, strict=True)
    )
    return _network(entry, features, labels, edges)


def _tensor(path: Path) -> Tensor:
    """A tensor from a file of ``torch.save``; mapped where the format allows it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what no writer of tensors writes
            found = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    # A damaged file makes the reader stumble in any way; a malicious one is refused by it.
    except Exception as error:
        raise FormatError(f"{path} does not hold a tensor alone, or is damaged.") from error
    if not isinstance(found, Tensor) or found.layout != torch.strided:
        raise FormatError(f"{path} does not hold a dense tensor.")
    return found.detach()
