"""A support vector machine on kernels, tuned on validation examples: `tuned_svm`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.errors import ConfigError
from nlsf.train.metrics import measure
from nlsf.train.solvers.base import SolverConfig

if TYPE_CHECKING:
    from nlsf.train.fit import Lesson

Matrix = NDArray[np.float64]

_MAX_GRAPHS = 20_000
"""Examples whose kernel, a dense matrix of 3.2 GB, still fits into a usual memory."""


@dataclass(frozen=True)
class KernelConfig(SolverConfig):
    """Settings of every kernel method.

    Attributes:
        costs: values of the machine's C, from which the validation examples choose.
    """

    costs: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)

    def __post_init__(self) -> None:
        if not self.costs or not all(0 < cost < float("inf") for cost in self.costs):
            raise ConfigError(f"model.costs must be numbers above 0, not {list(self.costs)}.")


def check_classes(dataset: Dataset, name: str) -> None:
    """Refuses data that a machine which separates classes cannot learn from, before the work."""
    if dataset.is_regression:
        raise ConfigError(
            f"The model {name!r} separates classes, but {dataset.name} is a regression: choose "
            "another model."
        )
    if dataset.num_examples > _MAX_GRAPHS:
        raise ConfigError(
            f"The model {name!r} compares all pairs of graphs, and {dataset.name} has "
            f"{dataset.num_examples:,}, more than {_MAX_GRAPHS:,}: choose another model."
        )


def normalised(kernel: Matrix) -> Matrix:
    r"""The cosines :math:`K_{ij} / \sqrt{K_{ii} K_{jj}}`; 0 where a graph has no counts at all."""
    scale = np.sqrt(kernel.diagonal())
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return kernel * inverse[:, None] * inverse


def tuned_svm(
    kernels: Iterable[Matrix], lesson: Lesson, costs: Sequence[float], classes: int, metric: str
) -> Tensor:
    """The outputs of the machine that does best on the validation examples.

    Each kernel is tried with each C; of equal ones the first is kept.

    Args:
        kernels: each (n, n), of all examples.
        lesson: training examples fit a machine, validation examples choose one.
        costs: values of C.
        classes: their number.
        metric: what is best.

    Returns:
        (n, classes): as `svm_outputs`.
    """
    best, outputs = -np.inf, None
    for kernel in kernels:
        for cost in sorted(costs):
            found = svm_outputs(kernel, lesson.train, lesson.train_y, cost, classes)
            value = measure(metric, found[lesson.val], lesson.val_y)
            if outputs is None or value > best:
                best, outputs = value, found
    assert outputs is not None
    return outputs


def svm_outputs(kernel: Matrix, train: Tensor, y: Tensor, cost: float, classes: int) -> Tensor:
    """Fits a machine and applies it to all examples.

    Args:
        kernel: (n, n), symmetric.
        train: (a,), the examples that it is fitted to.
        y: their classes.
        cost: C, the weight of examples on the wrong side.
        classes: the number of classes.

    Returns:
        (n, classes): signed distances for two classes; for more, the votes of all pairs of
        classes, with their confidence below one vote. A class without training examples has 1 less
        than the smallest.
    """
    from sklearn.svm import SVC

    rows = train.numpy()
    seen = np.unique(y.numpy())
    values = np.zeros((len(kernel), len(seen)))
    if len(seen) > 1:
        machine = SVC(C=cost, kernel="precomputed").fit(kernel[np.ix_(rows, rows)], y.numpy())
        found = machine.decision_function(kernel[:, rows])
        values = np.stack([-found, found], 1) if found.ndim == 1 else found
    outputs = np.repeat(values.min(1, keepdims=True) - 1.0, classes, axis=1)
    outputs[:, seen] = values
    return torch.from_numpy(outputs)
