"""A model for many signals on one graph: `SignalClassifier`.

It pools over a graph that is made smaller several times: `Pyramid`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.node import MixingNLSF
from nlsf.nn.layers.spectra import check_graph, check_signal, content_digest, remembered
from nlsf.nn.layers.spectral_layer import SpectralLayer, leave_values_unchecked
from nlsf.nn.networks import Head
from nlsf.nn.plans.plan import Examples, Plan, PlanOptions, Signals
from nlsf.nn.responses.psi import ResponseName
from nlsf.nn.responses.response import Sharing
from nlsf.spectral import Bands, Lens, UniformBands, laplacian, partial_eigh
from nlsf.spectral.lens.lens import on_nodes
from nlsf.spectral.operators.graph_input import adjacency_matrix
from nlsf.store.memory import Memory


@dataclass(frozen=True, eq=False)
class Pyramid:
    """The graphs that a model with pooling sees, the finest first.

    Nodes are ordered so that a cluster is a run of ``size`` consecutive nodes, and becomes the
    node of the same place in the next graph; only the last cluster may have fewer.

    Attributes:
        order: (N,), the nodes of the graph in the order of the pyramid.
        lenses: the bands on every graph.
        size: nodes of a cluster.
    """

    order: Tensor
    lenses: tuple[Lens, ...]
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
        """Coarsens a graph and solves every level.

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
            dtype: of the lenses.
        """
        A = sparse.csr_array(adjacency_matrix(edge_index, edge_weight, num_nodes))
        parents = _halvings(A, (levels - 1) * halvings)
        order = np.arange(halved(num_nodes, len(parents)))
        orders = [order]
        for parent in reversed(parents):
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            order = np.argsort(place[parent], kind="stable")
            orders.append(order)
        orders.reverse()
        lenses = []
        for level in range(levels):
            order = orders[level * halvings]
            graph = A[order][:, order].tocoo()
            edges = torch.from_numpy(np.stack([graph.row, graph.col]).astype(np.int64))
            shift = laplacian(edges, graph.data, len(order), "sym")
            spectrum = partial_eigh(shift, cache=cache).to(dtype=dtype)
            lenses.append(Lens.of(spectrum, bands))
            for parent in parents[level * halvings : (level + 1) * halvings]:
                A = _coarse(A, parent)
        return cls(torch.from_numpy(orders[0]), tuple(lenses), 2**halvings)

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


_MAX_HALVINGS = 16
_pyramids = Memory()


@dataclass(frozen=True)
class SignalClassifierConfig:
    """Everything that defines a `SignalClassifier`.

    Attributes:
        in_channels: values of a signal at a node.
        out_channels: classes, or targets of a regression.
        num_nodes: of the graph.
        widths: outputs of each filter, one filter a level.
        bands: of all filters.
        response: form of their response; ``"constant"`` makes them linear.
        sharing: of the response.
        a: exponent of the norms in the filters.
        hops: degree of the polynomial that the maps of the filters are.
        halvings: how often the graph is halved after a filter.
        head: widths of the last network, which sees all channels of all nodes.
        dropout: before the head and in it.
        standardize: batch normalisation of channels, and in the head.
    """

    in_channels: int
    out_channels: int
    num_nodes: int
    widths: tuple[int, ...] = (24, 48)
    bands: Bands = field(default_factory=lambda: UniformBands(23))
    response: ResponseName = "diagonal"
    sharing: Sharing = "shared"
    a: float = 0.0
    hops: int = 8
    halvings: int = 2
    head: tuple[int, ...] = (256,)
    dropout: float = 0.3
    standardize: bool = True

    search: ClassVar[dict[str, tuple[Any, ...]]] = {
        "widths": ((16, 32), (24, 48), (32, 64)),
        "a": (0.0, 0.5, 1.0),
        "hops": (3, 5, 8),
        "dropout": (0.0, 0.3, 0.5),
    }

    def __post_init__(self) -> None:
        if not self.widths:
            raise ModelError("widths must name the width of at least one filter.")
        if not 1 <= self.halvings <= _MAX_HALVINGS:
            raise ModelError(f"halvings must be 1 to {_MAX_HALVINGS}, not {self.halvings}.")


class SignalClassifier(nn.Module):
    """Filters with pooling in between, then a network that sees every node.

    Each level filters, adds a bias and applies ReLU. The nodes of a cluster then become one node of
    the next level, by a linear map of all their values, batch normalisation and ReLU. It is the
    architecture of Defferrard et al., NeurIPS 2016, with nonlinear filters, and with that map in
    the place of their maximum: a filter cannot tell left from right on a grid, the map can, since
    it knows the nodes of a cluster by their order. It and the head, which has weights for every
    place, make the model belong to one graph.

    Args:
        config: a `SignalClassifierConfig`, or leave it out and pass its fields by name.

    Shapes:
        - x: (..., N, in_channels)
        - output: (..., out_channels): logits, or targets of a regression
    """

    def __init__(self, config: SignalClassifierConfig | None = None, **fields: Any) -> None:
        super().__init__()
        self.config = c = SignalClassifierConfig(**fields) if config is None else config
        sizes = zip((c.in_channels, *c.widths), c.widths, strict=False)
        self.filters = nn.ModuleList(
            MixingNLSF(
                before,
                after,
                c.bands,
                c.response,
                c.hops,
                c.a,
                complement=True,
                sharing=c.sharing,
            )
            for before, after in sizes
        )
        leave_values_unchecked(self.filters)
        self.biases = nn.ParameterList(torch.zeros(width) for width in c.widths)
        self.maps = nn.ModuleList(
            nn.Linear(2**c.halvings * width, width, bias=not c.standardize) for width in c.widths
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width) if c.standardize else nn.Identity() for width in c.widths
        )
        self.dropout = Dropout(c.dropout)
        places = halved(c.num_nodes, len(c.widths) * c.halvings)
        self.head = Head(
            [places * c.widths[-1], *c.head, c.out_channels],
            dropout=c.dropout,
            batch_norm=c.standardize,
        )

    def reset_parameters(self) -> None:
        """Draws new parameters and forgets the running statistics."""
        for bias in self.biases:
            nn.init.zeros_(bias)
        for part in (*self.filters, *self.maps, *self.norms, self.head):
            if not isinstance(part, nn.Identity):
                part.reset_parameters()

    def pyramid(
        self,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        *,
        cache: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> Pyramid:
        """The graph at all levels; compute it once.

        Args:
            edge_index: (2, E), undirected.
            edge_weight: (E,).
            cache: keep spectra on disk.
            dtype: of the signals.
        """
        c = self.config
        return Pyramid.of(
            edge_index,
            edge_weight,
            c.num_nodes,
            bands=c.bands,
            levels=len(c.widths),
            halvings=c.halvings,
            cache=cache,
            dtype=dtype,
        )

    def plan(
        self, dataset: Examples, rows: Tensor | None = None, **options: Unpack[PlanOptions]
    ) -> Plan:
        """Signals on one pyramid; arguments as in `plan_of`."""
        if dataset.signals is None:
            raise ModelError(f"The model is for signals on one graph, not for {dataset.level}s.")
        graph, dtype, nodes = dataset.graphs[0], options["dtype"], dataset.graphs[0].num_nodes
        options["progress"](f"Eigendecompositions of {nodes:,} nodes and of their clusters")
        edges, weights = graph.edge_index, graph.get("edge_weight")
        pyramid = self.pyramid(edges, weights, cache=options["cache"], dtype=dtype)
        return Signals(dataset.signals.to(dtype), {"spectrum": pyramid})

    @property
    def plan_key(self) -> Hashable:
        """What of the settings `plan` depends on."""
        c = self.config
        return repr(c.bands), len(c.widths), c.halvings

    @property
    def spectral_branches(self) -> list[SpectralLayer]:
        """None: the ``spectrum`` argument is a `Pyramid`."""
        return []

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        spectrum: Pyramid | None = None,
    ) -> Tensor:
        """The outputs of every signal.

        Args:
            x: the signals.
            edge_index: (2, E), undirected; its pyramid is computed once and remembered.
            edge_weight: (E,).
            spectrum: instead of ``edge_index``: what `pyramid` gave.
        """
        check_signal(x, self.config.in_channels)
        if spectrum is None:
            if edge_index is None:
                raise ModelError("The model needs the graph: pass edge_index, or spectrum.")
            spectrum = self._remembered(*check_graph(x, edge_index, edge_weight), x.dtype)
        x = on_nodes(x, self.config.num_nodes)[..., spectrum.order, :]
        parts = zip(self.filters, self.biases, self.maps, self.norms, strict=True)
        for (layer, bias, join, norm), lens in zip(parts, spectrum.lenses, strict=True):
            y = join(spectrum.gather((layer(x, spectrum=lens) + bias).relu()))
            x = norm(y.flatten(0, -2)).reshape(y.shape).relu()
        out: Tensor = self.head(self.dropout(x.flatten(-2)))
        return out

    def _remembered(
        self, edge_index: Tensor, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> Pyramid:
        c = self.config
        weight = None if edge_weight is None else content_digest(edge_weight)
        shape = (c.num_nodes, c.bands, len(c.widths), c.halvings, dtype)
        key = (content_digest(edge_index), weight, *shape)
        return remembered(
            _pyramids,
            key,
            lambda: self.pyramid(edge_index, edge_weight, cache=False, dtype=dtype),
        )
