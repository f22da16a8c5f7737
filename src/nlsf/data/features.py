"""What nodes know about themselves: own features, their links, a constant, their degree."""

from __future__ import annotations

import copy
import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, sparse_csr
from nlsf.errors import ConfigError

DegreeFeatures = Literal["none", "scaled", "binned", "one-hot"]
AdjacencyFeatures = Literal["none", "add", "only"]

_MAX_ONE_HOT = 511
_MAX_DENSE_ENTRIES = 10**8


@dataclass(frozen=True)
class FeatureConfig:
    """Which channels a model sees, in this order: own features, links, constant, degree.

    Attributes:
        row_normalize: divide the own features of each node by the sum of their absolute values.
        zscore: shift and scale each own feature to mean 0 and deviation 1 over all nodes.
        center: those means, one a feature; empty until `fit` fills them in.
        scale: those deviations.
        adjacency: ``"add"`` the node's row of the adjacency matrix to its own features, or take it
            as the ``"only"`` ones: N channels, so that a model belongs to this one graph. Where the
            data know the direction of links, a row holds those that go out.
        constant: add a channel of ones.
        degree: add the degree: ``"scaled"``, one channel, degree / max_degree; ``"one-hot"``,
            max_degree + 1 channels; ``"binned"``, one channel for each of 0, 1, 2, 3, 4 to 5,
            6 to 7, 8 to 11, ...: bins that grow by the root of 2. Larger degrees count as
            max_degree.
        max_degree: the largest degree that is told apart; ``None`` until `fit` fills it in.
    """

    row_normalize: bool = False
    zscore: bool = False
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    adjacency: AdjacencyFeatures = "none"
    constant: bool = False
    degree: DegreeFeatures = "none"
    max_degree: int | None = None

    def __post_init__(self) -> None:
        for name in ("row_normalize", "zscore", "constant"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"features.{name} must be true or false.")
        if self.zscore and self.row_normalize:
            raise ConfigError("features.zscore and features.row_normalize exclude each other.")
        if self.zscore and self.adjacency != "none":
            raise ConfigError("features.zscore and features.adjacency exclude each other.")
        if len(self.center) != len(self.scale) or not all(s > 0 for s in self.scale):
            raise ConfigError(
                "features.center and features.scale must be of one length, the scales above 0."
            )
        for name, kinds in (("degree", DegreeFeatures), ("adjacency", AdjacencyFeatures)):
            value, known = getattr(self, name), get_args(kinds)
            if value not in known:
                names = ", ".join(repr(one) for one in known)
                raise ConfigError(f"features.{name} must be one of {names}, not {value!r}.")
        if self.max_degree is not None:
            if type(self.max_degree) is not int or self.max_degree < 1:
                raise ConfigError(
                    f"features.max_degree must be a whole number above 0, not {self.max_degree!r}."
                )
            if self.degree == "one-hot" and self.max_degree > _MAX_ONE_HOT:
                raise ConfigError(
                    f"features.max_degree must be at most {_MAX_ONE_HOT} for one-hot degrees, "
                    f"not {self.max_degree}."
                )


def fit(config: FeatureConfig, dataset: Dataset) -> FeatureConfig:
    """Fills in what the graphs decide, unless the configuration names it.

    The largest degree (at most 511 for one-hot degrees, which makes 512 channels), and the means
    and deviations of the own features. They come from all nodes; labels are not looked at.
    """
    if config.zscore and not config.center:
        _needs_own(dataset, "zscore")
        x = torch.cat([_dense(graph.x, dataset.name) for graph in dataset.graphs]).double()
        center, scale = x.mean(0), x.std(0, correction=0)
        scale = scale.where(scale > 0, 1.0)
        config = dataclasses.replace(
            config, center=tuple(center.tolist()), scale=tuple(scale.tolist())
        )
    if config.degree == "none" or config.max_degree is not None:
        return config
    degrees = [int(_degree(graph).max()) for graph in dataset.graphs if graph.num_nodes]
    largest = max([1, *degrees])
    if config.degree == "one-hot":
        largest = min(largest, _MAX_ONE_HOT)
    return dataclasses.replace(config, max_degree=largest)


def with_features(dataset: Dataset, config: FeatureConfig) -> Dataset:
    """The same data set with the features that were asked for; the given one is not changed.

    At the level ``"signal"`` the channels are added to every signal.

    Args:
        dataset: the graphs.
        config: from `fit`, which may have seen other graphs.

    Raises:
        ConfigError: there would be no features at all, too many, or the degree is not fitted.
    """
    if config.degree != "none" and config.max_degree is None:
        raise ConfigError("features.max_degree is not known yet: fit the features first.")
    added = config.constant or config.degree != "none"
    linked = config.adjacency != "none"
    if linked and (dataset.level != "node" or len(dataset.graphs) != 1):
        raise ConfigError(
            f"features.adjacency needs one graph with labelled nodes, which {dataset.name} is not."
        )
    if dataset.num_features == 0 and not (added or linked):
        raise ConfigError(
            f'{dataset.name} has no node features: set features.degree = "binned", '
            "or features.constant = true."
        )
    if config.row_normalize:
        _needs_own(dataset, "row_normalize")
    if config.zscore and dataset.num_features != len(config.center):
        raise ConfigError(
            f"features.center has {len(config.center)} numbers for the {dataset.num_features} "
            f"features of {dataset.name}."
        )
    if dataset.signals is not None:
        if not added:
            return dataset
        new = _new_channels(dataset.graphs[0], config)
        repeated = new.expand(dataset.signals.shape[0], -1, -1)
        return dataclasses.replace(dataset, signals=torch.cat([dataset.signals, repeated], dim=-1))
    if not (added or linked or config.row_normalize or config.zscore):
        return dataset
    graphs = tuple(_with_features(graph, config, dataset.name) for graph in dataset.graphs)
    return dataclasses.replace(dataset, graphs=graphs)


