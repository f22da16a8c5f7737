"""The graphlet kernel: `gk`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.train.solvers.base import Solver
from nlsf.train.solvers.svm import KernelConfig, Matrix, check_classes, normalised, tuned_svm
from nlsf.train.solvers.union import union

if TYPE_CHECKING:
    from nlsf.train.fit import Lesson

_FOUR = (
    (0, 0, 0, 0),  # no edge
    (0, 0, 1, 1),  # one
    (1, 1, 1, 1),  # two, apart
    (0, 1, 1, 2),  # two, joined
    (0, 2, 2, 2),  # triangle and a node
    (1, 1, 1, 3),  # star
    (1, 1, 2, 2),  # path
    (2, 2, 2, 2),  # ring
    (1, 2, 2, 3),  # triangle with a tail
    (2, 2, 3, 3),  # ring with a chord
    (3, 3, 3, 3),  # all edges
)
"""The 11 graphs of 4 nodes: their sorted degrees tell them apart."""


@dataclass(frozen=True)
class GraphletConfig(KernelConfig):
    """Settings of the graphlet kernel.

    Attributes:
        size: nodes of a graphlet; those of 3 are counted, those of 4 are sampled.
        samples: how many sets of 4 nodes are drawn from each graph.
    """

    size: Literal[3, 4] = 3
    samples: int = 200


def gk(dataset: Dataset, lesson: Lesson, settings: GraphletConfig, seed: int) -> Tensor:
    r"""The outputs (n, C) of a support vector machine on the graphlet kernel, tuned on validation.

    .. math:: K(G, G') = \cos(f_G, f_{G'})

    where :math:`f_G` counts the node sets of each isomorphism type, connected or not.

    Args:
        dataset: the graphs; their features do not matter.
        lesson: what may be learned from.
        settings: size of the graphlets, and values of C.
        seed: draws the graphlets of 4 nodes.
    """
    check_classes(dataset, "gk")
    if settings.size == 3:
        counts = graphlets_of_3(dataset.graphs)
    else:
        rng = np.random.default_rng(seed)
        counts = np.stack([graphlets_of_4(g, settings.samples, rng) for g in dataset.graphs])
    # Shares before products: the cubes of node numbers would lose digits.
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    kernel = normalised(shares @ shares.T)
    return tuned_svm([kernel], lesson, settings.costs, settings.out_channels, dataset.metric)


def graphlets_of_3(graphs: Sequence[Data]) -> Matrix:
    r"""(G, 4): how many sets of 3 nodes have 0, 1, 2 and 3 edges, exactly.

    With n nodes, m edges, t triangles and w = :math:`\sum_v \binom{d_v}{2}`: three edges t, two
    w - 3 t, one m (n - 2) - 2 (w - 3 t) - 3 t, and all others none.
    """
    from scipy.sparse import csr_matrix

    nodes = union(graphs)
    degree = nodes.degree.astype(np.float64)
    count = len(degree)
    adjacency = csr_matrix((np.ones(nodes.edge_index.shape[1]), nodes.edge_index), (count, count))
    closed = (adjacency @ adjacency).multiply(adjacency).sum(1)
    n, m = nodes.sizes.astype(np.float64), nodes.total(degree) / 2
    three = nodes.total(np.asarray(closed).reshape(-1)) / 6
    two = nodes.total(degree * (degree - 1) / 2) - 3 * three
    one = m * (n - 2) - 2 * two - 3 * three
    one = np.where(n < 3, 0.0, one)
    none = n * (n - 1) * (n - 2) / 6 - one - two - three
    return np.stack([none, one, two, three], axis=1)


def graphlets_of_4(graph: Data, samples: int, rng: np.random.Generator) -> Matrix:
    """(11,): how many of some random sets of 4 nodes have each type; zeros below 4 nodes.

    Args:
        graph: its edges and number of nodes.
        samples: how many sets are drawn, each with equal chance.
        rng: draws them.
    """
    count = int(graph.num_nodes or 0)
    if count < 4:
        return np.zeros(len(_FOUR))
    chosen = np.stack([rng.choice(count, 4, replace=False) for _ in range(samples)])
    start, end = graph.edge_index.numpy()
    edges = np.sort(start * count + end)
    degree = np.zeros((samples, 4), dtype=np.int64)
    for i, j in combinations(range(4), 2):
        there = _holds(edges, chosen[:, i] * count + chosen[:, j])
        degree[:, i] += there
        degree[:, j] += there
    found = np.sort(degree, axis=1)
    types = np.array(_FOUR)
    counts: Matrix = (found[:, None] == types).all(-1).sum(0).astype(np.float64)
    return counts


def _holds(ordered: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Whether each number is in the ordered ones."""
    place = np.searchsorted(ordered, wanted)
    there: np.ndarray = np.append(ordered, -1)[place] == wanted
    return there


SOLVER = Solver(
    "gk",
    "graphlet kernel with a support vector machine",
    ("graph",),
    GraphletConfig,
    gk,
    "Shervashidze et al., Efficient graphlet kernels for large graph comparison, AISTATS 2009",
)
