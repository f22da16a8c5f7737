"""Results that are kept in memory, bounded in bytes: `Memory`, `forget_all`, `storages_of`."""

from __future__ import annotations

import functools
import itertools
import os
import re
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar

from nlsf.errors import ConfigError

_Result = TypeVar("_Result")

VARIABLE = "NLSF_MEMORY"
"""The environment variable that says how much all memories together may keep."""

_LEAST, _MOST, _SHARE = 256 << 20, 4 << 30, 8
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Memory:
    """Results by key, computed once. The one that was not asked for longest is forgotten first.

    Memories share one limit unless they have their own: see `memory_limit`. An array that several
    results hold counts once. What a result has grown by counts when the next one is added.

    A result that is larger than the limit is kept beside the others: to forget it would mean to
    compute it at every step of a training. The most recent one of that size is kept, so what is
    kept takes at most the limit and one result.

    Threads may share a memory. Those that ask for the same key wait for the first of them.

    Args:
        limit: bytes for this memory alone; by default it shares the limit of all others.

    Example:
        >>> memory = Memory(limit=1_000_000)
        >>> memory.get("key", lambda: "computed"), memory.get("key", lambda: "again")
        ('computed', 'computed')
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 0:
            raise ConfigError(f"The limit of a memory is a number of bytes from 0 on, not {limit}.")
        self._shelf = _SHARED if limit is None else _Shelf(limit)
        self._number = next(_NUMBERS)
        self._turns: dict[Hashable, threading.RLock] = {}
        # Only noted: this may happen while the shelf is being changed.
        weakref.finalize(self, self._shelf.gone.append, self._number).atexit = False

    def get(self, key: Hashable, compute: Callable[[], _Result]) -> _Result:
        """What is kept under the key, computed if nothing is."""
        shelf, place = self._shelf, (self._number, key)
        found = shelf.find(place)
        if found is None:
            with _LOCK:
                turn = self._turns.setdefault(key, threading.RLock())
            with turn:
                found = shelf.find(place)
                if found is None:
                    try:
                        found = _Entry(place, compute())
                        shelf.put(found)
                    finally:
                        self._turns.pop(key, None)
        value: _Result = found.value
        return value

    def clear(self) -> None:
        """Forgets everything."""
        self._shelf.clear(self._number)

    def __len__(self) -> int:
        """How many results are kept."""
        return len(self._shelf.of(self._number))

    def __contains__(self, key: Hashable) -> bool:
        """Whether a result is kept under the key."""
        return (self._number, key) in self._shelf.entries

    @property
    def nbytes(self) -> int:
        """What the results take, each array once, as it was when they were last looked at."""
        together: dict[int, int] = {}
        for entry in self._shelf.of(self._number):
            together |= entry.storages
        return sum(together.values())


def forget_all() -> None:
    """Forgets what all memories keep."""
    with _LOCK:
        for shelf in _Shelf.every:
            shelf.clear()


def storages_of(value: Any) -> dict[int, int]:
    """The bytes of everything that a value holds, by the address of each array's storage.

    Looks into containers, dataclasses and other objects, and counts each once. What Python's own
    objects take stands under 0. Single numbers, classes, functions and modules do not count.

    Args:
        value: tensors of any layout, arrays, and objects that hold them.

    Example:
        >>> import numpy as np
        >>> x = np.zeros(1000)
        >>> sum(size for place, size in storages_of([x, x[:10], {"x": x}]).items() if place)
        8000
    """
    found = {0: 0}
    seen: dict[int, Any] = {}  # holds them, so that no number is given to two
    todo = [value]
    while todo:
        one = todo.pop()
        kind = _kind(one.__class__)
        if kind == "nothing" or id(one) in seen:
            continue
        seen[id(one)] = one
        if kind == "array":
            todo += _arrays(one, found)
            continue
        found[0] += sys.getsizeof(one, 0)
        if kind == "object":
            todo += _contents(one)
    return found


def memory_limit() -> int:
    """Bytes that memories may keep together: of ``NLSF_MEMORY``, or an eighth of the machine's.

    The eighth is at least 256 MiB and at most 4 GiB.

    Raises:
        ConfigError: the variable is not a number of bytes.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return min(max(_machine_memory() // _SHARE, _LEAST), _MOST)
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)B?\s*", text, re.IGNORECASE)
    if match is None:
        raise ConfigError(f"{VARIABLE} must be a number of bytes, as 500MB or 2GB, not {text!r}.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


class _Entry:
    """A result on a shelf.

    Attributes:
        used: when it was last asked for; entries stand in this order.
        storages: what it holds.
    """

    __slots__ = ("place", "storages", "used", "value")

    def __init__(self, place: tuple[int, Hashable], value: Any) -> None:
        self.place, self.value, self.used = place, value, 0
        self.storages: dict[int, int] = {}


class _Shelf:
    """The results of the memories that share a limit, by their order of use.

    Attributes:
        every: all shelves that there are.
        entries: the results, the newest last, by the number of their memory and their key.
        gone: the numbers of memories that are no more.
    """

    every: ClassVar[weakref.WeakSet[_Shelf]] = weakref.WeakSet()

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.entries: OrderedDict[tuple[int, Hashable], _Entry] = OrderedDict()
        self.gone: deque[int] = deque()
        self._held: dict[int, tuple[int, int]] = {}
        self._bytes = 0
        self._measured = 0  # when
        self.every.add(self)

    def find(self, place: tuple[int, Hashable]) -> _Entry | None:
        with _LOCK:
            entry = self.entries.get(place)
            if entry is not None:
                self.entries.move_to_end(place)
                entry.used = next(_TICKS)
            return entry

    def put(self, entry: _Entry) -> None:
        """Adds the newest entry, and forgets as many of the oldest as there is no room for."""
        limit = memory_limit() if self._limit is None else self._limit
        storages = _marked(entry)
        with _LOCK:
            while self.gone:
                self.clear(self.gone.popleft())
            for other in self._used_since_measured():
                self._release(other)
                self._hold(other, _marked(other))
            self._measured = next(_TICKS)
            if entry.place in self.entries:
                self._remove(entry.place)
            entry.used = next(_TICKS)
            self.entries[entry.place] = entry
            self._hold(entry, storages)
            if self._bytes > limit:
                self._make_room(limit)

    def clear(self, number: int | None = None) -> None:
        """Forgets the results of one memory, or all."""
        with _LOCK:
            for entry in list(self.entries.values()) if number is None else self.of(number):
                self._remove(entry.place)

    def of(self, number: int) -> list[_Entry]:
        """The results of a memory."""
        return [entry for place, entry in list(self.entries.items()) if place[0] == number]

    def _make_room(self, limit: int) -> None:
        newest_first = reversed(self.entries.values())
        large = next((e for e in newest_first if sum(e.storages.values()) > limit), None)
        beside = 0 if large is None else sum(large.storages.values())
        for place, entry in list(self.entries.items()):
            if self._bytes - beside <= limit:
                return
            if entry is not large:
                self._remove(place)

    def _used_since_measured(self) -> list[_Entry]:
        """Entries that may have grown: their values were handed out."""
        recent = itertools.takewhile(
            lambda entry: entry.used > self._measured, reversed(self.entries.values())
        )
        return list(recent)

    def _remove(self, place: tuple[int, Hashable]) -> None:
        self._release(self.entries.pop(place))

    def _hold(self, entry: _Entry, storages: dict[int, int]) -> None:
        entry.storages = storages
        for storage, size in storages.items():
            holders, known = self._held.get(storage, (0, size))
            self._held[storage] = (holders + 1, known)
            if holders == 0:
                self._bytes += size

    def _release(self, entry: _Entry) -> None:
        for storage in entry.storages:
            holders, known = self._held.pop(storage)
            if holders > 1:
                self._held[storage] = (holders - 1, known)
            else:
                self._bytes -= known


_LOCK = threading.RLock()  # of all shelves: results are computed without it
_NUMBERS, _TICKS = itertools.count(), itertools.count(1)
_SHARED = _Shelf(None)

_NUMBERS_OR_NONE = (int, float, complex, type(None))
_NOT_COUNTED = (*_NUMBERS_OR_NONE, type, ModuleType, FunctionType, BuiltinFunctionType, weakref.ref)
_TEXTS = (str, bytes, bytearray)

# The arrays of a sparse tensor, by its layout.
_COMPRESSED_ROWS = ("crow_indices", "col_indices", "values")
_COMPRESSED_COLUMNS = ("ccol_indices", "row_indices", "values")
_SPARSE: Mapping[str, tuple[str, ...]] = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": _COMPRESSED_ROWS,
    "torch.sparse_bsr": _COMPRESSED_ROWS,
    "torch.sparse_csc": _COMPRESSED_COLUMNS,
    "torch.sparse_bsc": _COMPRESSED_COLUMNS,
}


def _marked(entry: _Entry) -> dict[int, int]:
    """The storages of an entry and its key; Python's own objects under a number of its own."""
    storages = storages_of((entry.place, entry.value))
    storages[-id(entry)] = storages.pop(0)
    return storages


@functools.lru_cache(1024)
def _kind(cls: type) -> str:
    if issubclass(cls, _TEXTS):
        return "text"
    if hasattr(cls, "nbytes"):  # of the type: an instance may answer to any name
        return "array"
    return "nothing" if issubclass(cls, _NOT_COUNTED) else "object"


@functools.lru_cache(1024)
def _slots(cls: type) -> tuple[str, ...]:
    names = [kind.__dict__.get("__slots__", ()) for kind in cls.__mro__]
    return tuple(name for each in names for name in ((each,) if isinstance(each, str) else each))


def _arrays(one: Any, found: dict[int, int]) -> list[Any]:
    """Notes the storage of an array, or gives the arrays that it is made of."""
    parts = _SPARSE.get(str(getattr(one, "layout", "")))
    if parts is not None:
        return [getattr(one, part)() for part in parts]
    if hasattr(one, "untyped_storage"):
        storage = one.untyped_storage()
        if storage.data_ptr():  # nothing has no address
            found[storage.data_ptr()] = storage.nbytes()
        return []
    whole = getattr(one, "base", None)
    if hasattr(type(whole), "nbytes"):
        return [whole]  # of a view, all stays
    place = getattr(one, "__array_interface__", {}).get("data", [0])[0]
    found[place or id(one)] = int(one.nbytes)
    return []


def _contents(one: Any) -> list[Any]:
    """What an object holds."""
    inside: list[Any] = []
    if isinstance(one, dict):
        for pair in list(one.items()):
            inside += pair
    elif isinstance(one, list | tuple | set | frozenset | deque):
        inside += list(one)
    inside += list(getattr(one, "__dict__", {}).values())
    inside += [getattr(one, name, None) for name in _slots(one.__class__)]
    return inside


@functools.cache
def _machine_memory() -> int:
    """Bytes of the machine, or of the container that this process is in."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no POSIX system
        return _LEAST * _SHARE
    with suppress(OSError, ValueError):  # no container, or one without a limit
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found
