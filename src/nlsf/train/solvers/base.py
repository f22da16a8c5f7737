"""What every method without epochs shares: `SolverConfig`, `Solver`, and its model, `Solved`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn

from nlsf.data.dataset import Dataset, Level

if TYPE_CHECKING:
    from nlsf.train.fit import Lesson

Solve: TypeAlias = "Callable[[Dataset, Lesson, Any, int], Tensor]"
"""From data without labels, a lesson, settings and a seed to outputs (n, C) of all examples."""


@dataclass(frozen=True)
class SolverConfig:
    """Settings that every solver has.

    Attributes:
        in_channels: features of a node.
        out_channels: classes, or targets of a regression.
    """

    in_channels: int
    out_channels: int


@dataclass(frozen=True)
class Solver:
    """A method that ``--model`` can name.

    Attributes:
        name: that name.
        title: one line for the help.
        levels: what an example may be.
        config: its settings.
        solve: the method itself. The data that it gets have no labels: it learns from the lesson.
        reference: authors, venue, year.
    """

    name: str
    title: str
    levels: tuple[Level, ...]
    config: type[SolverConfig]
    solve: Solve
    reference: str = ""


class Solved(nn.Module):
    """What a solver has found: the outputs of all examples of its data, and no way to others.

    Args:
        config: the settings of the solver.

    Attributes:
        outputs: (n, out_channels); no rows until a state is loaded, which decides their number.
    """

    outputs: Tensor

    def __init__(self, config: SolverConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("outputs", torch.zeros(0, config.out_channels))

    def forward(self, rows: Tensor) -> Tensor:
        """The outputs (m, out_channels) of these examples (m,)."""
        return self.outputs[rows]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        stored = state_dict.get(f"{prefix}outputs")
        if stored is not None:  # the base class insists on the number of rows that is there
            self.outputs = self.outputs.new_zeros(len(stored), self.outputs.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *rest)
