"""From arrays of unknown content to the checked tensors of a `Dataset`.

``source`` is the name of the file in messages, ``field`` that of the array in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Metric, Split, sparse_csr, undirected, undirected_weighted
from nlsf.errors import FormatError, GraphError

PARTS = ("train", "val", "test")


def pairs(source: str, field: str, array: NDArray[Any], num_nodes: int) -> NDArray[Any]:
    """Edges as (2, E) integers in [0, num_nodes), from (E, 2) or (2, E).

    An array of shape (2, 2) is read as (E, 2), unless the field is called ``edge_index``.
    """
    if array.ndim != 2 or 2 not in array.shape:
        raise FormatError(f"{source}: {field!r} has the shape {array.shape}; expected (E, 2).")
    by_rows = array.shape[1] == 2 and not (array.shape[0] == 2 and field == "edge_index")
    ends = np.ascontiguousarray(array.T if by_rows else array)
    if ends.size == 0:
        return ends.astype(np.int64)
    ends = integers(source, field, ends)
    bad = (ends < 0) | (ends >= num_nodes)
    if bad.any():
        edge = int(bad.any(axis=0).argmax())
        raise FormatError(
            f"{source}: edge {edge} of {field!r} joins {ends[0, edge]} and {ends[1, edge]}, but "
            f"nodes are numbered 0 to {num_nodes - 1}."
        )
    return ends


def integers(source: str, field: str, array: NDArray[Any]) -> NDArray[Any]:
    """The array as integers; floats are taken where they are whole (MATLAB has no others)."""
    if array.dtype.kind in "bu" and array.dtype.itemsize < 8:
        return array.astype(np.int64)
    if array.dtype.kind == "i":
        return array
    if array.dtype.kind in "uf":
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if (whole == array).all():
            return whole
    raise FormatError(f"{source}: {field!r} holds {array.dtype} values; expected whole numbers.")


def features(source: str, field: str, array: Any, num_nodes: int | None = None) -> Tensor:
    """Node features (N, F) in float32: dense from an array, ``torch.sparse_csr`` from SciPy's.

    A vector is one feature.
    """
    from scipy import sparse

    if sparse.issparse(array):
        array = array.tocsr()
        values = numbers(source, field, array.data)
    else:
        array = array[:, None] if array.ndim == 1 else array
        values = numbers(source, field, array)
    if array.ndim != 2:
        raise FormatError(f"{source}: {field!r} has the shape {array.shape}; expected (nodes, F).")
    if num_nodes is not None and array.shape[0] != num_nodes:
        raise FormatError(
            f"{source}: {field!r} has {array.shape[0]} rows; expected one for each of the "
            f"{num_nodes} nodes."
        )
    if not np.isfinite(values).all():
        place = int((~np.isfinite(values)).ravel().argmax())
        node, column, value = _entry(array, place)
        raise FormatError(
            f"{source}: feature {column} of node {node} in {field!r} is {value}; "
            "features must be finite in 32 bits."
        )
    return sparse_csr(array) if sparse.issparse(array) else torch.from_numpy(values)


def numbers(source: str, field: str, array: NDArray[Any]) -> NDArray[np.float32]:
    """The array in float32."""
    if array.dtype.kind not in "biuf":
        raise FormatError(f"{source}: {field!r} holds {array.dtype} values; expected numbers.")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def classes(
    source: str, field: str, array: NDArray[Any], num_examples: int
) -> tuple[Tensor, tuple[str, ...]]:
    """Labels (n,) and the names of the classes.

    Whole numbers count classes from 0, or from 1 where no label is 0; -1 is not known. Text names
    classes, which are sorted; empty text is not known.

    Raises:
        FormatError: the number of labels is wrong, one is negative or not below the number of
            examples, or the labels are -1 and 1.
    """
    array = array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
    if array.shape != (num_examples,):
        raise FormatError(
            f"{source}: {field!r} has the shape {array.shape}; expected ({num_examples},), one "
            "label each."
        )
    if array.dtype.kind == "U":
        names = np.unique(array[array != ""])
        found = np.where(array == "", -1, np.searchsorted(names, array))
        return torch.from_numpy(found.astype(np.int64)), tuple(str(name) for name in names)
    labels = integers(source, field, array).astype(np.int64)
    known = labels[labels >= 0]
    bad = (labels < -1) | (labels > num_examples)
    if bad.any():
        i = int(bad.argmax())
        raise FormatError(
            f"{source}: label {i} of {field!r} is {labels[i]}; classes are numbered from 0, and "
            "-1 is for labels that are not known."
        )
    if set(np.unique(labels)) == {-1, 1}:
        raise FormatError(
            f"{source}: the labels of {field!r} are -1 and 1, but -1 is for labels that are not "
            "known: number the classes 0 and 1."
        )
    first = 1 if known.size and known.min() == 1 else 0
    top = int(known.max()) + 1 if known.size else first
    moved = np.where(labels < 0, -1, labels - first)
    return torch.from_numpy(moved), tuple(str(k) for k in range(first, top))


def targets(source: str, field: str, array: NDArray[Any], num_examples: int) -> Tensor:
    """Targets (n, T) of a regression in float32; NaN is not known."""
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] != num_examples:
        raise FormatError(
            f"{source}: {field!r} has the shape {array.shape}; expected ({num_examples}, T), one "
            "row of targets each."
        )
    found = numbers(source, field, array)
    if np.isinf(found).any():
        place = int(np.isinf(found).any(axis=1).argmax())
        raise FormatError(f"{source}: target {place} of {field!r} is infinite.")
    return torch.from_numpy(found)


def labels_or_targets(
    source: str, field: str, array: NDArray[Any], num_examples: int
) -> tuple[Tensor, tuple[str, ...]]:
    """`classes` from whole numbers and text, `targets` (without classes) from floats."""
    if array.dtype.kind == "f":
        return targets(source, field, array, num_examples), ()
    return classes(source, field, array, num_examples)


def unknown(num_examples: int) -> tuple[Tensor, tuple[str, ...]]:
    """Labels (n,) of which none is known, of no classes."""
    return torch.full((num_examples,), -1, dtype=torch.int64), ()


def network(
    source: str,
    name: str,
    ends: NDArray[Any],
    x: Tensor | None,
    labels: tuple[Tensor, tuple[str, ...]],
    *,
    weight: NDArray[Any] | None = None,
    metric: Metric = "accuracy",
    given: Mapping[str, tuple[Split, ...]] | None = None,
) -> Dataset:
    """One graph with labelled nodes.

    Args:
        source: the file.
        name: of the data set.
        ends: (2, E), from `pairs`.
        x: (N, F), from `features`, or nothing.
        labels: labels or targets of the N nodes, with the names of the classes.
        weight: (E,), not yet checked.
        metric: for classes; a regression has ``"rmse"``.
        given: splits.
    """
    y, class_names = labels
    graph = graph_of(source, ends, x, len(y), weight)
    metric = "rmse" if y.is_floating_point() else metric
    return Dataset(name, "node", (graph,), y, class_names, metric=metric, given=given or {})


def graph_of(
    source: str,
    ends: NDArray[Any],
    x: Tensor | None,
    num_nodes: int,
    weight: NDArray[Any] | None = None,
) -> Data:
    """An undirected graph.

    Args:
        source: for messages.
        ends: (2, E), as in `undirected`.
        x: (N, F) or nothing.
        num_nodes: N.
        weight: (E,), not yet checked.

    Raises:
        FormatError: weights that are not positive numbers, one an edge; names the first.
    """
    graph = Data(x=x, num_nodes=num_nodes)
    if weight is None:
        graph.edge_index = undirected(ends[0], ends[1], num_nodes)
        return graph
    weight = weight.reshape(-1) if weight.ndim == 2 and 1 in weight.shape else weight
    if weight.shape != (ends.shape[1],) or weight.dtype.kind not in "biuf":
        raise FormatError(
            f"{source}: the weights have the shape {weight.shape} and the type {weight.dtype}; "
            f"expected one number for each of the {ends.shape[1]} edges."
        )
    with np.errstate(over="ignore", under="ignore"):
        rounded = weight.astype(np.float32)
    bad = ~(np.isfinite(rounded) & (rounded > 0))
    if bad.any():
        edge = int(bad.argmax())
        raise FormatError(
            f"{source}: the weight of edge {edge} is {weight[edge]}; weights must be positive and "
            "finite in 32 bits."
        )
    try:
        found = undirected_weighted(ends[0], ends[1], weight, num_nodes)
    except GraphError as error:
        raise FormatError(f"{source}: {error}; an undirected edge has one.") from error
    graph.edge_index, graph.edge_weight = found
    return graph


def splits(
    source: str, masks: Mapping[str, NDArray[Any]], y: Tensor, protocol: str
) -> tuple[Split, ...]:
    """Splits from masks.

    Args:
        source: the file.
        masks: by field, in the order train, val, test; each (n,), (K, n) or (n, K), boolean or of
            zeros and ones.
        y: labels or targets of the n examples, as in `Dataset`.
        protocol: the name of the splits.

    Raises:
        FormatError: masks differ in shape, overlap, are empty, or name an example without label.
    """
    known = (~y.isnan().any(-1) if y.is_floating_point() else y >= 0).numpy()
    rows = {field: _rows(source, field, mask, len(known)) for field, mask in masks.items()}
    if len({len(mask) for mask in rows.values()}) != 1:
        shapes = ", ".join(f"{field!r} {mask.shape}" for field, mask in rows.items())
        raise FormatError(f"{source}: the masks have different shapes: {shapes}.")
    together = sum(mask.astype(np.int8) for mask in rows.values())
    if (np.asarray(together) > 1).any():
        number, place = np.argwhere(np.asarray(together) > 1)[0]
        raise FormatError(
            f"{source}: the masks of split {number} overlap: node {place} is in two of them."
        )
    for field, mask in rows.items():
        if not mask.any(axis=1).all():
            empty = int((~mask.any(axis=1)).argmax())
            raise FormatError(f"{source}: {field!r} of split {empty} is empty.")
        if (mask & ~known).any():
            number, place = np.argwhere(mask & ~known)[0]
            raise FormatError(
                f"{source}: {field!r} of split {number} has node {place}, whose label is not known."
            )
    found = []
    for number, parts in enumerate(zip(*rows.values(), strict=True)):
        train, val, test = (torch.from_numpy(np.flatnonzero(part)) for part in parts)
        found.append(Split(train, val, test, protocol, number))
    return tuple(found)


def _rows(source: str, field: str, mask: NDArray[Any], num_examples: int) -> NDArray[np.bool_]:
    """A mask as (K, n)."""
    if mask.ndim == 1:
        mask = mask[None]
    elif mask.ndim == 2 and mask.shape[1] != num_examples:
        mask = mask.T
    if mask.ndim != 2 or mask.shape[1] != num_examples or mask.shape[0] == 0:
        raise FormatError(
            f"{source}: {field!r} has the shape {mask.shape}; expected (splits, {num_examples})."
        )
    if mask.dtype.kind != "b" and not np.isin(mask, (0, 1)).all():
        raise FormatError(f"{source}: {field!r} holds values other than true and false.")
    return np.asarray(mask, dtype=np.bool_)


def _entry(array: Any, place: int) -> tuple[int, int, Any]:
    """Node, feature and value of the stored entry at this place."""
    if isinstance(array, np.ndarray):
        node, column = divmod(place, array.shape[1])
        return node, column, array[node, column]
    node = int(np.searchsorted(array.indptr, place, side="right")) - 1
    return node, int(array.indices[place]), array.data[place]
