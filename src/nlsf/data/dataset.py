"""What every loader returns: `Dataset`; what every protocol draws: `Split`.

A `Lesson` is what one training may see of both. `undirected` and `sparse_csr` bring edges and
features into the form that a `Dataset` promises.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nlsf.errors import FormatError, GraphError

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


def undirected(start: NDArray[Any], end: NDArray[Any], num_nodes: int) -> Tensor:
    """Both directions of each edge once, without self loops.

    Args:
        start: (E,), node ids in [0, num_nodes); an edge may be there in one or both directions and
            any number of times.
        end: (E,).
        num_nodes: N.

    Returns:
        (2, E'), int64, ordered by start, then end.
    """
    # In booleans, so that no number of doubles overflows.
    pattern = _matrix(start, end, np.ones(len(start), dtype=np.bool_), num_nodes)
    edges = (pattern + pattern.T).tocsr()
    edges.sort_indices()
    return _pairs(edges)


def undirected_weighted(
    start: NDArray[Any], end: NDArray[Any], weight: NDArray[Any], num_nodes: int
) -> tuple[Tensor, Tensor]:
    """Both directions of each edge once, with its weight, without self loops.

    Args:
        start: as in `undirected`.
        end: (E,).
        weight: (E,), not zero; all mentions of an edge, in either direction, agree.
        num_nodes: N.

    Returns:
        (2, E') int64 and (E',) float32.

    Raises:
        GraphError: two mentions of an edge disagree; names it.
    """
    low, high = np.minimum(start, end), np.maximum(start, end)
    order = np.lexsort((high, low))
    low, high, weight = low[order], high[order], np.asarray(weight, dtype=np.float64)[order]
    again = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    differs = again & (weight[1:] != weight[:-1])
    if differs.any():
        i = int(differs.argmax())
        raise GraphError(
            f"the edge between nodes {low[i]} and {high[i]} has the weights {weight[i]:g} and "
            f"{weight[i + 1]:g}"
        )
    first = np.concatenate([[True], ~again])[: len(low)]
    upper = _matrix(low[first], high[first], weight[first], num_nodes)
    edges = (upper + upper.T).tocsr()
    edges.sort_indices()
    return _pairs(edges), torch.from_numpy(edges.data.astype(np.float32))


def _matrix(
    start: NDArray[Any], end: NDArray[Any], values: NDArray[Any], num_nodes: int
) -> sparse.csr_array:
    """N x N, doubles summed, nothing on the diagonal; 32-bit indices where they suffice."""
    small = np.int32 if num_nodes < 2**31 else np.int64
    keep = start != end
    ends = (start[keep].astype(small), end[keep].astype(small))
    return sparse.coo_array((values[keep], ends), shape=(num_nodes, num_nodes)).tocsr()


def _pairs(edges: sparse.csr_array) -> Tensor:
    pairs = np.empty((2, edges.nnz), dtype=np.int64)
    pairs[0] = np.repeat(np.arange(edges.shape[0]), np.diff(edges.indptr))
    pairs[1] = edges.indices
    return torch.from_numpy(pairs)


def sparse_csr(matrix: Any) -> Tensor:
    """A SciPy matrix as ``torch.sparse_csr`` in float32."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
            check_invariants=True,
        )