def _with_features(graph: Data, config: FeatureConfig, name: str) -> Data:
    x = cast("Tensor | None", graph.x)
    if x is not None and config.row_normalize:
        x = _row_normalized(x)
    if x is not None and config.zscore:
        x = (_dense(x, name) - torch.tensor(config.center)) / torch.tensor(config.scale)
    if config.adjacency != "none":
        links = adjacency_rows(graph)
        x = links if x is None or config.adjacency == "only" else side_by_side(x, links)
    if config.constant or config.degree != "none":
        new = _new_channels(graph, config)
        x = new if x is None else torch.cat([_dense(x, name), new], dim=1)
    result = copy.copy(graph)
    result.x = x
    return result


def _needs_own(dataset: Dataset, what: str) -> None:
    if dataset.signals is not None or dataset.num_features == 0:
        raise ConfigError(
            f"features.{what} needs node features, which {dataset.name} does not have."
        )


def _new_channels(graph: Data, config: FeatureConfig) -> Tensor:
    """(N, k): what is added to the own features."""
    count = int(graph.num_nodes or 0)
    channels = [torch.ones(count, 1)] if config.constant else []
    if config.degree != "none" and config.max_degree is not None:
        degree = _degree(graph).clamp(max=config.max_degree)
        if config.degree == "scaled":
            channels.append((degree.to(torch.float32) / config.max_degree).unsqueeze(1))
        else:
            first = _bins(config.max_degree) if config.degree == "binned" else None
            place = degree if first is None else torch.bucketize(degree, first, right=True) - 1
            hot = torch.zeros(count, config.max_degree + 1 if first is None else len(first))
            channels.append(hot.scatter_(1, place.unsqueeze(1), 1.0))
    return torch.cat(channels, dim=1)


def _bins(largest: int) -> Tensor:
    """The first degree of each bin, up to the one that holds ``largest``."""
    halves = range(2 * largest.bit_length())  # of a power of two
    return torch.tensor(
        sorted({0, *(d for k in halves if (d := math.ceil(2 ** (k / 2))) <= largest)})
    )


def _degree(graph: Data) -> Tensor:
    """(N,): the number of neighbours of each node."""
    start: Tensor = graph.edge_index[0]
    return torch.bincount(start, minlength=int(graph.num_nodes or 0))


def _row_normalized(x: Tensor) -> Tensor:
    if x.layout != torch.sparse_csr:
        total = x.abs().sum(1, keepdim=True)
        return x / total.where(total > 0, 1.0)
    # A copy that is scaled in place keeps the pattern without building a matrix anew.
    result = x.clone()
    values, lengths = result.values(), result.crow_indices().diff()
    row = torch.repeat_interleave(torch.arange(x.shape[0]), lengths)
    total = torch.zeros(x.shape[0], dtype=x.dtype).index_add_(0, row, values.abs())
    values /= total.where(total > 0, 1.0)[row]
    return result


def _dense(x: Tensor, name: str) -> Tensor:
    if x.layout == torch.strided:
        return x
    if x.numel() > _MAX_DENSE_ENTRIES:
        raise ConfigError(
            f"{name} has sparse features ({x.shape[0]} x {x.shape[1]}) that are too many to add "
            'channels to: set features.constant = false and features.degree = "none".'
        )
    return x.to_dense()


def adjacency_rows(graph: Data) -> Tensor:
    """(N, N): the edges of each node; only links that go out where ``adj_out`` knows them.

    Args:
        graph: with ``edge_index``, and maybe ``edge_weight`` or ``adj_out``.
    """
    links = graph.get("adj_out")
    if links is not None:
        out: Tensor = links
        return out
    row, column = graph.edge_index.numpy()
    weight = graph.get("edge_weight")
    values = np.ones(len(row)) if weight is None else weight.numpy()
    size = int(graph.num_nodes or 0)
    return sparse_csr(sparse.csr_array((values, (row, column)), shape=(size, size)))


def side_by_side(first: Tensor, second: Tensor) -> Tensor:
    """(N, F + G) of (N, F) and (N, G), dense or sparse: the second after the first, sparse."""
    return sparse_csr(sparse.hstack([_scipy(first), _scipy(second)]))


def _scipy(x: Tensor) -> Any:
    if x.layout == torch.strided:
        return sparse.csr_array(x.numpy())
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return sparse.csr_array(parts, shape=tuple(x.shape))
