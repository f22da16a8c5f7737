"""Laplacian attention leaves the branch of L as points become less uniform (Sec. 3.5, D.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nlsf.errors import ConfigError
from nlsf.lab.reading import (
    RATE,
    Operators,
    draw,
    fit_branches,
    make_model,
    outputs_of,
    relative_error,
    squares,
    train,
)
from nlsf.lab.study import Finding, Floats, Study, at_least, remarks, setting
from nlsf.nn import LaplacianAttention
from nlsf.report.charts import Chart, DataTable, LineChart, Series

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
    random = np.random.default_rng([seed, round(1000 * s)])
    model = make_model(seed, operators)
    sizes = (settings.smallest, settings.largest)
    fitted, held, test = (
        draw(model, operators, s, settings.graphs, sizes, random, settings.signals)
        for _ in range(3)
    )
    fit_branches(model, fitted, settings.steps)
    with torch.no_grad():
        fixed = outputs_of(model, held)
    train(
        [model.scores],
        lambda: squares(_sum(model, fixed), held[1]),
        settings.steps,
        rate=5 * RATE,
    )
    with torch.no_grad():
        outputs = outputs_of(model, test)
        together = _sum(model, outputs)
        alpha, closed = float(model.scores.softmax(-1)[0]), best_alpha(*fixed, held[1])

    joint = make_model(seed, operators)
    train(
        list(joint.parameters()),
        lambda: squares(_sum(joint, outputs_of(joint, fitted)), fitted[1]),
        settings.steps,
    )
    with torch.no_grad():
        jointly = _sum(joint, outputs_of(joint, test))
    return {
        "alpha": alpha,
        "best_alpha": closed,
        "joint_alpha": float(joint.scores.detach().softmax(-1)[0]),
        "first": relative_error(outputs[0], test[1]),
        "second": relative_error(outputs[1], test[1]),
        "both": relative_error(together, test[1]),
        "joint": relative_error(jointly, test[1]),
    }


def _sum(model: LaplacianAttention, outputs: Sequence[Tensor]) -> Tensor:
    """Both halves of the attention's output, added: no layer after it can undo alpha."""
    joined = model.combine(model.weights([]), outputs)
    half = joined.shape[-1] // 2
    return joined[..., :half] + joined[..., half:]


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
                "does not do, the last layer of a branch can.",
            ),
            (
                "If points are sampled uniformly, L with indices transfers; if not, N with values.",
                "With even points both transfer, and with uneven ones neither is exact: see the "
                "study transfer. So alpha does not go to 0 or 1, and both together are best.",
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
