"""Pages that show what a model learned: `report` for a run, or for several side by side.

A page is one HTML file that needs nothing else. ``nlsf.report(run)`` means
``nlsf.report.report(run)``. Pages of your own are a `Page` with the charts listed here.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

_WHERE = {
    "report": "run_page",
    "comparison_page": "compare",
    "Page": "page",
    **dict.fromkeys(
        (
            "BarChart",
            "Chart",
            "DataTable",
            "GraphDrawing",
            "HeatMap",
            "LineChart",
            "Pictures",
            "Region",
            "Series",
            "Tiles",
        ),
        "charts",
    ),
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> _Any:
    if name in _WHERE:
        return getattr(_import_module(f"nlsf.report.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'nlsf.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_WHERE)


class _Report(_ModuleType):
    """The package itself, which can be called as its main function."""

    def __call__(self, *arguments: _Any, **options: _Any) -> _Any:
        return self.report(*arguments, **options)


# A module finds ``__call__`` on its class only; this is the way that Python documents for it.
_sys.modules[__name__].__class__ = _Report
