"""Laplacian attention leaves the branch of L as points become less uniform (Sec. 3.5, D.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from nlsf.errors import ConfigError
from nlsf.lab.spaces import Space, circle
from nlsf.lab.study import Finding, Floats, Study, at_least, remarks, setting
from nlsf.nn import GraphNLSF, LaplacianAttention
from nlsf.report.charts import Chart, DataTable, LineChart, Series
from nlsf.spectral import IndexBands, IntervalBands, laplacian, partial_eigh
from nlsf.spectral.shift import Normalization

Operators: TypeAlias = tuple[Normalization, Normalization]
"""Of the index branch and of the value branch: ``None`` is L, ``"sym"`` is N."""

Sample: TypeAlias = tuple[tuple[Tensor, Tensor], Tensor]
"""Norms of both branches, (M, B, 1) each, and targets (M, 3)."""

_HIDDEN = 32
_RATE = 1e-2
_FALL = 0.05
"""A fall of alpha by less is not counted; it varies so much between repetitions."""


@dataclass(frozen=True)
class AttentionSettings:
    """Settings of the study ``attention``."""

    uneven: tuple[float, ...] = setting((0.0, 0.4, 0.8), "s of the densities 1 + s cos(x - phi)")
    graphs: int = setting(30, "graphs to train on; as many for alpha, and as many to test")
    smallest: int = setting(80, "nodes of the smallest graph")
    largest: int = setting(160, "nodes of the largest graph")
    signals: int = setting(8, "signals on every graph")
    steps: int = setting(200, "steps of training")
    repeats: int = setting(2, "repetitions, with other graphs and other starts")
    seed: int = setting(0, "of the first repetition")

    def __post_init__(self) -> None:
        at_least(2, graphs=self.graphs, uneven=len(self.uneven))
        at_least(1, signals=self.signals, steps=self.steps, repeats=self.repeats)
        at_least(20, smallest=self.smallest)
        at_least(self.smallest, largest=self.largest)
        if list(self.uneven) != sorted(set(self.uneven)) or min(self.uneven) < 0:
            raise ConfigError("uneven must ascend from 0 or more.")
        if max(self.uneven) > 1:
            raise ConfigError("uneven must be at most 1: a density is not negative.")


def run(settings: AttentionSettings, operators: Operators = (None, "sym")) -> Finding:
    r"""Learns alpha on graphs of several non-uniformities.

    The task, at the level of graphs: from values of a signal at random points of a circle, the
    norms of its parts with 1, 2 and 3 turns, in :math:`L^2(dx)`. Both branches are trained to
    solve it alone; then the scores of the attention are learned on other graphs:

    .. math::
        y = \alpha \, \Phi_{ind}(L, x) + (1 - \alpha) \, \Phi_{val}(N, x)

    Apart from that, branches and scores are trained together from the start.

    Args:
        settings: of the study.
        operators: of the index branch and of the value branch.
    """
    rows = [
        [
            _repetition(settings, s, settings.seed + repeat, operators)
            for repeat in range(settings.repeats)
        ]
        for s in settings.uneven
    ]
    measured = {key: np.array([[case[key] for case in row] for row in rows]) for key in rows[0][0]}
    mean: dict[str, Floats] = {key: values.mean(1) for key, values in measured.items()}
    alpha, first, second, both = (mean[key] for key in ("alpha", "first", "second", "both"))
    holds = bool(
        alpha[0] - alpha[-1] > _FALL
        and first[0] < second[0]
        and second[-1] < first[-1]
        and (both < np.minimum(first, second)).all()
    )
    low, high = settings.uneven[0], settings.uneven[-1]
    conclusion = (
        f"Alpha, the weight of index on L, is {alpha[0]:.2f} for s = {low:g} and {alpha[-1]:.2f} "
        f"for s = {high:g}, where the errors of L and N alone are {_percent(first[0])} and "
        f"{_percent(second[0])}, then {_percent(first[-1])} and {_percent(second[-1])}; together "
        f"they have {_percent(both[0])} and {_percent(both[-1])}."
    )
    data = {"uneven": np.array(settings.uneven), **measured}
    return Finding(data, _charts(settings, mean, measured), conclusion, holds)


def best_alpha(first: Tensor, second: Tensor, target: Tensor) -> float:
    r"""Alpha of least squares, :math:`\langle y - b, a - b \rangle / \|a - b\|^2`, in [0, 1]."""
    difference = first - second
    found = ((target - second) * difference).sum() / difference.square().sum()
    return float(found.clamp(0, 1))


def _repetition(
    settings: AttentionSettings, s: float, seed: int, operators: Operators
) -> dict[str, float]:
    space = circle()
    random = np.random.default_rng([seed, round(1000 * s)])
    model = _model(space, seed, operators)
    train, held, test = (_sample(settings, space, s, random, model, operators) for _ in range(3))

    branches = [*model.first.parameters(), *model.second.parameters()]
    _train(
        branches,
        lambda: sum((_squares(y, train[1]) for y in _outputs(model, train)), torch.zeros(())),
        settings.steps,
    )
    with torch.no_grad():
        fixed = _outputs(model, held)
    _train(
        [model.scores],
        lambda: _squares(_sum(model, fixed), held[1]),
        settings.steps,
        rate=5 * _RATE,
    )
    with torch.no_grad():
        outputs = _outputs(model, test)
        together = _sum(model, outputs)
        alpha, closed = float(model.scores.softmax(-1)[0]), best_alpha(*fixed, held[1])

    joint = _model(space, seed, operators)
    _train(
        list(joint.parameters()),
        lambda: _squares(_sum(joint, _outputs(joint, train)), train[1]),
        settings.steps,
    )
    with torch.no_grad():
        jointly = _sum(joint, _outputs(joint, test))
    return {
        "alpha": alpha,
        "best_alpha": closed,
        "joint_alpha": float(joint.scores.detach().softmax(-1)[0]),
        "first": _error(outputs[0], test[1]),
        "second": _error(outputs[1], test[1]),
        "both": _error(together, test[1]),
        "joint": _error(jointly, test[1]),
    }


def _model(space: Space, seed: int, operators: Operators) -> LaplacianAttention:
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


def _sample(
    settings: AttentionSettings,
    space: Space,
    s: float,
    random: np.random.Generator,
    model: LaplacianAttention,
    operators: Operators,
) -> Sample:
    """Graphs of random sizes and random densest places, with random signals."""
    norms: tuple[list[Tensor], list[Tensor]] = ([], [])
    targets = []
    for _ in range(settings.graphs):
        n = int(random.integers(settings.smallest, settings.largest + 1))
        points = space.sample(n, s, random, turn=2 * math.pi * random.random())
        coefficients = random.standard_normal((sum(space.dimensions), settings.signals))
        x = torch.from_numpy((space.functions(points) @ coefficients).T[..., None])
        graph = space.graph(points)
        branches = (model.first, model.second)
        for branch, operator, found in zip(branches, operators, norms, strict=True):
            shift = laplacian(graph, normalization=operator)
            parts = branch.decompose(x, spectrum=partial_eigh(shift))
            found.append(branch.analyze(parts).float())
        targets.append(torch.from_numpy(space.norms(coefficients)[1:].T).float())
    return (torch.cat(norms[0]), torch.cat(norms[1])), torch.cat(targets)


def _outputs(model: LaplacianAttention, sample: Sample) -> tuple[Tensor, Tensor]:
    first, second = model.first, model.second
    assert isinstance(first, GraphNLSF)
    assert isinstance(second, GraphNLSF)
    return first.respond_norms(sample[0][0]), second.respond_norms(sample[0][1])


def _sum(model: LaplacianAttention, outputs: Sequence[Tensor]) -> Tensor:
    """Both halves of the attention's output, added: no layer after it can undo alpha."""
    joined = model.combine(model.weights([]), outputs)
    half = joined.shape[-1] // 2
    return joined[..., :half] + joined[..., half:]


