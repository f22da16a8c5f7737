"""Data sets by name: `find` an entry of the catalogue, and `load` it."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from nlsf.data.entries import CATALOGUE
from nlsf.data.entry import Entry, Statistics
from nlsf.data.files import locate_all
from nlsf.data.root import data_root
from nlsf.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from nlsf.data.dataset import Dataset

__all__ = ["CATALOGUE", "Entry", "Statistics", "find", "knows", "load", "options"]


def find(name: str) -> Entry:
    """The entry of this name or alias; case, spaces, ``-`` and ``_`` do not matter.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    entry = _BY_KEY.get(_key(name))
    if entry is None:
        raise ConfigError(unknown_name("data set", name, CATALOGUE))
    return entry


def knows(name: str) -> bool:
    """Whether the catalogue has this name or alias."""
    return _key(name) in _BY_KEY


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    offline: bool = False,
    **chosen: Any,
) -> Dataset:
    """Reads a data set of the catalogue; what is missing is downloaded first.

    Args:
        name: see `find`.
        root: see `nlsf.data.root.data_root`.
        offline: download nothing.
        **chosen: options of the reader; see `options`.

    Raises:
        ConfigError: there is no such data set or option.
        DataError: a file is missing; says where to put it.
        FormatError: a file does not hold what it should.
    """
    entry = find(name)
    known = options(entry)
    for option in chosen:
        if option not in known:
            what = f"option of {entry.name}"
            sentence = f"{entry.name} has no options, so not {option!r}."
            raise ConfigError(unknown_name(what, option, known) if known else sentence)
    files = entry.all_files if chosen.get("directed") else entry.files
    paths = locate_all(files, data_root(root), offline=offline)
    return cast("Dataset", _reader(entry)(entry, paths, **chosen))


def options(entry: Entry) -> dict[str, Any]:
    """The options that the reader of an entry takes, with their defaults."""
    parameters = inspect.signature(_reader(entry)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _reader(entry: Entry) -> Callable[..., Any]:
    module, _, function = entry.reader.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), function))


def _key(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


_BY_KEY = {_key(n): entry for entry in CATALOGUE.values() for n in (entry.name, *entry.aliases)}
