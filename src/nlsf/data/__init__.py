"""Data: a catalogue of benchmark sets, your own files, embedded and generated graphs, protocols.

`load` gives a `Dataset` by name, `open_dataset` by path, `from_pyg` and `from_networkx` from
objects; `draw` splits its examples. Everything imports on first use, so that looking at the
catalogue is quick.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

_PLACES = {
    "CATALOGUE": "catalogue.entries",
    "Dataset": "dataset",
    "Entry": "catalogue.entry",
    "FeatureConfig": "features",
    "PROTOCOLS": "protocols",
    "Split": "dataset",
    "block_model": "generators",
    "contextual_block_model": "generators",
    "data_root": "catalogue.files",
    "digits": "readers.images",
    "draw": "protocols",
    "find": "catalogue",
    "from_networkx": "own",
    "from_pyg": "own",
    "load": "catalogue",
    "open_dataset": "own",
    "preferential_attachment": "generators",
    "random_geometric": "generators",
    "read_split": "protocols",
    "torus": "generators",
    "with_features": "features",
    "write_split": "protocols",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> _Any:
    if name in _PLACES:
        return getattr(_import_module(f"nlsf.data.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'nlsf.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
