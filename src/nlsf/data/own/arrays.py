"""One graph of the user's own from named arrays: ``.npz`` and ``.mat``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nlsf.data.dataset import Dataset, Split
from nlsf.data.readers import checks
from nlsf.data.readers.array_files import need, read_mat, read_npz
from nlsf.data.readers.heterophilous import adjacency, read_network
from nlsf.errors import FormatError

_MASKS = tuple(tuple(f"{part}_{word}" for part in checks.PARTS) for word in ("masks", "mask"))
# More than any list of edges that fits the memory has.
_MAX_NODES = 1 << 28
_NPZ_FIELDS = (
    *("edges", "edge_index", "edge_weight", "num_nodes"),
    *("node_features", "x", "node_labels", "y"),
    *_MASKS[0],
    *_MASKS[1],
)
_MAT_FIELDS = ("A", "adj", "X", "features", "y", "labels", *_MASKS[1], *_MASKS[0])


def open_npz(path: Path) -> Dataset:
    """One graph from a NumPy archive.

    Its arrays: ``edges`` (E, 2) or ``edge_index`` (2, E); and, each if there is one,
    ``node_features`` or ``x`` (N, F); ``node_labels`` or ``y``, (N,) whole numbers or text for
    classes, (N,) or (N, T) floats for a regression; ``edge_weight`` (E,); ``train_masks``,
    ``val_masks``, ``test_masks`` (K, N) or ``train_mask``, ... (N,), which become the splits
    ``"given"``. Without features and labels, ``num_nodes`` says how many nodes there are.
    """
    arrays = read_npz(path, _NPZ_FIELDS)
    source = str(path)
    edges = _one_of(path, arrays, "edges", "edge_index")
    of_x = _either(path, arrays, "node_features", "x")
    of_y = _either(path, arrays, "node_labels", "y")
    x = None if of_x is None else checks.features(source, of_x, arrays[of_x])
    num_nodes = _num_nodes(source, arrays, x, of_y, edges)
    ends = checks.pairs(source, edges, arrays[edges], num_nodes)
    y, classes = checks.unknown(num_nodes)
    if of_y is not None:
        y, classes = checks.labels_or_targets(source, of_y, arrays[of_y], num_nodes)
    return checks.network(
        source,
        path.stem,
        ends,
        x,
        (y, classes),
        weight=arrays.get("edge_weight"),
        given=given_splits(source, arrays, y),
    )


def open_mat(path: Path) -> Dataset:
    """One graph from a MATLAB file.

    Its variables: ``A`` or ``adj`` (N, N), where entries other than 0 and 1 are weights; and, each
    if there is one, ``X`` or ``features`` (N, F), ``y`` or ``labels`` (N entries: whole numbers are
    classes, others a regression), ``train_mask``, ``val_mask``, ``test_mask``. With ``local_info``
    it is read as a network of the Facebook-100 collection.
    """
    found = read_mat(path, (*_MAT_FIELDS, "local_info"))
    if "local_info" in found:
        return read_network(path, name=path.stem)
    source = str(path)
    of_A = _one_of(path, found, "A", "adj")
    of_x = _either(path, found, "X", "features")
    of_y = _either(path, found, "y", "labels")
    start, end, num_nodes = adjacency(path, of_A, found[of_A])
    weight = _weights(found[of_A])
    x = None if of_x is None else checks.features(source, of_x, found[of_x], num_nodes)
    y, classes = checks.unknown(num_nodes)
    if of_y is not None:
        y, classes = _mat_labels(source, of_y, np.asarray(found[of_y]), num_nodes)
    # MATLAB has no vectors: a mask has the shape (1, N) or (N, 1).
    given = given_splits(source, found, y)
    ends = np.stack([start, end]).astype(np.int64)
    return checks.network(source, path.stem, ends, x, (y, classes), weight=weight, given=given)


def _one_of(path: Path, found: Mapping[str, Any], *names: str) -> str:
    """The name under which a field is there, which must be."""
    there = _either(path, found, *names)
    if there is None:
        need(path, found, names[:1])
    return there or names[0]


def _either(path: Path, found: Mapping[str, Any], *names: str) -> str | None:
    """The name under which a field is there."""
    there = [name for name in names if name in found]
    if len(there) > 1:
        raise FormatError(f"{path} has both {there[0]!r} and {there[1]!r}: keep one.")
    return there[0] if there else None


def _num_nodes(
    source: str, arrays: Mapping[str, NDArray[Any]], x: Tensor | None, of_y: str | None, edges: str
) -> int:
    if x is not None:
        return x.shape[0]
    if of_y is not None:
        return int(arrays[of_y].shape[0]) if arrays[of_y].ndim else 1
    if "num_nodes" in arrays:
        count = checks.integers(source, "num_nodes", arrays["num_nodes"])
        if count.size != 1 or not 0 < int(count.reshape(-1)[0]) <= _MAX_NODES:
            raise FormatError(f"{source}: 'num_nodes' is not one number from 1 to {_MAX_NODES:,}.")
        return int(count.reshape(-1)[0])
    raise FormatError(
        f"{source} has {edges!r} only: add 'node_features', 'node_labels' or 'num_nodes', so that "
        "the number of nodes is known."
    )


def _weights(A: Any) -> NDArray[Any] | None:
    """The entries of a matrix in the order of `adjacency`, if they are not all one."""
    from scipy import sparse

    values = sparse.coo_array(A).data
    values = values[values != 0]
    return None if (values == 1).all() else values


def _mat_labels(
    source: str, field: str, array: NDArray[Any], num_nodes: int
) -> tuple[Tensor, tuple[str, ...]]:
    """Classes where all numbers are whole: in MATLAB those are floats, too."""
    if array.ndim == 2 and array.shape[0] == 1:
        array = array.T
    if array.dtype.kind == "f" and np.array_equal(array, np.round(array)):
        array = checks.integers(source, field, array)
    return checks.labels_or_targets(source, field, array, num_nodes)


def given_splits(
    source: str, arrays: Mapping[str, NDArray[Any]], y: Tensor
) -> dict[str, tuple[Split, ...]]:
    """The splits ``"given"`` of arrays called ``train_mask`` or the like, if there are any."""
    for names in _MASKS:
        there = [name for name in names if name in arrays]
        if there and len(there) < len(names):
            missing = next(name for name in names if name not in arrays)
            raise FormatError(f"{source} has {there[0]!r}, but no {missing!r}.")
        if there:
            masks = {name: arrays[name] for name in names}
            return {"given": checks.splits(source, masks, y, "given")}
    return {}
