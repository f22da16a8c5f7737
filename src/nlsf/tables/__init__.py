"""Tables: search spaces, tuning, and the tables that are made of many tuned runs.

`space_of` gives the choices of a model, `nlsf.tables.tune.search.tune` finds the best of them on
validation data. An `Experiment` is a table of the paper, `nlsf.tables.fill.fill.fill` runs what is
missing of it into a `Store`, and `ResultTable` has its numbers. Everything imports on first use.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

_PLACES = {
    "Cell": "spec.experiment",
    "Experiment": "spec.experiment",
    "Published": "fill.results",
    "ResultTable": "render.result_table",
    "Space": "tune.space",
    "Store": "fill.results",
    "Trial": "tune.trials",
    "Tuned": "tune.trials",
    "Tuning": "tune.trials",
    "find_experiment": "spec.spec_file",
    "read_experiment": "spec.spec_file",
    "read_trials": "tune.trials",
    "space_of": "tune.space",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> _Any:
    if name in _PLACES:
        return getattr(_import_module(f"nlsf.tables.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'nlsf.tables' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