def _train(
    parameters: Sequence[nn.Parameter], loss: Callable[[], Tensor], steps: int, rate: float = _RATE
) -> None:
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def _squares(found: Tensor, target: Tensor) -> Tensor:
    return (found - target).square().mean()


def _error(found: Tensor, target: Tensor) -> float:
    """Relative to the deviation of the targets from their mean: 1 for the best constant."""
    return float((_squares(found, target) / _squares(target.mean(0), target)).sqrt())


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _charts(
    settings: AttentionSettings, mean: Mapping[str, Floats], measured: Mapping[str, Floats]
) -> list[Chart]:
    s = list(settings.uneven)
    every = [value for value in s for _ in range(settings.repeats)]
    spread = mean["joint_alpha"]
    columns = ("first", "second", "both", "joint")
    return [
        LineChart(
            "The weight of the branch of L",
            "Points on a circle, joined when they are near; s says how unevenly they lie (0: alike "
            "everywhere; 1: nobody at one end). Alpha near 1 means that the answer comes from "
            "eigenvectors of L, counted; near 0, from those of N, sorted by eigenvalue. The pale "
            "line trains all at once.",
            "non-uniformity s",
            "alpha",
            [
                Series("alpha, mean", s, mean["alpha"].tolist()),
                Series("each repetition", every, measured["alpha"].ravel().tolist(), points=True),
                Series("all trained at once", s, spread.tolist(), faint=True),
            ],
        ),
        LineChart(
            "Error of each branch, and of both",
            "Error on new graphs when the strength of waves with 1, 2 and 3 turns is read off a "
            "signal, in shares of what the best constant answer has. The more uneven the points, "
            "the harder; the two branches change places.",
            "non-uniformity s",
            "relative error",
            [
                Series("index on L", s, mean["first"].tolist()),
                Series("value on N", s, mean["second"].tolist()),
                Series("weighted by alpha", s, mean["both"].tolist()),
            ],
        ),
        DataTable(
            "All numbers",
            "Means over the repetitions. Alpha in closed form is the one of least squares on the "
            "graphs on which the scores were learned.",
            [
                "s",
                "Alpha",
                "In closed form",
                "All at once",
                "Error L",
                "Error N",
                "Error of both",
                "Error, all at once",
            ],
            [
                [
                    f"{s[i]:g}",
                    *(f"{mean[k][i]:.2f}" for k in ("alpha", "best_alpha", "joint_alpha")),
                    *(_percent(mean[k][i]) for k in columns),
                ]
                for i in range(len(s))
            ],
        ),
        remarks(
            (
                "Attention weights balance each branch's contribution.",
                "Only if the branches cannot change their own scale. Trained together with them, "
                f"alpha stays between {spread.min():.2f} and {spread.max():.2f}: what the weight "
                "does not do, the last layer of a branch does.",
            ),
            (
                "If points are sampled uniformly, L with indices transfers; if not, N with values.",
                "Neither is exact for uneven points, see the study transfer. With even points both "
                "transfer, and L is ahead on small graphs, where an eigenvalue of N can fall into "
                "the wrong band.",
            ),
        ),
    ]


ATTENTION = Study(
    "attention",
    "Attention picks the right branch",
    "Between graphs sampled evenly, where index filters with L transfer, and graphs sampled "
    "unevenly, where value filters with N do, the attention's weight moves from the one to the "
    "other (Sec. 3.5 and App. D.5).",
    AttentionSettings,
    run,
)
