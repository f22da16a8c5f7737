"""Collections of graphs in the layout of TUDataset, from an archive or from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Metric, undirected
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import ending, existing, read_members, table
from nlsf.errors import ConfigError, FormatError, unknown_name

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

NodeFeatures: TypeAlias = Literal["labels", "attributes", "both", "none"]

_TABLES = (
    *("A", "graph_indicator", "graph_labels", "graph_attributes"),
    *("node_labels", "node_attributes"),
)
_ENDINGS = tuple(f"_{kind}.txt" for kind in _TABLES)
# Those whose published feature counts leave out their node labels.
_ATTRIBUTES_ONLY = ("ENZYMES", "PROTEINS_full")
_MAX_ENTRIES = 1 << 30


def read(entry: Entry, paths: Sequence[Path], *, nodes: NodeFeatures | None = None) -> Dataset:
    """One collection of graphs.

    Args:
        entry: names the data set.
        paths: the archive.
        nodes: what the features of a node are: its ``"labels"``, one-hot over the collection, its
            ``"attributes"``, ``"both"`` (attributes first) or ``"none"``. By default what the
            usual feature counts of the collection say: the attributes of ENZYMES and
            PROTEINS_full, and whatever there is of all others.
    """
    archive = ending(paths, ".zip")
    return read_collection(archive, name=entry.name, metric=entry.metric, nodes=nodes)


def read_collection(
    path: Path,
    *,
    name: str | None = None,
    metric: Metric = "accuracy",
    nodes: NodeFeatures | None = None,
) -> Dataset:
    """A collection from a ``.zip`` archive, or from a folder with ``NAME_A.txt`` in it.

    ``NAME_A.txt`` has an edge ``i, j`` a line, nodes numbered from 1 through the collection;
    ``NAME_graph_indicator.txt`` the graph of each node, ascending from 1; ``NAME_graph_labels.txt``
    the class of each graph, or ``NAME_graph_attributes.txt`` its targets; ``NAME_node_labels.txt``
    and ``NAME_node_attributes.txt`` may be there.

    Args:
        path: archive or folder.
        name: of the data set; by default that of its files.
        metric: for classes; a regression has ``"rmse"``.
        nodes: see `read`.

    Raises:
        FormatError: a table is missing or does not fit the others; names its file and line.
    """
    found = _Tables(path)
    graph_of_node, y, classes = _graphs(found)
    x = _node_features(found, len(graph_of_node), nodes)
    count = len(y)
    return Dataset(
        name=name or found.prefix,
        level="graph",
        graphs=_divided(_edges(found, graph_of_node), graph_of_node, x, count),
        y=y,
        classes=classes,
        metric="rmse" if y.is_floating_point() else metric,
    )


class _Tables:
    """The files of a collection, by the end of their names."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._members: dict[str, bytes] | None = None
        names = [file.name for file in path.glob("*_A.txt")]
        if not path.is_dir():
            found = read_members(existing(path), lambda name: name.endswith(_ENDINGS))
            self._members = {PurePosixPath(name).name: found[name] for name in found}
            names = [name for name in self._members if name.endswith("_A.txt")]
        if len(names) != 1:
            what = "no NAME_A.txt" if not names else f"{len(names)} files NAME_A.txt"
            raise FormatError(f"{path} has {what}; a collection of graphs has one.")
        self.prefix = names[0].removesuffix("_A.txt")

    def name(self, kind: str) -> str:
        """The file of a table, for messages."""
        file = f"{self.prefix}_{kind}.txt"
        return str(self._path / file) if self._members is None else f"{self._path}, {file}"

    def __contains__(self, kind: str) -> bool:
        file = f"{self.prefix}_{kind}.txt"
        there = (self._path / file).is_file() if self._members is None else file in self._members
        return there

    def take(
        self, kind: str, of: type[int] | type[float] = int, columns: int | None = None
    ) -> NDArray[Any]:
        """A table, once: the bytes of the largest are not kept beside its numbers."""
        file = f"{self.prefix}_{kind}.txt"
        if kind not in self:
            raise FormatError(f"{self._path} has no {file}.")
        if self._members is None:
            content = existing(self._path / file).read_bytes()
        else:
            content = self._members.pop(file)
        return table(self.name(kind), content, kind=of, columns=columns)


