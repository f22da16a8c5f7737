"""Experiments: search spaces, tuning, and the tables that are made of many tuned runs.

`space_of` gives the choices of a model, `nlsf.experiments.tune.tune` finds the best of them on
validation data. An `Experiment` is a table of the paper, `nlsf.experiments.fill.fill` runs what is
missing of it into a `Store`, and `ResultTable` has its numbers. Everything imports on first use.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

_PLACES = {
    "Cell": "spec",
    "Experiment": "spec",
    "Published": "published",
    "ResultTable": "result_table",
    "Space": "space",
    "Store": "store",
    "Trial": "trial",
    "Tuned": "trial",
    "Tuning": "trial",
    "find_experiment": "spec",
    "read_trials": "records",
    "space_of": "space",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> _Any:
    if name in _PLACES:
        return getattr(_import_module(f"nlsf.experiments.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'nlsf.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
