"""The answer of someone who has not looked: `majority`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.train.solvers.base import Solver, SolverConfig

if TYPE_CHECKING:
    from nlsf.train.fit import Lesson


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


SOLVER = Solver(
    "majority",
    "control: the most frequent training class, or the mean target",
    ("node", "graph", "signal"),
    SolverConfig,
    majority,
)