def _graphs(found: _Tables) -> tuple[NDArray[np.int64], Tensor, tuple[str, ...]]:
    """The graph (N,) of each node, from 0; the label or targets of each graph; the classes."""
    indicator = found.take("graph_indicator", columns=1)[:, 0] - 1
    name = found.name("graph_indicator")
    if not indicator.size:
        raise FormatError(f"{name} is empty: it needs the graph of each node.")
    step = np.diff(indicator, prepend=0)
    if indicator[0] != 0 or not np.isin(step, (0, 1)).all():
        line = 1 if indicator[0] != 0 else int((~np.isin(step, (0, 1))).argmax()) + 1
        raise FormatError(
            f"{name}, line {line}: graphs must be numbered from 1, in order, none without nodes."
        )
    count = int(indicator[-1]) + 1
    if "graph_labels" not in found and "graph_attributes" in found:
        name = found.name("graph_attributes")
        values = found.take("graph_attributes", float)
        _one_each(name, len(values), count, "graphs")
        return indicator, checks.targets(name, "graph_attributes", values, count), ()
    labels = found.take("graph_labels", columns=1)[:, 0]
    _one_each(found.name("graph_labels"), len(labels), count, "graphs")
    names, y = np.unique(labels, return_inverse=True)
    return indicator, torch.from_numpy(y.reshape(-1)), tuple(str(label) for label in names)


def _node_features(found: _Tables, num_nodes: int, nodes: NodeFeatures | None) -> Tensor | None:
    if nodes is None:
        nodes = "attributes" if found.prefix in _ATTRIBUTES_ONLY else "both"
    elif nodes not in get_args(NodeFeatures):
        raise ConfigError(unknown_name("choice of node features", nodes, get_args(NodeFeatures)))
    elif nodes in ("labels", "attributes") and f"node_{nodes}" not in found:
        raise ConfigError(f"{found.prefix} has no node {nodes}: choose other 'nodes'.")
    parts = []
    if nodes in ("attributes", "both") and "node_attributes" in found:
        name = found.name("node_attributes")
        values = found.take("node_attributes", float)
        _one_each(name, len(values), num_nodes, "nodes")
        parts.append(checks.features(name, "node_attributes", values))
    if nodes in ("labels", "both") and "node_labels" in found:
        labels = found.take("node_labels")
        _one_each(found.name("node_labels"), len(labels), num_nodes, "nodes")
        parts.extend(_one_hot(found.name("node_labels"), column) for column in labels.T)
    return torch.cat(parts, dim=1) if parts else None


def _one_hot(name: str, column: NDArray[np.int64]) -> Tensor:
    values, code = np.unique(column, return_inverse=True)
    if len(values) * len(column) > _MAX_ENTRIES:
        raise FormatError(f"{name} has {len(values):,} different labels, too many for features.")
    found = torch.zeros(len(column), len(values))
    found[torch.arange(len(column)), torch.from_numpy(code.reshape(-1))] = 1.0
    return found


def _one_each(name: str, lines: int, count: int, what: str) -> None:
    if lines != count:
        raise FormatError(f"{name} has {lines} lines, but there are {count} {what}.")


def _edges(found: _Tables, graph_of_node: NDArray[np.int64]) -> Tensor:
    """All edges of the collection (2, E), nodes numbered through it, ordered by start."""
    ends = np.ascontiguousarray(found.take("A", columns=2).T)
    num_nodes = len(graph_of_node)
    name = found.name("A")
    if ends.size and not 1 <= ends.min() <= ends.max() <= num_nodes:
        side, line = np.argwhere((ends < 1) | (ends > num_nodes))[0]
        raise FormatError(
            f"{name}, line {line + 1} names node {ends[side, line]}, but graph_indicator has nodes "
            f"1 to {num_nodes}."
        )
    start, end = ends - 1
    across = graph_of_node[start] != graph_of_node[end]
    if across.any():
        line = int(across.argmax())
        raise FormatError(
            f"{name}, line {line + 1} joins nodes {start[line] + 1} and {end[line] + 1} of two "
            "different graphs."
        )
    return undirected(start, end, num_nodes)


def _divided(
    edges: Tensor, graph_of_node: NDArray[np.int64], x: Tensor | None, count: int
) -> tuple[Data, ...]:
    """One graph each, nodes numbered from 0 in each."""
    sizes = np.bincount(graph_of_node, minlength=count)
    first = np.concatenate([[0], np.cumsum(sizes)])
    # Edges are ordered by start: those of a graph lie together.
    cuts = torch.searchsorted(edges[0].contiguous(), torch.from_numpy(first)).tolist()
    graphs = []
    for k, size in enumerate(sizes.tolist()):
        inside = edges[:, cuts[k] : cuts[k + 1]] - int(first[k])
        features = None if x is None else x[first[k] : first[k + 1]].clone()
        graphs.append(Data(x=features, edge_index=inside, num_nodes=size))
    return tuple(graphs)
