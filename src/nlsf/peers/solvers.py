"""Methods that need no epochs: a `Solver` looks at a lesson, and `Solved` knows all outputs.

`MAJORITY` is the simplest of them, a control.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from nlsf.data.dataset import Dataset, Lesson, Level
from nlsf.nn.plans.plan import Examples, Plan

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

    def plan(self, dataset: Examples, rows: Tensor | None = None, **options: Any) -> Plan:
        """Nothing is prepared, for the outputs are known."""
        return KnownOutputs()

    def sees_whole_graph(self, dataset: Examples) -> bool:
        """Whether no step is cheaper for fewer examples: there are no steps."""
        return True

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        stored = state_dict.get(f"{prefix}outputs")
        if stored is not None:  # the base class insists on the number of rows that is there
            self.outputs = self.outputs.new_zeros(len(stored), self.outputs.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *rest)


class KnownOutputs(Plan):
    """For a model that needs no inputs: it was solved, and knows the output of every example."""

    together = False
    whole = True

    def apply(self, model: nn.Module, chosen: Tensor) -> Tensor:
        """The outputs at these examples."""
        out: Tensor = model(chosen)
        return out


def majority(dataset: Dataset, lesson: Lesson, settings: SolverConfig, seed: int) -> Tensor:
    r"""The same output for every example.

    For classes :math:`\log \frac{n_c + 1}{n + C}`, where :math:`n_c` of the :math:`n` training
    examples have class c: the most frequent class has the largest one, and no class has minus
    infinity. For a regression, the mean of the training targets.

    Args:
        dataset: how many examples there are.
        lesson: its training labels are used, those of validation are not.
        settings: the number of classes.
        seed: is not used.
    """
    y = lesson.train_y
    if y.is_floating_point():
        row = y.mean(0)
    else:
        classes = settings.out_channels
        counts = torch.bincount(y, minlength=classes)
        row = ((counts + 1.0) / (len(y) + classes)).log()
    return row.repeat(dataset.num_examples, 1)


MAJORITY = Solver(
    "majority",
    "control: the most frequent training class, or the mean target",
    ("node", "graph", "signal"),
    SolverConfig,
    majority,
)
