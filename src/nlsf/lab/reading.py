"""Reading the strength of waves off signals on random circles, the task of two studies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from nlsf.lab.spaces import circle
from nlsf.nn import GraphNLSF, LaplacianAttention
from nlsf.spectral import IndexBands, IntervalBands, laplacian, partial_eigh
from nlsf.spectral.operators.shift import Normalization

Operators: TypeAlias = tuple[Normalization, Normalization]
"""Of the index branch and of the value branch: ``None`` is L, ``"sym"`` is N."""

Sample: TypeAlias = tuple[tuple[Tensor, Tensor], Tensor]
"""Norms of both branches, (M, B, 1) each, and targets (M, 3)."""

RATE = 1e-2
"""Of learning."""

_HIDDEN = 32


def make_model(seed: int, operators: Operators) -> LaplacianAttention:
    """A branch with indices and a branch with values, of one output for each norm but the mean."""
    space = circle()
    targets = len(space.dimensions) - 1
    intervals = zip((0.0, *space.edges[:-1]), space.edges, strict=True)
    options: dict[str, Any] = {"normalize": True, "hidden": _HIDDEN}
    index, value = operators
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        bands = IndexBands(sum(space.dimensions))
        first = GraphNLSF(1, targets, bands, normalization=index, **options)
        bands_of_values = IntervalBands(intervals)
        second = GraphNLSF(1, targets, bands_of_values, normalization=value, **options)
        return LaplacianAttention(first, second)


def draw(
    model: LaplacianAttention,
    operators: Operators,
    s: float,
    graphs: int,
    nodes: tuple[int, int],
    random: np.random.Generator,
    signals: int = 8,
) -> Sample:
    """Graphs with random densest places and random signals.

    Args:
        model: of `make_model`, whose bands are used.
        operators: of its branches.
        s: non-uniformity of the points.
        graphs: how many.
        nodes: of the smallest and of the largest graph.
        random: source of randomness.
        signals: on every graph.
    """
    space = circle()
    norms: tuple[list[Tensor], list[Tensor]] = ([], [])
    targets = []
    branches = _branches(model)
    for _ in range(graphs):
        n = int(random.integers(nodes[0], nodes[1] + 1))
        points = space.sample(n, s, random, turn=2 * math.pi * random.random())
        coefficients = random.standard_normal((sum(space.dimensions), signals))
        x = torch.from_numpy((space.functions(points) @ coefficients).T[..., None])
        graph = space.graph(points)
        for branch, operator, found in zip(branches, operators, norms, strict=True):
            shift = laplacian(graph, normalization=operator)
            parts = branch.decompose(x, spectrum=partial_eigh(shift, bands=branch.bands))
            found.append(branch.analyze(parts).float())
        targets.append(torch.from_numpy(space.norms(coefficients)[1:].T).float())
    return (torch.cat(norms[0]), torch.cat(norms[1])), torch.cat(targets)


def outputs_of(model: LaplacianAttention, sample: Sample) -> tuple[Tensor, Tensor]:
    """What each branch says alone, (M, 3)."""
    first, second = _branches(model)
    return first.respond_norms(sample[0][0]), second.respond_norms(sample[0][1])


def fit_branches(model: LaplacianAttention, sample: Sample, steps: int) -> None:
    """Trains both branches, each to solve the task alone."""
    train(
        [*model.first.parameters(), *model.second.parameters()],
        lambda: sum((squares(y, sample[1]) for y in outputs_of(model, sample)), torch.zeros(())),
        steps,
    )


def train(
    parameters: Sequence[nn.Parameter], loss: Callable[[], Tensor], steps: int, rate: float = RATE
) -> None:
    """Steps of Adam on a loss."""
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def squares(found: Tensor, target: Tensor) -> Tensor:
    """The mean of squared differences."""
    return (found - target).square().mean()


def relative_error(found: Tensor, target: Tensor) -> float:
    """Relative to the deviation of the targets from their mean: 1 for the best constant."""
    return float((squares(found, target) / squares(target.mean(0), target)).sqrt())


def _branches(model: LaplacianAttention) -> tuple[GraphNLSF, GraphNLSF]:
    first, second = model.first, model.second
    assert isinstance(first, GraphNLSF)
    assert isinstance(second, GraphNLSF)
    return first, second
