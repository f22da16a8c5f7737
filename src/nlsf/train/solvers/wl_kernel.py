"""The Weisfeiler-Lehman subtree kernel: `wl`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.train.solvers.base import Solver
from nlsf.train.solvers.svm import KernelConfig, Matrix, check_classes, normalised, tuned_svm
from nlsf.train.solvers.union import Union, union

if TYPE_CHECKING:
    from nlsf.train.fit import Lesson

Labels = NDArray[np.int64]


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


def first_labels(graphs: Sequence[Data], nodes: Union) -> Labels:
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


def refined(labels: Labels, nodes: Union) -> Labels:
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


def _counts(labels: Labels, nodes: Union):  # type: ignore[no-untyped-def]  # of SciPy
    """(G, labels), sparse: how many nodes of each graph have each label."""
    from scipy.sparse import csr_matrix

    entries = (np.ones(len(labels)), (nodes.graph, labels))
    return csr_matrix(entries, shape=(nodes.num_graphs, int(labels.max(initial=0)) + 1))


def _dense(x: Tensor) -> Tensor:
    return x if x.layout == torch.strided else x.to_dense()


SOLVER = Solver(
    "wl",
    "Weisfeiler-Lehman subtree kernel with a support vector machine",
    ("graph",),
    WLConfig,
    wl,
    "Shervashidze et al., Weisfeiler-Lehman graph kernels, JMLR 2011",
)
