"""The graph drawn with what the model says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from nlsf.report.charts import Chart, GraphDrawing
from nlsf.report.layout import induced, layout, sample
from nlsf.report.reduce import thinned
from nlsf.report.trained import TrainedRun
from nlsf.report.wording import percent, plural

_NODES = 600
_EDGES = 3_000
_GRAPHS = 12
_SIGNALS = 6
_QUANTILES = 5

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def graph_charts(run: TrainedRun) -> list[Chart]:
    """The drawing that fits the level of the data; none where every graph is too large."""
    if run.dataset.level == "node":
        return [_node_drawing(run)]
    if run.dataset.level == "signal":
        return _signal_drawing(run)
    return _set_drawing(run)


@dataclass(frozen=True, eq=False)
class _Picture:
    """Nodes and edges of a drawing.

    Attributes:
        nodes: which nodes of the graph, ascending.
        places: (n, 2).
        edges: (2, e), numbered within the picture.
        all_edges: how many there are between these nodes.
    """

    nodes: Ints
    places: Floats
    edges: Ints
    all_edges: int


def quantiles(values: Tensor, count: int = _QUANTILES) -> tuple[list[int], list[str]]:
    """The quantile of each number, and names of the quantiles with their ranges."""
    inner = torch.linspace(0, 1, count + 1, dtype=torch.float64)[1:-1]
    cuts = torch.quantile(values.double(), inner).unique()
    group = torch.bucketize(values.double(), cuts)
    names = []
    for j in range(len(cuts) + 1):
        inside = values[group == j]
        low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 0.0)
        names.append(f"{low:.3g} to {high:.3g}" if low < high else f"{low:.3g}")
    return group.tolist(), names


def _node_drawing(run: TrainedRun) -> GraphDrawing:
    graph = run.dataset.graphs[0]
    picture = _picture(graph, _start(graph, run.split.test))
    nodes = torch.from_numpy(picture.nodes)
    if run.dataset.is_regression:
        said = run.output[nodes][:, 0]
        group, groups = quantiles(said)
        truth = run.dataset.y[nodes][:, 0]
        texts = [
            f"node {i}: predicted {float(p):.4g}, "
            + ("true value not known" if t.isnan() else f"true {float(t):.4g}")
            for i, p, t in zip(nodes.tolist(), said, truth, strict=True)
        ]
        wrong = [False] * len(texts)
        colour = "Colours are fifths of the predicted values"
        colour += " of the first target." if run.dataset.num_outputs > 1 else "."
    else:
        classes = run.dataset.classes
        said = run.output[nodes].argmax(-1)
        sure = run.output[nodes].softmax(-1).amax(-1)
        truth = run.dataset.y[nodes]
        parts = _part_names(run)
        group, groups = said.tolist(), list(classes)
        texts = [
            f"{parts[i]}node {i}: {_verdict(classes, int(t), int(p), float(s))}"
            for i, p, s, t in zip(nodes.tolist(), said, sure, truth, strict=True)
        ]
        wrong = ((said != truth) & (truth >= 0)).tolist()
        colour = "Colours are predicted classes; outlined nodes are wrong."
    return GraphDrawing(
        "Predictions on the graph",
        f"{_extent(picture, graph)} {colour} Neighbours are placed near each other: regions of one "
        "colour are where the graph and the prediction agree.",
        _rounded(picture.places),
        _pairs(picture.edges),
        group,
        groups,
        texts,
        wrong,
    )


def _set_drawing(run: TrainedRun) -> list[Chart]:
    """Test graphs side by side."""
    chosen, total = [], 0
    for place, number in enumerate(run.rows.tolist()):
        size = int(run.dataset.graphs[number].num_nodes or 0)
        if total + size <= _NODES:
            chosen.append(place)
            total += size
        if len(chosen) == _GRAPHS:
            break
    if not chosen:
        return []
    pictures = [_picture(run.dataset.graphs[int(run.rows[i])]) for i in chosen]
    verdicts = [_example(run, i, "graph") for i in chosen]
    group, groups = _example_groups(run, chosen)
    sizes = [len(picture.nodes) for picture in pictures]
    places, edges = _side_by_side(pictures)
    caption = f"{plural(len(chosen), 'test graph')} of {len(run.rows):,}, the first that fit. " + (
        "Colours are fifths of the predicted values."
        if run.dataset.is_regression
        else "Colours are predicted classes; the nodes of graphs with a wrong prediction are "
        "outlined."
    )
    return [
        GraphDrawing(
            "Predictions on test graphs",
            caption,
            _rounded(places),
            _pairs(edges),
            [g for g, size in zip(group, sizes, strict=True) for _ in range(size)],
            groups,
            [text for (text, _), size in zip(verdicts, sizes, strict=True) for _ in range(size)],
            [bad for (_, bad), size in zip(verdicts, sizes, strict=True) for _ in range(size)],
        )
    ]


def _signal_drawing(run: TrainedRun) -> list[Chart]:
    """Test signals on the one graph, side by side."""
    assert run.dataset.signals is not None
    graph = run.dataset.graphs[0]
    size = int(graph.num_nodes or 0)
    count = min(_SIGNALS, _NODES // max(size, 1), len(run.rows))
    if count == 0:
        return []
    chosen = list(range(count))
    places, edges = _side_by_side([_picture(graph)] * count)
    strength = run.dataset.signals[run.rows[:count]].double()
    strength = strength[..., 0] if strength.shape[-1] == 1 else strength.norm(dim=-1)
    group, groups = quantiles(strength.flatten())
    verdicts = [_example(run, i, "signal") for i in chosen]
    values = strength.flatten().tolist()
    texts = [
        f"{verdicts[i // size][0]}; node {i % size}, value {value:.4g}"
        for i, value in enumerate(values)
    ]
    return [
        GraphDrawing(
            "Test signals on the graph",
            f"The first {plural(count, 'test signal')} of {len(run.rows):,}. Colours are fifths of "
            "the values from low to high; signals with a wrong prediction are outlined. Point at a "
            "node to read the label and the prediction.",
            _rounded(places),
            _pairs(edges),
            group,
            groups,
            texts,
            [verdicts[i // size][1] for i in range(len(values))],
        )
    ]


def _start(graph: Data, test: Tensor) -> int:
    """The test node with most neighbours: something is to be seen around it."""
    degree = torch.bincount(graph.edge_index[0], minlength=int(graph.num_nodes or 0))
    return int(test[degree[test].argmax()]) if len(test) else int(degree.argmax())


def _picture(graph: Data, start: int = 0) -> _Picture:
    size = int(graph.num_nodes or 0)
    edges = graph.edge_index.numpy()
    nodes = np.arange(size) if size <= _NODES else sample(edges, size, start, _NODES)
    inside = induced(edges, nodes, size)
    position = graph.get("pos")
    if position is not None and position.shape[-1] >= 2:
        places = position.numpy()[nodes, :2].astype(np.float64)
    else:
        places = layout(inside, len(nodes))
    shown = inside[:, thinned(inside.shape[1], limit=_EDGES)] if inside.shape[1] else inside
    return _Picture(nodes, places, shown, inside.shape[1])


def _side_by_side(pictures: Sequence[_Picture]) -> tuple[Floats, Ints]:
    """The pictures in a grid, three times as wide as high or less."""
    columns = max(1, round(np.sqrt(1.5 * len(pictures))))
    places, edges, first = [], [], 0
    for i, picture in enumerate(pictures):
        row, column = divmod(i, columns)
        places.append(picture.places * 0.8 + np.array([column, -row]))
        edges.append(picture.edges + first)
        first += len(picture.nodes)
    return np.concatenate(places), np.concatenate(edges, axis=1)


def _example(run: TrainedRun, place: int, what: str) -> tuple[str, bool]:
    """What is read out of a test graph or signal, and whether the prediction is wrong."""
    number, output = int(run.rows[place]), run.output[place]
    if run.dataset.is_regression:
        true, said = float(run.dataset.y[number, 0]), float(output[0])
        return f"{what} {number}: predicted {said:.4g}, true {true:.4g}", False
    truth, said_class = int(run.dataset.y[number]), int(output.argmax())
    sure = float(output.softmax(-1).amax())
    verdict = _verdict(run.dataset.classes, truth, said_class, sure)
    return f"{what} {number}: {verdict}", said_class != truth


def _example_groups(run: TrainedRun, chosen: list[int]) -> tuple[list[int], list[str]]:
    if run.dataset.is_regression:
        return quantiles(run.output[chosen][:, 0])
    return run.output[chosen].argmax(-1).tolist(), list(run.dataset.classes)


def _verdict(classes: Sequence[str], truth: int, said: int, sure: float) -> str:
    label = f"label {classes[truth]}" if truth >= 0 else "label not known"
    return f"{label}, predicted {classes[said]} with probability {percent(sure)}"


def _part_names(run: TrainedRun) -> list[str]:
    names = [""] * run.dataset.num_examples
    for name, part in zip(("training ", "validation ", "test "), run.split.parts, strict=True):
        for i in part.tolist():
            names[i] = name
    return names


def _extent(picture: _Picture, graph: Data) -> str:
    size, shown = int(graph.num_nodes or 0), len(picture.nodes)
    text = f"All {plural(size, 'node')}."
    if shown < size:
        text = (
            f"{shown:,} of {size:,} nodes: the neighbourhood of a test node with many neighbours."
        )
    if picture.edges.shape[1] < picture.all_edges:
        text += f" {picture.edges.shape[1]:,} of the {picture.all_edges:,} edges between them."
    return text


def _rounded(places: Floats) -> list[tuple[float, float]]:
    return [(round(float(x), 4), round(float(y), 4)) for x, y in places]


def _pairs(edges: Ints) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in edges.T]
