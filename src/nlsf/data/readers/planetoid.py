"""Cora, Citeseer and Pubmed, as the Planetoid release distributes them: in pickles.

They are read as untrusted data, by `restricted_load`. Nothing that a pickle names is imported. Each
name that a Planetoid file needs stands for a class of this module that takes down what the pickle
says of an array or matrix; the real object is then built from checked numbers and bytes.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Split
from nlsf.data.graph_arrays import undirected
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import ending
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry


def restricted_load(path: Path, *, max_bytes: int = 2 << 30) -> Any:
    """The object in a pickle of the Planetoid release.

    Args:
        path: a file of numbers, text, lists, dictionaries, NumPy arrays of numbers and SciPy's
            ``csr_matrix``, as Python 2 or 3 writes them (protocols 2 to 4).
        max_bytes: a larger file is refused.

    Returns:
        Arrays are writable and own their memory; the indices of a matrix lie within its shape; a
        ``defaultdict`` is a plain dictionary.

    Raises:
        FormatError: the pickle is damaged, too large, or asks for anything else.
    """
    size = path.stat().st_size
    if size > max_bytes:
        raise FormatError(f"{path} has {size:,} bytes; a pickle here may have {max_bytes:,}.")
    try:
        return _finished(_Reader(io.BytesIO(path.read_bytes()), encoding="latin1").load())
    except _RefusedError as error:
        raise FormatError(
            f"{path} asks for {error}, but a Planetoid file holds arrays of numbers, sparse "
            "matrices and neighbour lists only: do not trust it."
        ) from error
    except OSError:
        raise
    # Bytes that are no pickle can make its little machine stumble in any way.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise FormatError(
            f"{path} is not a whole Planetoid pickle ({reason}): fetch it again."
        ) from error


class _RefusedError(Exception):
    """The pickle names something that is not on the list."""


# The reader written in Python keeps its memo in a dictionary. In the one written in C it is an
# array as long as the largest index, with which a file of 20 bytes fills the memory.
class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


class _StandIn:
    """Has `__setstate__`, so that a pickle cannot set attributes of the classes below."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: object) -> None:
        raise ValueError(f"it gives a state to a {type(self).__name__.strip('_').lower()}")


class _Dtype(_StandIn):
    def __init__(self, code: str, *_: object) -> None:
        if not re.fullmatch(r"[biuf][1248]", code):
            raise _RefusedError(f"an array of dtype {code!r}")
        self.value = np.dtype(code)

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), ("<" | ">" | "|") as order, None, None, None, -1, -1, 0):
                self.value = self.value.newbyteorder(order)
            case _:
                raise _RefusedError(f"an array of dtype {state!r}")


class _Array(_StandIn):
    value: NDArray[Any] | None = None

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), tuple() as shape, _Dtype() as dtype, (bool() | int()) as fortran, raw):
                self.value = _array(shape, dtype.value, bool(fortran), _bytes(raw))
            case _:
                raise ValueError("the state of an array is not (version, shape, dtype, order, raw)")


class _Matrix(_StandIn):
    value: Any = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise ValueError("the state of a matrix is not a dictionary")
        fields = {name: _finished(state.get(name)) for name in ("data", "indices", "indptr")}
        self.value = _csr(state.get("_shape"), fields)


class _Scalar(_StandIn):
    def __new__(cls, dtype: _Dtype, raw: str | bytes) -> Any:
        return _array((), dtype.value, False, _bytes(raw))[()]


class _Encode(_StandIn):
    """How Python 3 writes bytes in protocol 2."""

    def __new__(cls, text: str, encoding: str) -> Any:
        if encoding != "latin1":
            raise ValueError(f"it encodes text as {encoding}")
        return text.encode("latin1")


class _NoBytes(_StandIn):
    """How Python 3 writes an empty string of bytes in protocol 2."""

    def __new__(cls) -> Any:
        return b""


class _Dictionary(_StandIn, dict[Any, Any]):
    """Takes no default factory: a look-up must not add a key."""


_STAND_INS: Mapping[tuple[str, str], type] = {
    ("collections", "defaultdict"): _Dictionary,
    ("_codecs", "encode"): _Encode,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("__builtin__", "bytes"): _NoBytes,
    **{(builtins, "list"): list for builtins in ("__builtin__", "builtins")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _Scalar for core in ("core", "_core")},
    **{(f"scipy.sparse{csr}", "csr_matrix"): _Matrix for csr in ("", ".csr", "._csr")},
}


def _finished(found: Any) -> Any:
    if isinstance(found, _Array | _Matrix) and found.value is None:
        raise ValueError("an array or matrix has no content")
    if isinstance(found, _Array | _Matrix | _Dtype):
        return found.value
    return dict(found) if isinstance(found, _Dictionary) else found


def _bytes(raw: object) -> bytes:
    if isinstance(raw, str):
        return raw.encode("latin1")
    if isinstance(raw, bytes):
        return raw
    raise ValueError("the content of an array is not a string of bytes")


def _array(shape: tuple[Any, ...], dtype: np.dtype[Any], fortran: bool, raw: bytes) -> NDArray[Any]:
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"an array has the shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(raw):
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has {len(raw):,} bytes")
    flat = np.frombuffer(raw, dtype=dtype)
    return (flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)).copy(order="K")


def _csr(shape: object, fields: Mapping[str, Any]) -> Any:
    from scipy import sparse

    match shape:
        case (int(rows), int(columns)) if rows >= 0 and columns >= 0:
            pass
        case _:
            raise ValueError(f"a matrix has the shape {shape!r}")
    for name, array in fields.items():
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise ValueError(f"{name} of a matrix is not a vector")
        if name != "data" and array.dtype.kind != "i":
            raise ValueError(f"{name} of a matrix has the dtype {array.dtype}")
    data, indices, indptr = fields["data"], fields["indices"], fields["indptr"]
    if len(indptr) != rows + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"indptr of a matrix does not divide its entries into {rows:,} rows")
    if not len(data) == len(indices) == indptr[-1]:
        raise ValueError("data, indices and indptr of a matrix disagree on the number of entries")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError(f"indices of a matrix lie outside its {columns:,} columns")
    return sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))


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
