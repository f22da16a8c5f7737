"""Cora, Citeseer and Pubmed, as the Planetoid release distributes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Split
from nlsf.data.edges import undirected
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import ending
from nlsf.data.unpickle import restricted_load
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.data.entry import Entry

_NUM_VAL = 500
_MAX_ENTRIES = 1 << 30


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """One citation network, with its public split.

    Rows of ``allx`` and ``ally`` are the first nodes; row i of ``tx`` and ``ty`` is the node whose
    number is on line i of ``test.index``. Numbers that ``test.index`` skips (15 in Citeseer) are
    nodes with zero features, without a label (-1; loaders that take an argmax say class 0).

    The split ``"public"`` trains on the first nodes (as many as ``y`` has rows), validates on the
    next 500 and tests on ``test.index``.

    Args:
        entry: names the data set.
        paths: the files ``ind.NAME.*``, in any order.
    """
    test = _test_index(ending(paths, ".test.index"))
    num_nodes = int(test.max()) + 1
    x = _stacked(paths, "allx", "tx", test, num_nodes)
    one_hot = _stacked(paths, "ally", "ty", test, num_nodes)
    y = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)
    start, end = _neighbours(ending(paths, ".graph"), num_nodes)
    num_train = len(_matrix(ending(paths, ".y")))
    first = torch.arange(num_train + _NUM_VAL)
    if len(first) > test.min():
        raise FormatError(
            f"{ending(paths, '.y')} has {num_train} rows, which leaves no {_NUM_VAL} nodes for "
            "validation before the test nodes."
        )
    split = Split(first[:num_train], first[num_train:], torch.from_numpy(test), "public")
    features = checks.features(str(ending(paths, ".allx")), "allx", x)
    graph = Data(x=features, edge_index=undirected(start, end, num_nodes), num_nodes=num_nodes)
    return Dataset(
        name=entry.name,
        level="node",
        graphs=(graph,),
        y=torch.from_numpy(y.astype(np.int64)),
        classes=tuple(str(k) for k in range(one_hot.shape[1])),
        metric=entry.metric,
        given={"public": (split,)},
    )


def _stacked(
    paths: Sequence[Path], known: str, tested: str, test: NDArray[np.int64], num_nodes: int
) -> NDArray[Any]:
    """The rows of two files, each where its node is; zero where neither has one."""
    upper, lower = (ending(paths, f".{part}") for part in (known, tested))
    first, last = _matrix(upper), _matrix(lower)
    if first.shape[1] != last.shape[1]:
        raise FormatError(f"{lower} has {last.shape[1]} columns, but {upper} {first.shape[1]}.")
    if len(last) != len(test):
        raise FormatError(f"{lower} has {len(last)} rows, but there are {len(test)} test nodes.")
    if len(first) != test.min():
        raise FormatError(
            f"{upper} has {len(first)} rows, but the first test node is {test.min()}: one row for "
            "each node before it is expected."
        )
    both = np.zeros((num_nodes, first.shape[1]), dtype=np.float32)
    both[: len(first)] = first
    both[test] = last
    return both


def _matrix(path: Path) -> NDArray[Any]:
    from scipy import sparse

    found = restricted_load(path)
    if sparse.issparse(found) and math.prod(found.shape) > _MAX_ENTRIES:
        raise FormatError(f"{path} holds a matrix of shape {found.shape}, too large to read.")
    dense = found.toarray() if sparse.issparse(found) else found
    if not isinstance(dense, np.ndarray) or dense.ndim != 2 or dense.dtype.kind not in "biuf":
        raise FormatError(f"{path} does not hold a matrix of numbers.")
    return dense


def _test_index(path: Path) -> NDArray[np.int64]:
    try:
        found = np.array(path.read_bytes().split(), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{path} does not hold one node number a line.") from error
    if not found.size or found.min() < 0 or len(np.unique(found)) != len(found):
        raise FormatError(f"{path} does not name each test node once.")
    if found.max() - found.min() > 2 * len(found):
        raise FormatError(f"{path} skips more nodes than it names: {found.max()} is out of range.")
    return found


def _neighbours(path: Path, num_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lists = restricted_load(path)
    if not isinstance(lists, dict):
        raise FormatError(f"{path} does not hold a dictionary of neighbour lists.")
    try:
        start = np.repeat(np.array(list(lists), dtype=np.int64), [len(v) for v in lists.values()])
        end = np.array([node for ends in lists.values() for node in ends], dtype=np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise FormatError(f"{path} does not hold lists of node numbers.") from error
    checks.pairs(str(path), "edge_index", np.stack([start, end]), num_nodes)
    return start, end
