"""Data of the user's own: `open_dataset` from files, `from_pyg`, `from_networkx` from objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Metric
from nlsf.data.own.arrays import given_splits, open_mat, open_npz
from nlsf.data.own.csv_tables import open_csv
from nlsf.data.readers import checks
from nlsf.data.readers.tu import read_collection
from nlsf.errors import DataError, FormatError, NLSFError

_MASKS = tuple(f"{part}_mask" for part in checks.PARTS)


def from_pyg(data: Data | Sequence[Data], name: str = "data") -> Dataset:
    """A data set from PyTorch Geometric.

    Args:
        data: a ``Data`` (or a data set of one) with a label for each node: ``edge_index`` and,
            where there are any, ``x``, ``y``, ``edge_weight`` and masks (N,) or (N, K), which
            become the splits ``"given"``. Or a sequence of ``Data``, or a data set, with one label
            a graph. Integers are classes, -1 is not known; floats are a regression.
        name: of the data set.

    Raises:
        FormatError: an attribute is missing or does not fit; names it.
    """
    if isinstance(data, Data):
        return _of_nodes(data, name)
    graphs = [data[k] for k in range(len(data))]
    if not graphs or not all(isinstance(graph, Data) for graph in graphs):
        raise FormatError(f"{name} is not a Data nor a sequence of them.")
    if len(graphs) == 1 and _counts_nodes(graphs[0]):
        return _of_nodes(graphs[0], name)
    return _of_graphs(graphs, name)


def from_networkx(graph: Any, features: str = "x", label: str = "y", name: str = "data") -> Dataset:
    """A data set from one networkx graph; nodes in the order in which it lists them.

    Args:
        graph: of any kind; directions are dropped. The attribute ``weight`` of its edges is their
            weight, where all have one.
        features: the attribute of nodes with their features: a number, or as many for each.
        label: the attribute with their class (a whole number or text) or target (a float); nodes
            without one are not known.
        name: of the data set.

    Raises:
        FormatError: some nodes have features and some do not, or they do not fit; names the node.
    """
    nodes = list(graph.nodes)
    place = {node: k for k, node in enumerate(nodes)}
    edges = list(graph.edges(data="weight"))
    ends = np.array([(place[u], place[v]) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2).T
    weights = [weight for _, _, weight in edges]
    weighted = bool(weights) and all(weight is not None for weight in weights)
    x = _node_vectors(graph, nodes, features, name)
    labels = _node_labels(graph, nodes, label, name)
    weight = np.array(weights) if weighted else None
    return checks.network(name, name, ends, x, labels, weight=weight)


def _counts_nodes(data: Data) -> bool:
    y = data.y
    return isinstance(y, Tensor) and y.ndim > 0 and y.shape[0] == data.num_nodes


def _of_nodes(data: Data, name: str) -> Dataset:
    num_nodes = _num_nodes(data, name)
    y, classes = checks.unknown(num_nodes)
    if data.y is not None:
        y, classes = checks.labels_or_targets(name, "y", _array(data.y, name, "y"), num_nodes)
    there = {mask: _array(data[mask], name, mask) for mask in _MASKS if mask in data}
    return checks.network(
        name,
        name,
        _ends(data, num_nodes, name),
        _features(data, num_nodes, name),
        (y, classes),
        weight=_weight(data, name),
        given=given_splits(name, there, y),
    )


def _of_graphs(graphs: Sequence[Data], name: str) -> Dataset:
    made, labels = [], []
    for k, graph in enumerate(graphs):
        source = f"{name}, graph {k}"
        num_nodes = _num_nodes(graph, source)
        ends, x = _ends(graph, num_nodes, source), _features(graph, num_nodes, source)
        made.append(checks.graph_of(source, ends, x, num_nodes, _weight(graph, source)))
        labels.append(None if graph.y is None else _array(graph.y, source, "y").reshape(-1))
    widths = {None if graph.x is None else graph.x.shape[1] for graph in made}
    if len(widths) > 1:
        raise FormatError(f"{name}: the graphs have different numbers of features: {widths}.")
    weighted = ["edge_weight" in graph for graph in made]
    if any(weighted) and not all(weighted):
        raise FormatError(
            f"{name}: graph {weighted.index(False)} has no 'edge_weight', others have: give all "
            "of them weights, or none."
        )
    y, classes = _graph_labels(labels, name)
    metric: Metric = "rmse" if y.is_floating_point() else "accuracy"
    return Dataset(name, "graph", tuple(made), y, classes, metric=metric)


def _graph_labels(
    labels: Sequence[NDArray[Any] | None], name: str
) -> tuple[Tensor, tuple[str, ...]]:
    known = [label for label in labels if label is not None]
    if not known:
        return checks.unknown(len(labels))
    if len(known) != len(labels) or len({label.shape for label in known}) != 1:
        raise FormatError(f"{name}: each graph needs one 'y', of the same shape.")
    together = np.stack(known)
    if together.dtype.kind != "f" and together.shape[1] != 1:
        raise FormatError(f"{name}: 'y' of a graph has {together.shape[1]} classes; expected one.")
    return checks.labels_or_targets(name, "y", together, len(labels))


def _num_nodes(data: Data, source: str) -> int:
    if not isinstance(data.edge_index, Tensor):
        raise FormatError(f"{source} has no 'edge_index', a tensor (2, E).")
    if data.x is None and "num_nodes" not in data and not _has_node_labels(data):
        raise FormatError(f"{source} has neither 'x' nor 'num_nodes', so its size is not known.")
    return int(data.num_nodes or 0)


def _has_node_labels(data: Data) -> bool:
    return isinstance(data.y, Tensor) and data.y.ndim > 0 and data.y.shape[0] > 1


def _ends(data: Data, num_nodes: int, source: str) -> NDArray[Any]:
    ends = _array(data.edge_index, source, "edge_index")
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise FormatError(f"{source}: 'edge_index' has the shape {ends.shape}; expected (2, E).")
    return checks.pairs(source, "edge_index", ends, num_nodes)


def _features(data: Data, num_nodes: int, source: str) -> Tensor | None:
    if data.x is None:
        return None
    if isinstance(data.x, Tensor) and data.x.layout != torch.strided:
        from scipy import sparse

        x = data.x.detach().cpu().to_sparse_csr()
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return checks.features(source, "x", sparse.csr_array(parts, shape=x.shape), num_nodes)
    return checks.features(source, "x", _array(data.x, source, "x"), num_nodes)


def _weight(data: Data, source: str) -> NDArray[Any] | None:
    weight = data.edge_weight
    return None if weight is None else _array(weight, source, "edge_weight")


def _array(value: Any, source: str, field: str) -> NDArray[Any]:
    if not isinstance(value, Tensor):
        value = torch.as_tensor(value) if isinstance(value, int | float | list) else value
    if not isinstance(value, Tensor):
        raise FormatError(f"{source}: {field!r} is a {type(value).__name__}; expected a tensor.")
    value = value.detach().cpu()
    return np.array((value.float() if value.dtype == torch.bfloat16 else value).numpy())


def _node_vectors(graph: Any, nodes: list[Any], attribute: str, name: str) -> Tensor | None:
    values = [graph.nodes[node].get(attribute) for node in nodes]
    there = [value is not None for value in values]
    if not any(there):
        return None
    if not all(there):
        raise FormatError(f"{name}: node {nodes[there.index(False)]!r} has no {attribute!r}.")
    try:
        rows = [np.atleast_1d(np.asarray(value, dtype=np.float32)) for value in values]
    except (ValueError, TypeError) as error:
        raise FormatError(f"{name}: {attribute!r} of the nodes must be numbers.") from error
    for node, row in zip(nodes, rows, strict=True):
        if row.shape != rows[0].shape or row.ndim != 1:
            raise FormatError(
                f"{name}: {attribute!r} of node {node!r} has the shape {row.shape}; others have "
                f"{rows[0].shape}."
            )
    return checks.features(name, attribute, np.stack(rows))


def _node_labels(
    graph: Any, nodes: list[Any], attribute: str, name: str
) -> tuple[Tensor, tuple[str, ...]]:
    values = [graph.nodes[node].get(attribute) for node in nodes]
    known = [value for value in values if value is not None]
    if not known:
        return checks.unknown(len(nodes))
    if all(isinstance(value, str) for value in known):
        filled: list[Any] = ["" if value is None else value for value in values]
    elif all(isinstance(value, bool | int | np.integer) for value in known):
        filled = [-1 if value is None else int(value) for value in values]
    elif all(isinstance(value, int | float | np.number) for value in known):
        filled = [np.nan if value is None else float(value) for value in values]
    else:
        raise FormatError(f"{name}: {attribute!r} of the nodes must be all text or all numbers.")
    return checks.labels_or_targets(name, attribute, np.array(filled), len(nodes))


_READABLE = (
    "a .npz or .mat file of one graph, an edges.csv with a features.csv beside it (or the folder "
    "of both), and a .zip or folder in the TUDataset layout (NAME_A.txt, ...)"
)


def open_dataset(
    path: str | os.PathLike[str], *, features: str | os.PathLike[str] | None = None
) -> Dataset:
    """A data set from a file or folder; what it is, its name says.

    - ``.npz``: see `open_npz`; ``.mat``: see `open_mat`.
    - ``.csv``, or a folder with ``edges.csv`` and ``features.csv``: see `open_csv`.
    - ``.zip``, or a folder with ``NAME_A.txt``: many graphs; see `nlsf.data.readers.tu`.

    Edges are made undirected: self loops are dropped, doubles merged. A file without labels gives
    labels that are all -1: it can be predicted on, not trained on.

    Args:
        path: the file or folder.
        features: the table of nodes, where it is not beside the ``.csv`` file of edges.

    Raises:
        DataError: there is no such file, or it may not be read.
        FormatError: it does not hold what it should; names the line or field.
    """
    path = Path(path)
    try:
        reader = _reader(path)
        if reader is open_csv:
            return open_csv(path, features=None if features is None else Path(features))
        if features is not None:
            raise FormatError(f"{path} has its own features: leave out {features}.")
        return reader(path)
    except NLSFError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def _reader(path: Path) -> Callable[[Path], Dataset]:
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    if path.is_dir():
        # Not glob, which takes a folder that may not be read for an empty one.
        names = {entry.name for entry in path.iterdir()}
        if "edges.csv" in names:
            return open_csv
        if any(name.endswith("_A.txt") for name in names):
            return read_collection
    elif (suffix := path.suffix.lower()) in _READERS:
        return _READERS[suffix]
    raise FormatError(f"{path} is not of a kind that can be read, which are {_READABLE}.")


_READERS: dict[str, Callable[[Path], Dataset]] = {
    ".npz": open_npz,
    ".mat": open_mat,
    ".csv": open_csv,
    ".zip": read_collection,
}
