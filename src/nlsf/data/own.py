"""Data of the user's own, from files and from objects: `open_dataset`, `from_pyg`, ..."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from nlsf.data.dataset import Dataset
from nlsf.data.own_arrays import open_mat, open_npz
from nlsf.data.own_csv import open_csv
from nlsf.data.own_objects import from_networkx, from_pyg
from nlsf.data.readers.tu import read_collection
from nlsf.errors import DataError, FormatError, NLSFError

__all__ = ["from_networkx", "from_pyg", "open_dataset"]

_READABLE = (
    "a .npz or .mat file of one graph, an edges.csv with a features.csv beside it (or the folder "
    "of both), and a .zip or folder in the TUDataset layout (NAME_A.txt, ...)"
)


def open_dataset(
    path: str | os.PathLike[str], *, features: str | os.PathLike[str] | None = None
) -> Dataset:
    """A data set from a file or folder; what it is, its name says.

    - ``.npz``: see `open_npz`; ``.mat``: see `open_mat`.
    - ``.csv``, or a folder with ``edges.csv`` and ``features.csv``: see `open_csv`.
    - ``.zip``, or a folder with ``NAME_A.txt``: many graphs; see `nlsf.data.readers.tu`.

    Edges are made undirected: self loops are dropped, doubles merged. A file without labels gives
    labels that are all -1: it can be predicted on, not trained on.

    Args:
        path: the file or folder.
        features: the table of nodes, where it is not beside the ``.csv`` file of edges.

    Raises:
        DataError: there is no such file, or it may not be read.
        FormatError: it does not hold what it should; names the line or field.
    """
    path = Path(path)
    try:
        reader = _reader(path)
        if reader is open_csv:
            return open_csv(path, features=None if features is None else Path(features))
        if features is not None:
            raise FormatError(f"{path} has its own features: leave out {features}.")
        return reader(path)
    except NLSFError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def _reader(path: Path) -> Callable[[Path], Dataset]:
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    if path.is_dir():
        # Not glob, which takes a folder that may not be read for an empty one.
        names = {entry.name for entry in path.iterdir()}
        if "edges.csv" in names:
            return open_csv
        if any(name.endswith("_A.txt") for name in names):
            return read_collection
    elif (suffix := path.suffix.lower()) in _READERS:
        return _READERS[suffix]
    raise FormatError(f"{path} is not of a kind that can be read, which are {_READABLE}.")


_READERS: dict[str, Callable[[Path], Dataset]] = {
    ".npz": open_npz,
    ".mat": open_mat,
    ".csv": open_csv,
    ".zip": read_collection,
}
