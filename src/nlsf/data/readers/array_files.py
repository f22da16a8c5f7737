"""Arrays by name from files of unknown content: `read_npz` of NumPy, `read_mat` of MATLAB.

SciPy's reader of MATLAB files follows the numbers in them without a check, and a damaged file ends
the process. Here each length, type and index is checked before it is used.

A MATLAB file of version 5 to 7.2 is a header of 128 bytes and a sequence of elements. Each has a
tag, its type and length in 32 bits each. A variable is an element of type 14, made of elements:
flags, dimensions, name, and for a full matrix its values, column by column, or for a sparse one
row indices, column pointers and values. An element of type 15 is one of type 14, compressed by
zlib.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlsf.data.readers.raw_files import MAX_BYTES, existing
from nlsf.errors import FormatError


def read_npz(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Arrays of a NumPy archive, by name.

    Args:
        path: the ``.npz`` file.
        names: those to read, if they are there.

    Raises:
        FormatError: the archive is damaged or too large, or an array holds Python objects.
    """
    existing(path)
    field = ""
    try:
        _check_declared(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {}
            for field in archive.files:
                if field in names:
                    arrays[field] = np.asarray(archive[field])
            return arrays
    except FormatError:
        raise
    # Damaged bytes make the readers of archives and of headers, which are Python, stumble in any
    # way.
    except Exception as error:
        if "allow_pickle" in str(error) and field:
            raise FormatError(
                f"{path}: {field!r} holds Python objects; save it as an array of numbers."
            ) from error
        where = f" (reading {field!r})" if field else ""
        raise FormatError(f"{path} is not a whole .npz archive{where}.") from error


def need(path: Path, found: Collection[str], names: Iterable[str]) -> None:
    """Checks that a file has these fields.

    Raises:
        FormatError: one is not there; names it and what is there.
    """
    for name in names:
        if name not in found:
            others = ", ".join(map(repr, sorted(found)))
            beside = f"; it has {others}" if others else ""
            raise FormatError(f"{path} has no {name!r}, which it needs{beside}.")


def _check_declared(path: Path) -> None:
    """A zip archive never gives more than it declares: so this bounds what is read."""
    with zipfile.ZipFile(path) as archive:
        total = sum(member.file_size for member in archive.infolist())
    if total > MAX_BYTES:
        raise FormatError(
            f"{path} declares {total:,} bytes of arrays; at most {MAX_BYTES >> 30} GiB are read."
        )


_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_SPARSE, _NUMERIC = 5, range(6, 16)
_COMPLEX = 0x0800
_DTYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
# A name has at most 63 characters: flags, dimensions and name fit in here.
_HEAD = 1024


class _DamagedError(Exception):
    """Says what is wrong with the bytes."""


def read_mat(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Variables of a MATLAB file, by name.

    Args:
        path: the ``.mat`` file.
        names: those to read, if they are there.

    Returns:
        Full matrices as arrays of the type in which their values are stored (which may be smaller
        than that of the variable), sparse ones as ``scipy.sparse.csc_array``.

    Raises:
        FormatError: the file is damaged or of another version, or a variable is not a matrix of
            real numbers.
    """
    content = memoryview(existing(path).read_bytes())
    order = _byte_order(path, content)
    found: dict[str, Any] = {}
    name = ""
    try:
        for kind, body in _elements(content[_HEADER:], order):
            if kind not in (_MATRIX, _COMPRESSED):
                raise _DamagedError(f"an element has the type {kind}")
            compressed = kind == _COMPRESSED
            name = _name(_inflated(body, order, _HEAD) if compressed else body, order)
            if name in found:
                raise _DamagedError("it is there twice")
            if name in names:
                found[name] = _matrix(_inflated(body, order) if compressed else body, order)
            name = ""
    except (_DamagedError, zlib.error) as error:
        where = f" (variable {name!r}: {error})" if name else f" ({error})"
        raise FormatError(f"{path} is not a whole MATLAB file{where}.") from error
    return found


def _byte_order(path: Path, content: memoryview) -> str:
    mark = bytes(content[126:_HEADER])
    if mark not in (b"IM", b"MI"):
        raise FormatError(f"{path} is not a whole MATLAB file of version 5 to 7.2.")
    order = "<" if mark == b"IM" else ">"
    version = int(np.frombuffer(content[124:126], dtype=f"{order}u2")[0])
    if version == 0x0200:
        raise FormatError(f"{path} is a MATLAB 7.3 file: save it again with save(..., '-v7').")
    if version != 0x0100:
        raise FormatError(f"{path} is a MATLAB file of an unknown version ({version:#x}).")
    return order


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Types and contents of a sequence of elements."""
    at = 0
    while at < len(content):
        kind, length = _tag(content, at, order)
        if kind >> 16:
            # A small element: type and length share a word, the content is in the next.
            kind, length = kind & 0xFFFF, kind >> 16
            start, after = at + 4, at + 8
            if length > 4:
                raise _DamagedError(f"a small element announces {length} bytes")
        else:
            start = at + 8
            # What is compressed is not filled up to a multiple of 8 bytes.
            after = start + length + (0 if kind == _COMPRESSED else -length % 8)
        if start + length > len(content):
            raise _DamagedError("it ends too early")
        yield kind, content[start : start + length]
        at = after


def _tag(content: memoryview, at: int, order: str) -> tuple[int, int]:
    if at + 8 > len(content):
        raise _DamagedError("it ends too early")
    kind, length = np.frombuffer(content[at : at + 8], dtype=f"{order}u4").tolist()
    return kind, length


def _inflated(body: memoryview, order: str, most: int | None = None) -> memoryview:
    """The content of the element that is compressed in here, or its first bytes.

    Its tag bounds what is inflated: 4 GiB.
    """
    engine = zlib.decompressobj()
    tag = memoryview(engine.decompress(body, 8))
    kind, length = _tag(tag, 0, order)
    if kind != _MATRIX:
        raise _DamagedError(f"an element of type {kind} is compressed")
    wanted = length if most is None else min(length, most)
    content = engine.decompress(engine.unconsumed_tail, wanted) if wanted else b""
    if len(content) < wanted:
        raise _DamagedError("it ends too early")
    if most is None:
        # At its end zlib compares the checksum; up to 7 bytes may fill up the last word.
        engine.decompress(engine.unconsumed_tail, 8)
        if not engine.eof:
            raise _DamagedError("it has another length than announced")
    return memoryview(content)


def _name(body: memoryview, order: str) -> str:
    """The name of a variable, from the beginning of its content."""
    parts = _elements(body, order)
    for _ in range(2):
        _next(parts)
    return _next(parts)[1].tobytes().decode("ascii", "replace")


def _next(parts: Iterator[tuple[int, memoryview]]) -> tuple[int, memoryview]:
    part = next(parts, None)
    if part is None:
        raise _DamagedError("it ends too early")
    return part


def _numbers(parts: Iterator[tuple[int, memoryview]], order: str) -> NDArray[Any]:
    kind, content = _next(parts)
    if kind not in _DTYPES:
        raise _DamagedError(f"its values have the type {kind}")
    dtype = np.dtype(order + _DTYPES[kind])
    if len(content) % dtype.itemsize:
        raise _DamagedError("its values are cut short")
    values: NDArray[Any] = np.frombuffer(content, dtype=dtype)
    return values.astype(dtype.newbyteorder("="))


def _matrix(body: memoryview, order: str) -> Any:
    parts = _elements(body, order)
    flags = _numbers(parts, order)
    shape = tuple(_numbers(parts, order).tolist())
    _next(parts)
    if not flags.size or flags.dtype.kind == "f":
        raise _DamagedError("it has no flags")
    kind = int(flags[0]) & 0xFF
    if int(flags[0]) & _COMPLEX or (kind != _SPARSE and kind not in _NUMERIC):
        raise _DamagedError("it is not a matrix of real numbers")
    if not all(isinstance(size, int) and size >= 0 for size in shape) or len(shape) < 2:
        raise _DamagedError(f"it has the shape {shape}")
    if kind == _SPARSE:
        return _sparse(shape, *(_numbers(parts, order) for _ in range(3)))
    values = _numbers(parts, order)
    if math.prod(shape) != values.size:
        raise _DamagedError(f"it has {values.size:,} values for the shape {shape}")
    return values.reshape(shape, order="F")


def _sparse(
    shape: tuple[int, ...], rows: NDArray[Any], starts: NDArray[Any], values: NDArray[Any]
) -> Any:
    from scipy import sparse

    if len(shape) != 2 or rows.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        raise _DamagedError("its indices are not whole numbers")
    if starts.size != shape[1] + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise _DamagedError(f"its entries are not divided into {shape[1]:,} columns")
    # There may be room for more entries than there are.
    count = int(starts[-1])
    if count > rows.size or count > values.size:
        raise _DamagedError(f"it announces {count:,} entries, but has fewer")
    rows, values = rows[:count], values[:count]
    if count and not 0 <= rows.min() <= rows.max() < shape[0]:
        raise _DamagedError(f"a row index lies outside its {shape[0]:,} rows")
    return sparse.csc_array((values, rows.astype(np.int64), starts.astype(np.int64)), shape=shape)
