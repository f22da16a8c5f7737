"""A graph made smaller, several times: `Pyramid`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from nlsf.spectral import Bands, Projector, laplacian, partial_eigh
from nlsf.spectral.operators.graph_input import adjacency_matrix


@dataclass(frozen=True, eq=False)
class Pyramid:
    """The graphs that a model with pooling sees, the finest first.

    Nodes are ordered so that a cluster is a run of ``size`` consecutive nodes, and becomes the
    node of the same place in the next graph; only the last cluster may have fewer.

    Attributes:
        order: (N,), the nodes of the graph in the order of the pyramid.
        projectors: the bands on every graph.
        size: nodes of a cluster.
    """

    order: Tensor
    projectors: tuple[Projector, ...]
    size: int

    @classmethod
    def of(
        cls,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        num_nodes: int,
        *,
        bands: Bands,
        levels: int,
        halvings: int,
        cache: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> Pyramid:
        """Coarsens a graph and decomposes every level.

        An edge of a coarse graph weighs as much as all edges between its two clusters together.

        Args:
            edge_index: (2, E), undirected.
            edge_weight: (E,).
            num_nodes: N.
            bands: of every level.
            levels: number of graphs.
            halvings: how often a graph is halved from one level to the next; a cluster has
                2^halvings nodes.
            cache: keep spectra on disk.
            dtype: of the projectors.
        """
        weights = None if edge_weight is None else edge_weight.numpy()
        A = sparse.csr_array(adjacency_matrix(edge_index.numpy(), weights, num_nodes))
        parents = _halvings(A, (levels - 1) * halvings)
        order = np.arange(halved(num_nodes, len(parents)))
        orders = [order]
        for parent in reversed(parents):
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            order = np.argsort(place[parent], kind="stable")
            orders.append(order)
        orders.reverse()
        projectors = []
        for level in range(levels):
            order = orders[level * halvings]
            graph = A[order][:, order].tocoo()
            edges = torch.from_numpy(np.stack([graph.row, graph.col]).astype(np.int64))
            shift = laplacian(edges, graph.data, len(order), "sym")
            spectrum = partial_eigh(shift, cache=cache).to(dtype=dtype)
            projectors.append(Projector(spectrum, bands))
            for parent in parents[level * halvings : (level + 1) * halvings]:
                A = _coarse(A, parent)
        return cls(torch.from_numpy(orders[0]), tuple(projectors), 2**halvings)

    def gather(self, x: Tensor) -> Tensor:
        """The values of each cluster side by side: (..., N, d) to (..., ceil(N / size), size d).

        Those of nodes that the last cluster lacks are 0.
        """
        missing = -x.shape[-2] % self.size
        if missing:
            x = nn.functional.pad(x, (0, 0, 0, missing))
        return x.reshape(*x.shape[:-2], x.shape[-2] // self.size, self.size * x.shape[-1])


def halved(num_nodes: int, times: int) -> int:
    """The nodes that are left after so many halvings."""
    return -(-num_nodes // (1 << times))


def _halvings(A: sparse.csr_array, times: int) -> list[NDArray[np.int64]]:
    """For every halving, the coarse node of each node.

    Edges count, not their weights: a small change of weights should not move clusters.
    """
    count = sparse.csr_array(A)
    count.data = np.ones_like(count.data)
    members, parents = np.ones(A.shape[0], dtype=np.int64), []
    for time in range(times):
        parent = _matching(count, members < 2**time)
        count = _coarse(count, parent)
        members = np.bincount(parent, weights=members).astype(np.int64)
        parents.append(parent)
    return parents


def _matching(A: sparse.csr_array, incomplete: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Pairs of nodes that are joined by much, as the number of each node's pair.

    Every node, in order, takes the free neighbour with the heaviest edge, of equals the first.
    What is left over is paired in order too, so that there are always ceil(N / 2) pairs. An
    incomplete node, of which there is at most one, stands last in the last pair.
    """
    A.sort_indices()
    size, odd = A.shape[0], incomplete.nonzero()[0]
    free = np.ones(size, dtype=bool)
    pairs: list[Sequence[int]] = []
    left: list[int] = []
    free[odd] = False
    for node in range(size):
        if not free[node]:
            continue
        free[node] = False
        span = slice(A.indptr[node], A.indptr[node + 1])
        neighbours, weights = A.indices[span], np.where(free[A.indices[span]], A.data[span], 0)
        if weights.any():
            other = int(neighbours[weights.argmax()])
            free[other] = False
            pairs.append((node, other))
        else:
            left.append(node)
    left += odd.tolist()
    pairs += [left[i : i + 2] for i in range(0, len(left), 2)]
    parent = np.empty(size, dtype=np.int64)
    for number, pair in enumerate(pairs):
        parent[list(pair)] = number
    return parent


def _coarse(A: sparse.csr_array, parent: NDArray[np.int64]) -> sparse.csr_array:
    """The graph of the clusters, without loops."""
    size = len(parent)
    S = sparse.csr_array((np.ones(size), (np.arange(size), parent)), (size, int(parent.max()) + 1))
    coarse = sparse.coo_array(S.T @ A @ S)
    kept = coarse.row != coarse.col
    entries = coarse.data[kept], (coarse.row[kept], coarse.col[kept])
    return sparse.csr_array(entries, coarse.shape)
