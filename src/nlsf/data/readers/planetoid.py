"""Cora, Citeseer and Pubmed, as the Planetoid release distributes them: in pickles.

A pickle can do anything, so nothing is unpickled but the bytes whose checksum the catalogue knows.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nlsf.data.dataset import Dataset, Split
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import ending, published

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

_PARTS = ("test.index", "x", "tx", "allx", "y", "ty", "ally", "graph")
_NUM_VAL = 500
# By which names the files ask for them depends on the versions that wrote them.
_NAMES = {
    "_reconstruct": np.empty(0).__reduce__()[0],
    "csr_matrix": sparse.csr_matrix,
    "defaultdict": defaultdict,
    "dtype": np.dtype,
    "list": list,
    "ndarray": np.ndarray,
}


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """One citation network, with its public split.

    Rows of ``allx`` and ``ally`` are the first nodes; row i of ``tx`` and ``ty`` is the node whose
    number is on line i of ``test.index``. Numbers that ``test.index`` skips (15 in Citeseer) are
    nodes with zero features, without a label (-1; loaders that take an argmax say class 0).

    The split ``"public"`` trains on the first nodes (as many as ``y`` has rows), validates on the
    next 500 and tests on ``test.index``.

    Args:
        entry: names the data set, and knows the checksums of its files.
        paths: the files ``ind.NAME.*``, in any order.

    Raises:
        FormatError: a file is not the one of the release.
    """
    parts = {part: published(entry, ending(paths, f".{part}")) for part in _PARTS}
    test = np.array(parts.pop("test.index").split(), dtype=np.int64)
    found = {part: _unpickled(content) for part, content in parts.items()}
    x = _stacked(found["allx"], found["tx"], test)
    one_hot = _stacked(found["ally"], found["ty"], test)
    y = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)
    lists = found["graph"].values()
    start = np.repeat(np.array(list(found["graph"])), [len(others) for others in lists])
    end = np.concatenate([np.array(others, dtype=np.int64) for others in lists])
    num_train = len(found["y"])
    first = torch.arange(num_train + _NUM_VAL)
    split = Split(first[:num_train], first[num_train:], torch.from_numpy(test), "public")
    labels = torch.from_numpy(y), tuple(str(k) for k in range(one_hot.shape[1]))
    ends, features = np.stack([start, end]), torch.from_numpy(x)
    return checks.network(
        entry.name, entry.name, ends, features, labels, given={"public": (split,)}
    )


def _stacked(first: NDArray[Any], last: NDArray[Any], test: NDArray[np.int64]) -> NDArray[Any]:
    """The rows of the first nodes and those of the test nodes; zero where neither has one."""
    both = np.zeros((test.max() + 1, first.shape[1]), dtype=np.float32)
    both[: len(first)] = first
    both[test] = last
    return both


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _NAMES[name]


def _unpickled(content: bytes) -> Any:
    found = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    return found.toarray() if sparse.issparse(found) else found
