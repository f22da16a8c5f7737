"""What every loader returns: `Dataset`; what every protocol draws: `Split`.

A `Lesson` is what one training may see of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data

from nlsf.errors import FormatError

Level: TypeAlias = Literal["node", "graph", "signal"]
Metric: TypeAlias = Literal["accuracy", "macro_f1", "roc_auc", "rmse", "mae"]


@dataclass(frozen=True, eq=False)
class Split:
    """Which examples are learned from, which select the model, which measure it.

    Attributes:
        train: (a,), int64, ascending.
        val: (b,).
        test: (c,).
        protocol: how it was drawn, ``"random"`` for example.
        seed: the seed that it was drawn with, or its number among the splits of a file.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    protocol: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        parts = [torch.as_tensor(part, dtype=torch.int64) for part in self.parts]
        for name, part in zip(("train", "val", "test"), parts, strict=True):
            object.__setattr__(self, name, part.sort().values)
        together = torch.cat(parts)
        if together.unique().numel() != together.numel():
            raise FormatError("A split names an example twice: its parts must be disjoint.")

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Train, val and test."""
        return self.train, self.val, self.test


@dataclass(frozen=True, eq=False)
class Dataset:
    """Graphs, signals and labels, whatever their source.

    An *example* is what has a label: a node (level ``"node"``, one graph), a graph (``"graph"``),
    or a signal (``"signal"``, many signals on one graph).

    Attributes:
        name: what it is called on pages and in tables.
        level: what an example is.
        graphs: each with ``edge_index`` (both directions of every edge, no self loops, no doubles),
            ``num_nodes`` and, where nodes have features, ``x`` (N, F) in float32, dense or
            ``torch.sparse_csr``. Labels are not in here, so that a model cannot see them.
        y: (n,) int64, the class of each example, -1 where it is not known; or (n, T) float32, the
            targets of a regression, NaN where not known.
        classes: the names of the classes; none for a regression.
        signals: (n, N, d) float32, at the level ``"signal"``.
        metric: what is reported first.
        given: splits that came with the files, by the name of their protocol.
    """

    name: str
    level: Level
    graphs: tuple[Data, ...]
    y: Tensor
    classes: tuple[str, ...] = ()
    signals: Tensor | None = None
    metric: Metric = "accuracy"
    given: Mapping[str, tuple[Split, ...]] = field(default_factory=dict)

    @property
    def num_examples(self) -> int:
        """Nodes, graphs or signals."""
        return self.y.shape[0]

    @property
    def num_features(self) -> int:
        """Channels of the input; 0 where nodes have none."""
        if self.signals is not None:
            return self.signals.shape[-1]
        x = self.graphs[0].x if self.graphs else None
        return 0 if x is None else int(x.shape[-1])

    @property
    def is_regression(self) -> bool:
        """Whether the targets are numbers, not classes."""
        return self.y.is_floating_point()

    @property
    def num_outputs(self) -> int:
        """Classes, or targets of a regression."""
        return self.y.shape[1] if self.is_regression else len(self.classes)

    @property
    def labelled(self) -> Tensor:
        """The examples (m,) whose label is known."""
        known = ~self.y.isnan().any(-1) if self.is_regression else self.y >= 0
        return known.nonzero().squeeze(-1)


@dataclass(frozen=True, eq=False)
class Lesson:
    """All that one training may see: there are no test examples in here.

    Attributes:
        train: (a,), examples.
        train_y: their labels.
        val: (b,), examples that select the epoch.
        val_y: their labels.
    """

    train: Tensor
    train_y: Tensor
    val: Tensor
    val_y: Tensor

    @property
    def sizes(self) -> tuple[int, int]:
        """Lessons of equal sizes can be trained together."""
        return len(self.train), len(self.val)
