"""What a model says: where it is wrong, and its predictions drawn on the graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nlsf.report.charts import BarChart, Chart, GraphDrawing, HeatMap, LineChart, Series
from nlsf.report.layout import Picture, picture_of, side_by_side
from nlsf.report.numbers import evenly_chosen, histogram, percent, plural
from nlsf.report.trained import TrainedRun

_TARGETS = 6
"""Targets of a regression that are shown."""

_NODES = 600
"""Nodes that a drawing has room for."""

_GRAPHS = 12
_SIGNALS = 6
_QUANTILES = 5


def error_charts(run: TrainedRun) -> list[Chart]:
    """What the model says of the test examples, against what is true."""
    output, y = run.test_output, run.test_labels
    if run.dataset.is_regression:
        return regression_charts(output, y)
    return confusion_charts(output.argmax(-1), y, run.dataset.classes)


def confusion(predicted: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """(C, C), int64: how many examples of each class (row) were given each class (column)."""
    cells = torch.bincount(y * num_classes + predicted, minlength=num_classes**2)
    return cells.reshape(num_classes, num_classes)


def confusion_charts(predicted: Tensor, y: Tensor, classes: Sequence[str]) -> list[Chart]:
    """The confusion matrix as shares of each class, and what of each class was found.

    Args:
        predicted: (n,), the class that the model names.
        y: (n,), the true one.
        classes: their names.
    """
    counts = confusion(predicted, y, len(classes))
    total, given, hits = counts.sum(1), counts.sum(0), counts.diagonal()
    shares = counts / total.clamp(min=1).unsqueeze(1)
    found = [float(share) if n else None for share, n in zip(shares.diagonal(), total, strict=True)]
    right = [int(hit) / int(n) if n else None for hit, n in zip(hits, given, strict=True)]
    empty = [None] * len(classes)
    return [
        HeatMap(
            "Confusion",
            "Each row is a true class, with the number of its test examples; the colours say which "
            "share of it was given which class. All would be right if only the diagonal had "
            "colour; a strong cell beside it is a pair of classes that the model mixes up.",
            "predicted class",
            "true class",
            list(classes),
            [f"{name} ({int(n):,})" for name, n in zip(classes, total, strict=True)],
            [row.tolist() if n else empty for row, n in zip(shares, total, strict=True)],
            kind="share",
        ),
        BarChart(
            "Class by class",
            "Found: the share of the examples of a class that were recognised. Right: the share of "
            "the examples given a class that belong to it. A rare class with low bars hides behind "
            "a good accuracy.",
            "class",
            "share",
            list(classes),
            [("found (recall)", found), ("right (precision)", right)],
            percent=True,
        ),
    ]


def regression_charts(output: Tensor, y: Tensor) -> list[Chart]:
    """Predicted against true numbers, and the distribution of the differences.

    Args:
        output: (n, T).
        y: (n, T).
    """
    charts: list[Chart] = []
    for target in range(min(y.shape[1], _TARGETS)):
        of = f" of target {target + 1}" if y.shape[1] > 1 else ""
        charts += _target_charts(output[:, target], y[:, target], of)
    return charts


def _target_charts(output: Tensor, y: Tensor, of: str) -> list[Chart]:
    chosen = torch.from_numpy(evenly_chosen(len(y)))
    ends = [float(y.min()), float(y.max())]
    cut = f" {len(chosen):,} of {len(y):,} are drawn." if len(chosen) < len(y) else ""
    edges, counts = histogram(output - y, bins=31)
    return [
        LineChart(
            f"Predicted and true values{of}",
            "Each point is a test example. On the line the prediction is exact; a cloud flatter "
            f"than the line means that the model pulls its predictions to the mean.{cut}",
            "true value",
            "predicted value",
            [
                Series("test examples", y[chosen].tolist(), output[chosen].tolist(), points=True),
                Series("exact", ends, ends),
            ],
        ),
        BarChart(
            f"Errors{of}",
            "How often the prediction is off by how much. The bars should stand around 0; if they "
            "lean to one side, the model is systematically too low or too high.",
            "predicted minus true (middle of the bin)",
            "test examples",
            [f"{(a + b) / 2:.3g}" for a, b in pairwise(edges)],
            [("test examples", counts)],
        ),
    ]


def graph_charts(run: TrainedRun) -> list[Chart]:
    """The drawing that fits the level of the data; none where every graph is too large."""
    draw = {"node": _node_drawing, "graph": _set_drawing, "signal": _signal_drawing}
    return draw[run.dataset.level](run)


def quantiles(values: Tensor, count: int = _QUANTILES) -> tuple[list[int], list[str]]:
    """The quantile of each number, and names of the quantiles with their ranges."""
    inner = torch.linspace(0, 1, count + 1, dtype=torch.float64)[1:-1]
    limits = torch.quantile(values.double(), inner).unique()
    number = torch.bucketize(values.double(), limits)
    names = []
    for j in range(len(limits) + 1):
        inside = values[number == j]
        low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 0.0)
        names.append(f"{low:.3g} to {high:.3g}" if low < high else f"{low:.3g}")
    return number.tolist(), names


def _node_drawing(run: TrainedRun) -> list[Chart]:
    """The graph, or the neighbourhood of a test node, with what is predicted of its nodes."""
    graph = run.dataset.graphs[0]
    picture = picture_of(graph, _NODES, _busiest(graph, run.split.test))
    nodes = torch.from_numpy(picture.nodes)
    part = [""] * run.dataset.num_examples
    for name, some in zip(("training ", "validation ", "test "), run.split.parts, strict=True):
        for i in some.tolist():
            part[i] = name
    texts = _verdicts(run, nodes, run.output[nodes])
    colours = "Colours are predicted classes; outlined nodes are wrong."
    if run.dataset.is_regression:
        colours = "Colours are fifths of the predicted values"
        colours += " of the first target." if run.dataset.num_outputs > 1 else "."
    return [
        GraphDrawing(
            "Predictions on the graph",
            f"{_extent(picture, graph)} {colours} Neighbours are placed near each other: regions "
            "of one colour are where the graph and the prediction agree.",
            *picture.drawn(),
            *_predicted(run, run.output[nodes]),
            [f"{part[i]}node {i}: {text}" for i, text in zip(nodes.tolist(), texts, strict=True)],
            _wrong(run, nodes, run.output[nodes]),
        )
    ]


def _set_drawing(run: TrainedRun) -> list[Chart]:
    """The first test graphs that fit, side by side."""
    chosen: list[int] = []
    total = 0
    for place, number in enumerate(run.predicted.tolist()):
        size = int(run.dataset.graphs[number].num_nodes or 0)
        if total + size <= _NODES and len(chosen) < _GRAPHS:
            chosen.append(place)
            total += size
    if not chosen:
        return []
    rows, output = run.predicted[chosen], run.output[chosen]
    pictures = [picture_of(run.dataset.graphs[i], _NODES) for i in rows.tolist()]
    colours, names = _predicted(run, output)
    verdicts, wrong = _verdicts(run, rows, output), _wrong(run, rows, output)
    texts = [f"graph {i}: {text}" for i, text in zip(rows.tolist(), verdicts, strict=True)]
    owner = [i for i, picture in enumerate(pictures) for _ in picture.nodes]
    caption = (
        "Colours are fifths of the predicted values."
        if run.dataset.is_regression
        else "Colours are predicted classes; the nodes of graphs with a wrong prediction are "
        "outlined."
    )
    return [
        GraphDrawing(
            "Predictions on test graphs",
            f"{plural(len(chosen), 'test graph')} of {len(run.predicted):,}, the first that fit. "
            + caption,
            *side_by_side(pictures).drawn(),
            [colours[i] for i in owner],
            names,
            [texts[i] for i in owner],
            [wrong[i] for i in owner],
        )
    ]


def _signal_drawing(run: TrainedRun) -> list[Chart]:
    """The first test signals on the one graph, side by side."""
    assert run.dataset.signals is not None
    graph = run.dataset.graphs[0]
    size = int(graph.num_nodes or 0)
    count = min(_SIGNALS, _NODES // max(size, 1), len(run.predicted))
    if count == 0:
        return []
    rows, output = run.predicted[:count], run.output[:count]
    strength = run.dataset.signals[rows].double()
    strength = strength[..., 0] if strength.shape[-1] == 1 else strength.norm(dim=-1)
    verdicts, wrong = _verdicts(run, rows, output), _wrong(run, rows, output)
    texts = [
        f"signal {number}: {verdict}; node {node}, value {value:.4g}"
        for number, verdict, values in zip(rows.tolist(), verdicts, strength.tolist(), strict=True)
        for node, value in enumerate(values)
    ]
    return [
        GraphDrawing(
            "Test signals on the graph",
            f"The first {plural(count, 'test signal')} of {len(run.predicted):,}. Colours are "
            "fifths of the values from low to high; signals with a wrong prediction are outlined. "
            "Point at a node to read the label and the prediction.",
            *side_by_side([picture_of(graph, _NODES)] * count).drawn(),
            *quantiles(strength.flatten()),
            texts,
            [bad for bad in wrong for _ in range(size)],
        )
    ]


def _busiest(graph: Data, test: Tensor) -> int:
    """The test node with most neighbours: something is to be seen around it."""
    degree = torch.bincount(graph.edge_index[0], minlength=int(graph.num_nodes or 0))
    return int(test[degree[test].argmax()]) if len(test) else int(degree.argmax())


def _predicted(run: TrainedRun, output: Tensor) -> tuple[list[int], list[str]]:
    """The colour of each example, its class or a fifth of the numbers, and names of the colours."""
    if run.dataset.is_regression:
        return quantiles(output[:, 0])
    return output.argmax(-1).tolist(), list(run.dataset.classes)


def _wrong(run: TrainedRun, rows: Tensor, output: Tensor) -> list[bool]:
    """Which of these examples have another label than their prediction."""
    if run.dataset.is_regression:
        return [False] * len(rows)
    truth = run.dataset.y[rows]
    wrong: list[bool] = ((output.argmax(-1) != truth) & (truth >= 0)).tolist()
    return wrong


def _verdicts(run: TrainedRun, rows: Tensor, output: Tensor) -> list[str]:
    """What is read out of these examples: what they are, and what the model says of them."""
    truth: Any = run.dataset.y[rows]
    if run.dataset.is_regression:
        pairs = zip(output[:, 0].tolist(), truth[:, 0].tolist(), strict=True)
        return [
            f"predicted {said:.4g}, " + ("true value not known" if t != t else f"true {t:.4g}")
            for said, t in pairs
        ]
    classes, sure = run.dataset.classes, output.softmax(-1).amax(-1).tolist()
    return [
        (f"label {classes[t]}" if t >= 0 else "label not known")
        + f", predicted {classes[said]} with probability {percent(share)}"
        for t, said, share in zip(truth.tolist(), output.argmax(-1).tolist(), sure, strict=True)
    ]


def _extent(picture: Picture, graph: Data) -> str:
    size, shown = int(graph.num_nodes or 0), len(picture.nodes)
    text = f"All {plural(size, 'node')}."
    if shown < size:
        text = (
            f"{shown:,} of {size:,} nodes: the neighbourhood of a test node with many neighbours."
        )
    if picture.edges.shape[1] < picture.all_edges:
        text += f" {picture.edges.shape[1]:,} of the {picture.all_edges:,} edges between them."
    return text
