"""Methods that are not trained in epochs: they look at a lesson, and know all outputs."""

from __future__ import annotations

from collections.abc import Mapping

from nlsf.train.solvers import graphlet_kernel, majority, wl_kernel
from nlsf.train.solvers.base import Solve, Solved, Solver, SolverConfig

SOLVERS: Mapping[str, Solver] = {
    module.SOLVER.name: module.SOLVER for module in (majority, wl_kernel, graphlet_kernel)
}

__all__ = ["SOLVERS", "Solve", "Solved", "Solver", "SolverConfig"]
