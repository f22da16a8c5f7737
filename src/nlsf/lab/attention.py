"""Laplacian attention leaves the branch of L as points become less uniform (Sec. 3.5, D.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nlsf.errors import ConfigError
from nlsf.lab.spaces import RATE, Operators, WaveReader, share_of_spread, squares, train
from nlsf.lab.study import Finding, Floats, Study, at_least, lines, remarks, setting
from nlsf.report.charts import Chart, DataTable, LineChart
from nlsf.report.numbers import percent

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
    alone = [f"{percent(first[i], 0)} and {percent(second[i], 0)}" for i in (0, -1)]
    conclusion = (
        f"Alpha, the weight of index on L, is {alpha[0]:.2f} for s = {low:g} and {alpha[-1]:.2f} "
        f"for s = {high:g}. The errors of L and N alone are {alone[0]} for the first s, and "
        f"{alone[1]} for the last. Together they have {percent(both[0], 0)} and "
        f"{percent(both[-1], 0)}."
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
    reader = WaveReader.of(seed, operators)
    sizes = (settings.smallest, settings.largest)
    # Graphs to fit the branches, others to fit the scores, and those of the measurement.
    fitted, scored, test = (
        reader.draw(s, settings.graphs, sizes, random, settings.signals) for _ in range(3)
    )
    reader.fit_branches(fitted, settings.steps)
    scores = reader.attention.scores
    with torch.no_grad():
        fixed = reader.outputs(scored)
    train(
        [scores],
        lambda: squares(_sum(reader, fixed), scored[1]),
        settings.steps,
        rate=5 * RATE,
    )
    with torch.no_grad():
        outputs = reader.outputs(test)
        together = _sum(reader, outputs)
        alpha, closed = float(scores.softmax(-1)[0]), best_alpha(*fixed, scored[1])

    joint = WaveReader.of(seed, operators)
    train(
        list(joint.attention.parameters()),
        lambda: squares(_sum(joint, joint.outputs(fitted)), fitted[1]),
        settings.steps,
    )
    with torch.no_grad():
        jointly = _sum(joint, joint.outputs(test))
    return {
        "alpha": alpha,
        "best_alpha": closed,
        "joint_alpha": float(joint.attention.scores.detach().softmax(-1)[0]),
        "first": share_of_spread(outputs[0], test[1]),
        "second": share_of_spread(outputs[1], test[1]),
        "both": share_of_spread(together, test[1]),
        "joint": share_of_spread(jointly, test[1]),
    }


def _sum(reader: WaveReader, outputs: Sequence[Tensor]) -> Tensor:
    """Both halves of the attention's output, added: no layer after it can undo alpha."""
    attention = reader.attention
    joined = attention.combine(attention.weights([]), outputs)
    half = joined.shape[-1] // 2
    return joined[..., :half] + joined[..., half:]


def _charts(
    settings: AttentionSettings, mean: Mapping[str, Floats], measured: Mapping[str, Floats]
) -> list[Chart]:
    s = settings.uneven
    every = [value for value in s for _ in range(settings.repeats)]
    spread = mean["joint_alpha"]
    columns = ("first", "second", "both", "joint")
    errors = ("Error L", "Error N", "Error of both", "Error, all at once")
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
                *lines(s, {"alpha, mean": mean["alpha"]}),
                *lines(every, {"each repetition": measured["alpha"].ravel()}, points=True),
                *lines(s, {"all trained at once": spread}, faint=True),
            ],
        ),
        LineChart(
            "Error of each branch, and of both",
            "Error on new graphs when the strength of waves with 1, 2 and 3 turns is read off a "
            "signal, in shares of what the best constant answer has. The more uneven the points, "
            "the harder; the two branches change places.",
            "non-uniformity s",
            "relative error",
            lines(
                s,
                {
                    "index on L": mean["first"],
                    "value on N": mean["second"],
                    "weighted by alpha": mean["both"],
                },
            ),
        ),
        DataTable(
            "All numbers",
            "Means over the repetitions. Alpha in closed form is the one of least squares on the "
            "graphs on which the scores were learned.",
            ["s", "Alpha", "In closed form", "All at once", *errors],
            [
                [
                    f"{s[i]:g}",
                    *(f"{mean[k][i]:.2f}" for k in ("alpha", "best_alpha", "joint_alpha")),
                    *(percent(mean[k][i], 0) for k in columns),
                ]
                for i in range(len(s))
            ],
        ),
        remarks(
            (
                "Attention weights balance each branch's contribution.",
                "Only if the branches cannot change their own scale. If all are trained together, "
                f"alpha stays between {spread.min():.2f} and {spread.max():.2f}, because the last "
                "layer of a branch can scale the branch as well as alpha can.",
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
