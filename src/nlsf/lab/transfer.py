"""Which coefficients transfer between random geometric graphs, and how fast (App. D.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nlsf.errors import ConfigError
from nlsf.lab.reading import (
    Operators,
    draw,
    fit_branches,
    make_model,
    outputs_of,
    relative_error,
)
from nlsf.lab.spaces import Space, circle, find_space
from nlsf.lab.study import Finding, Floats, Study, at_least, setting
from nlsf.lab.transfer_charts import charts_of
from nlsf.spectral import IndexBands, IntervalBands, analyze, laplacian, partial_eigh
from nlsf.spectral.projector import Projector

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
        f"N^{rates.min():.2f}. For uneven ones (s = {settings.uneven:g}) those of two graphs "
        f"approach each other, by value on N like N^{value.max():.2f} to N^{value.min():.2f}, by "
        f"index on L like N^{index.max():.2f} to N^{index.min():.2f}, but {_percent(min(left))} to "
        f"{_percent(max(left))} from the space remain at N = {settings.nodes[-1]}."
    )
    data = {"cases": cases, "moved": moved, "left": _left(settings)}
    return Finding(data, charts_of(settings.nodes, settings.uneven, data), conclusion, holds)


def coefficients(space: Space, points: Floats, signals: Floats, operators: Operators) -> Any:
    """Norms of signals (n, m) at points, by kind: single (J, m), index and value (S, m)."""
    graph = space.graph(points)
    x = torch.from_numpy(signals)
    J = sum(space.dimensions)
    intervals = IntervalBands(zip((0.0, *space.edges[:-1]), space.edges, strict=True))
    found = {}
    for kind, bands, operator in zip(
        ("single", "value"), (IndexBands(J), intervals), operators, strict=True
    ):
        spectrum = partial_eigh(laplacian(graph, normalization=operator), bands=bands)
        projector = Projector(spectrum, bands)
        found[kind] = analyze(x, projector, normalize=True).numpy()[: bands.n_bands]
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
                rows.setdefault(f"{kind}, pair", []).append(_relative(a, b))
                if kind != "single":
                    to_space = (_relative(a, truth) + _relative(b, truth)) / 2
                    rows.setdefault(f"{kind}, space", []).append(to_space)
        for key, values in rows.items():
            errors.setdefault(key, []).append(float(np.mean(values)))
    arrays = {key: np.array(values) for key, values in errors.items()}
    sizes = np.log(settings.nodes)
    rates = {key: float(np.polyfit(sizes, np.log(e), 1)[0]) for key, e in arrays.items()}
    return {"space": space.name, "s": s, "errors": arrays, "rates": rates}


def _moved(s: float, settings: TransferSettings, operators: Operators) -> dict[str, Any]:
    """Errors of filters that were trained on the smallest graphs, on new graphs of every size."""
    random = np.random.default_rng([settings.seed, 7])
    model = make_model(settings.seed, operators)
    small = settings.nodes[0]
    fitted = draw(model, operators, s, settings.graphs, (small, small), random)
    fit_branches(model, fitted, settings.steps)
    errors = []
    for n in settings.nodes:
        test = draw(model, operators, s, max(settings.graphs // 2, 2), (n, n), random)
        with torch.no_grad():
            errors.append([relative_error(y, test[1]) for y in outputs_of(model, test)])
    index, value = np.array(errors).T
    return {"s": s, "index": index, "value": value}


def _left(settings: TransferSettings) -> dict[str, Floats]:
    """How far the limit of N on a circle is from the space, for smaller and smaller balls."""
    radii = np.array([0.6, 0.3, 0.15])
    amounts = np.random.default_rng(settings.seed).standard_normal((7, 64))
    distances = [
        _relative(limit_of_values(space, settings.uneven, amounts), space.norms(amounts))
        for space in map(circle, radii)
    ]
    return {"radius": radii, "distance": np.array(distances)}


def _relative(found: Floats, expected: Floats) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


TRANSFER = Study(
    "transfer",
    "What transfers between graphs of a space",
    "On points of a space sampled uniformly, coefficients by index on L and by value on N approach "
    "those of the space as graphs grow; on points sampled otherwise, those by value on "
    "N still agree between graphs sampled alike (App. D.5; its text says more, see below).",
    TransferSettings,
    run,
)
