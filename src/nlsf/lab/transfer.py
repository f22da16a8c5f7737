"""Which coefficients transfer between random geometric graphs, and how fast (App. D.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nlsf.errors import ConfigError
from nlsf.lab.spaces import Operators, Space, WaveReader, circle, find_space, share_of_spread
from nlsf.lab.study import (
    Finding,
    Floats,
    Study,
    at_least,
    fitted_power,
    lines,
    relative_error,
    remarks,
    setting,
)
from nlsf.report.charts import Chart, DataTable, LineChart
from nlsf.report.numbers import percent
from nlsf.spectral import Lens, laplacian, partial_eigh

_KINDS = ("single", "index", "value")
_EVEN = (-1.0, -0.35)
"""Fitted powers of N between these count as N^(-1/2), with few small graphs."""
_FALLS = -0.2
"""Errors with a smaller power than this fall with N, those with a larger one do not."""


@dataclass(frozen=True)
class TransferSettings:
    """Settings of the study ``transfer``."""

    spaces: tuple[str, ...] = setting(("circle", "torus", "sphere"), "where the points lie")
    nodes: tuple[int, ...] = setting((100, 200, 400, 800), "sizes N of the graphs, ascending")
    uneven: float = setting(0.6, "s of the uneven density 1 + s t, t a cosine or a height")
    draws: int = setting(2, "pairs of graphs of every size")
    signals: int = setting(16, "signals on every pair")
    graphs: int = setting(20, "graphs of the smallest size that a filter is trained on")
    steps: int = setting(200, "steps of training")
    seed: int = setting(0, "of points, signals and starts")

    def __post_init__(self) -> None:
        at_least(1, draws=self.draws, signals=self.signals, steps=self.steps)
        at_least(2, nodes=len(self.nodes), graphs=self.graphs)
        at_least(40, nodes=min(self.nodes))
        at_least(0.1, uneven=self.uneven)
        if list(self.nodes) != sorted(set(self.nodes)):
            raise ConfigError("nodes must ascend: rates are fitted to them.")
        if self.uneven > 1:
            raise ConfigError("uneven must be at most 1: a density is not negative.")
        for name in self.spaces:
            find_space(name)


def run(settings: TransferSettings, operators: Operators = (None, "sym")) -> Finding:
    """Compares coefficients of graphs with those of the space, and of graphs with each other.

    Three kinds of coefficients. *Single*: the norms in the leading eigenvectors of L, one by one.
    *Index*: these summed over as many as an eigenspace of the space has. *Value*: the norms in
    bands of N between the eigenvalues of the space.

    Args:
        settings: of the study.
        operators: of the coefficients by index and of those by value.
    """
    cases = [
        _case(find_space(name), s, settings, operators)
        for name in settings.spaces
        for s in (0.0, settings.uneven)
    ]
    moved = [_moved(s, settings, operators) for s in (0.0, settings.uneven)]
    even, uneven = cases[::2], cases[1::2]
    rates = np.array([case["rates"][f"{kind}, space"] for case in even for kind in _KINDS[1:]])
    index, value = (
        np.array([case["rates"][f"{kind}, pair"] for case in uneven]) for kind in _KINDS[1:]
    )
    single = [case["errors"]["single, pair"][-1] for case in even]
    left = [case["errors"][f"{kind}, space"][-1] for case in uneven for kind in _KINDS[1:]]
    growth = max(float(moved[0][kind][-1] / moved[0][kind][0]) for kind in _KINDS[1:])
    holds = bool(
        (rates > _EVEN[0]).all()
        and (rates < _EVEN[1]).all()
        and (value < _FALLS).all()
        and min(single) > 0.2
        and growth < 1.25
    )
    conclusion = (
        f"For even points the coefficients approach those of the space like N^{rates.max():.2f} to "
        f"N^{rates.min():.2f}. For uneven ones (s = {settings.uneven:g}) two graphs approach each "
        f"other, by value on N like N^{value.max():.2f} to N^{value.min():.2f} and by index on L "
        f"like N^{index.max():.2f} to N^{index.min():.2f}. But at N = {settings.nodes[-1]} they "
        f"are still {percent(min(left), 0)} to {percent(max(left), 0)} from the space."
    )
    data = {"cases": cases, "moved": moved, "left": _left(settings)}
    return Finding(data, _charts(settings.nodes, settings.uneven, data), conclusion, holds)


def coefficients(space: Space, points: Floats, signals: Floats, operators: Operators) -> Any:
    """Norms of signals (n, m) at points, by kind: single (J, m), index and value (S, m)."""
    graph = space.graph(points)
    x = torch.from_numpy(signals)
    found = {}
    for kind, bands, operator in zip(
        ("single", "value"), (space.indices, space.intervals), operators, strict=True
    ):
        spectrum = partial_eigh(laplacian(graph, normalization=operator), bands=bands)
        lens = Lens.of(spectrum, bands)
        found[kind] = lens(x).norms(normalize=True).numpy()[: bands.n_bands]
    found["index"] = space.norms(found["single"])
    return found


def limit_of_values(space: Space, s: float, amounts: Floats, size: int = 720) -> Floats:
    r"""The value coefficients (S, m) that those of N tend to on a circle, by quadrature.

    With :math:`w = 1 + s \cos x` the degree of x is :math:`d(x) = \int_{B_r(x)} w(y) dy`, and N
    tends to :math:`f - \int_{B_r(x)} f(y) \, w(y) / \sqrt{d(x) d(y)} \, dy` on
    :math:`L^2(w \, dx)`, not to the Laplacian on :math:`L^2(dx)`.

    Args:
        space: a circle.
        s: non-uniformity.
        amounts: (J, m), of the eigenfunctions of the space in each signal.
        size: points of the quadrature.
    """
    x = 2 * math.pi * np.arange(size) / size
    w = (1 + s * np.cos(x)) / size
    apart = np.abs(x[:, None] - x)
    near = np.minimum(apart, 2 * math.pi - apart) <= space.radius
    degree = near @ w
    root = np.sqrt(w)
    matrix = np.eye(size) - near * (root[:, None] * root) / np.sqrt(degree[:, None] * degree)
    values, vectors = np.linalg.eigh(matrix)
    parts = vectors.T @ (root[:, None] * (space.functions(x[:, None]) @ amounts))
    band = np.searchsorted(space.edges, values)
    return np.array([np.linalg.norm(parts[band == j], axis=0) for j in range(len(space.edges))])


def _case(
    space: Space, s: float, settings: TransferSettings, operators: Operators
) -> dict[str, Any]:
    """Errors by kind: to the space, and between two graphs of one density; by size."""
    errors: dict[str, list[float]] = {}
    for n in settings.nodes:
        random = np.random.default_rng([settings.seed, n])
        rows: dict[str, list[float]] = {}
        for _ in range(settings.draws):
            amounts = random.standard_normal((sum(space.dimensions), settings.signals))
            truth = space.norms(amounts)
            pair = []
            for _ in range(2):
                points = space.sample(n, s, random)
                signals = space.functions(points) @ amounts
                pair.append(coefficients(space, points, signals, operators))
            for kind in _KINDS:
                a, b = (found[kind] for found in pair)
                rows.setdefault(f"{kind}, pair", []).append(relative_error(a, b))
                if kind != "single":
                    to_space = (relative_error(a, truth) + relative_error(b, truth)) / 2
                    rows.setdefault(f"{kind}, space", []).append(to_space)
        for key, values in rows.items():
            errors.setdefault(key, []).append(float(np.mean(values)))
    arrays = {key: np.array(values) for key, values in errors.items()}
    rates = {key: fitted_power(settings.nodes, e) for key, e in arrays.items()}
    return {"space": space.name, "s": s, "errors": arrays, "rates": rates}


def _moved(s: float, settings: TransferSettings, operators: Operators) -> dict[str, Any]:
    """Errors of filters that were trained on the smallest graphs, on new graphs of every size."""
    random = np.random.default_rng([settings.seed, 7])
    reader = WaveReader.of(settings.seed, operators)
    small = settings.nodes[0]
    reader.fit_branches(reader.draw(s, settings.graphs, (small, small), random), settings.steps)
    errors = []
    for n in settings.nodes:
        test = reader.draw(s, max(settings.graphs // 2, 2), (n, n), random)
        with torch.no_grad():
            errors.append([share_of_spread(y, test[1]) for y in reader.outputs(test)])
    index, value = np.array(errors).T
    return {"s": s, "index": index, "value": value}


def _left(settings: TransferSettings) -> dict[str, Floats]:
    """How far the limit of N on a circle is from the space, for smaller and smaller balls."""
    radii = np.array([0.6, 0.3, 0.15])
    amounts = np.random.default_rng(settings.seed).standard_normal((7, 64))
    distances = [
        relative_error(limit_of_values(space, settings.uneven, amounts), space.norms(amounts))
        for space in map(circle, radii)
    ]
    return {"radius": radii, "distance": np.array(distances)}


def _charts(nodes: Sequence[int], uneven: float, data: Mapping[str, Any]) -> list[Chart]:
    """Errors by size on the first space, a filter that was moved, all errors, and remarks."""
    names = {
        "index, space": "index on L, to the space",
        "value, space": "value on N, to the space",
        "index, pair": "index on L, two graphs",
        "value, pair": "value on N, two graphs",
        "single, pair": "one by one, two graphs",
    }
    shown = {**names, "single, pair": "eigenvectors one by one, two graphs"}
    charts: list[Chart] = []
    for case in data["cases"][:2]:
        how = f"unevenly, s = {case['s']:g}" if case["s"] else "evenly"
        charts.append(
            LineChart(
                f"Points on a {case['space']}, {how}",
                "Points are drawn at random and joined when they are near. How much of a signal "
                "lies in each frequency is measured on the graph and compared with the truth about "
                "the space, and between two graphs drawn alike. A line that falls means that "
                "larger graphs agree better.",
                "nodes N",
                "relative error",
                lines(nodes, {name: case["errors"][key] for key, name in shown.items()}),
                log_x=True,
                log_y=True,
            )
        )
    even, other = data["moved"]
    charts.append(
        LineChart(
            "A filter trained on small graphs, on larger ones",
            f"Filters learned on circles of {nodes[0]} nodes to read the strength of waves with 1, "
            "2 and 3 turns off a signal, tried on new graphs of other sizes; 1 is the error of the "
            "best constant answer.",
            "nodes N",
            "relative error",
            lines(
                nodes,
                {
                    "index on L, even": even["index"],
                    "value on N, even": even["value"],
                    "index on L, uneven": other["index"],
                    "value on N, uneven": other["value"],
                },
            ),
            log_x=True,
        )
    )
    rows = [
        [
            case["space"],
            f"{case['s']:g}",
            name,
            *(percent(e, 0) for e in case["errors"][key]),
            f"{case['rates'][key]:.2f}",
        ]
        for case in data["cases"]
        for key, name in names.items()
    ]
    charts.append(
        DataTable(
            "All errors",
            "Relative errors by the number of nodes, and the power of N that fits them best; "
            "averages over random draws give -0.5.",
            ["Space", "s", "Coefficients", *(f"N = {n}" for n in nodes), "Power"],
            rows,
        )
    )
    return [*charts, _remarks(uneven, data)]


def _remarks(s: float, data: Mapping[str, Any]) -> Chart:
    left, case = data["left"]["distance"], data["cases"][1]
    return remarks(
        (
            "For points that are not uniform, N tends to the Laplacian of the space if balls have "
            "equal volumes.",
            "The integral over a ball of (f(x) - f(y)) w(y) is to leading order -c (w f'' + 2 w' "
            "f'), and the second term does not vanish with the radius: N tends to a Laplacian with "
            f"drift. By quadrature on a circle with s = {s:g}, what it measures is "
            f"{', '.join(percent(d, 0) for d in left)} away from the space for r = 0.6, 0.3, 0.15.",
        ),
        (
            "L with indices transfers if points are uniform.",
            "Between graphs of one uneven density it does so as well where the spectrum of L is "
            f"discrete, below the least degree: N V min(w), here {1 - s:.2g} N V. The third "
            "frequency of the circle has 0.46 N V. Powers of N between graphs on the "
            f"{case['space']}, from few draws: {case['rates']['index, pair']:.2f} with L and "
            f"{case['rates']['value, pair']:.2f} with N, whose limit is 1 for every density.",
        ),
        (
            "The norms in the j-th eigenvectors of two graphs agree.",
            "The proof supposes a gap between all eigenvalues. Circle, torus and sphere have "
            "repeated ones, whose eigenvectors a random graph mixes at will; the sum over an "
            "eigenspace transfers.",
        ),
        (
            "The differences of norms are O(J^(-1/2)).",
            "They do not fall with the number J of eigenvectors but with the number N of nodes: "
            "O(N^(-1/2)).",
        ),
    )


TRANSFER = Study(
    "transfer",
    "What transfers between graphs of a space",
    "On points of a space sampled uniformly, coefficients by index on L and by value on N approach "
    "those of the space as graphs grow; on points sampled otherwise, those by value on "
    "N still agree between graphs sampled alike (App. D.5; its text says more, see below).",
    TransferSettings,
    run,
)
