"""Graph kernels with a support vector machine: Weisfeiler-Lehman `wl` and graphlets `gk`.

`tuned_svm` chooses its settings on validation examples; `union` is many graphs as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Lesson
from nlsf.data.metrics import measure
from nlsf.errors import ConfigError
from nlsf.peers.solvers import Solver, SolverConfig

Integers = NDArray[np.int64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Union:
    """The disjoint union of graphs.

    Attributes:
        edge_index: (2, E), both directions of every edge.
        graph: (N,), the graph of each node, ascending.
        sizes: (G,), the nodes of each graph.
    """

    edge_index: Integers
    graph: Integers
    sizes: Integers

    @property
    def num_graphs(self) -> int:
        """G."""
        return len(self.sizes)

    @property
    def degree(self) -> Integers:
        """(N,), the neighbours of each node."""
        return np.bincount(self.edge_index[0], minlength=len(self.graph))

    def total(self, values: Matrix) -> Matrix:
        """(G,), the sum over the nodes of each graph of values (N,)."""
        totals = np.zeros(self.num_graphs)
        np.add.at(totals, self.graph, values)
        return totals


def union(graphs: Sequence[Data]) -> Union:
    """Puts graphs beside each other; the nodes of each are numbered after those before it."""
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs], dtype=np.int64)
    first = sizes.cumsum() - sizes
    edges = [g.edge_index.numpy() + start for g, start in zip(graphs, first, strict=True)]
    edge_index = np.concatenate(edges, axis=1) if edges else np.zeros((2, 0), dtype=np.int64)
    return Union(edge_index, np.repeat(np.arange(len(sizes)), sizes), sizes)


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


@dataclass(frozen=True)
class WLConfig(KernelConfig):
    """Settings of the Weisfeiler-Lehman kernel.

    Attributes:
        iterations: the most refinements h; the validation examples choose among 0, ..., h.
    """

    iterations: int = 5


def wl(dataset: Dataset, lesson: Lesson, settings: WLConfig, seed: int) -> Tensor:
    """The outputs (n, C) of a support vector machine on `wl_kernels`, tuned on validation.

    Args:
        dataset: the graphs.
        lesson: what may be learned from.
        settings: refinements, and values of C.
        seed: is not used.
    """
    check_classes(dataset, "wl")
    kernels = (normalised(k) for k in wl_kernels(dataset.graphs, settings.iterations))
    return tuned_svm(kernels, lesson, settings.costs, settings.out_channels, dataset.metric)


def wl_kernels(graphs: Sequence[Data], iterations: int) -> Iterator[Matrix]:
    r"""The kernels of 0, ..., ``iterations`` refinements, one after the other.

    .. math:: K_h(G, G') = \sum_{i=0}^{h} \langle \phi_i(G), \phi_i(G') \rangle

    where :math:`\phi_i` counts the nodes of each label, and a refinement gives two nodes the same
    new label if and only if their labels and the multisets of their neighbours' labels are equal.

    Args:
        graphs: all that are compared; their first labels are those of `first_labels`.
        iterations: h.
    """
    nodes = union(graphs)
    labels = first_labels(graphs, nodes)
    kernel = np.zeros((len(graphs), len(graphs)))
    for i in range(iterations + 1):
        if i:
            labels = refined(labels, nodes)
        counts = _counts(labels, nodes)
        kernel = kernel + (counts @ counts.T).toarray()
        yield kernel


def first_labels(graphs: Sequence[Data], nodes: Union) -> Integers:
    """(N,): equal where the indicator features of nodes are; without any, the degrees.

    A feature is an indicator if it is 0 or 1 at all nodes of all graphs, and not constant.
    """
    if any(graph.x is None for graph in graphs):
        return nodes.degree
    x = torch.cat([_dense(graph.x) for graph in graphs])
    indicators = ((x == 0) | (x == 1)).all(0) & (x != x[:1]).any(0)
    if not indicators.any():
        return nodes.degree
    bits = np.packbits(x[:, indicators].bool().numpy(), axis=1)
    return np.unique(bits, axis=0, return_inverse=True)[1].reshape(-1)


def refined(labels: Integers, nodes: Union) -> Integers:
    """(N,): the labels after one refinement, numbered in the order of appearance."""
    start, end = nodes.edge_index
    order = np.lexsort((labels[end], start))
    around = labels[end][order]
    stops = nodes.degree.cumsum()
    numbers: dict[tuple[int, bytes], int] = {}
    new = np.empty_like(labels)
    for i, (own, first, stop) in enumerate(
        zip(labels.tolist(), (stops - nodes.degree).tolist(), stops.tolist(), strict=True)
    ):
        new[i] = numbers.setdefault((own, around[first:stop].tobytes()), len(numbers))
    return new


def _counts(labels: Integers, nodes: Union):  # type: ignore[no-untyped-def]  # of SciPy
    """(G, labels), sparse: how many nodes of each graph have each label."""
    from scipy.sparse import csr_matrix

    entries = (np.ones(len(labels)), (nodes.graph, labels))
    return csr_matrix(entries, shape=(nodes.num_graphs, int(labels.max(initial=0)) + 1))


def _dense(x: Tensor) -> Tensor:
    return x if x.layout == torch.strided else x.to_dense()


WEISFEILER_LEHMAN = Solver(
    "wl",
    "Weisfeiler-Lehman subtree kernel with a support vector machine",
    ("graph",),
    WLConfig,
    wl,
    "Shervashidze et al., Weisfeiler-Lehman graph kernels, JMLR 2011",
)


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


def _holds(ordered: Integers, wanted: Integers) -> NDArray[np.bool_]:
    """Whether each number is in the ordered ones."""
    place = np.searchsorted(ordered, wanted)
    there: NDArray[np.bool_] = np.append(ordered, -1)[place] == wanted
    return there


GRAPHLETS = Solver(
    "gk",
    "graphlet kernel with a support vector machine",
    ("graph",),
    GraphletConfig,
    gk,
    "Shervashidze et al., Efficient graphlet kernels for large graph comparison, AISTATS 2009",
)
