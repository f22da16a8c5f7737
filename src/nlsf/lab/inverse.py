"""Diagonal synthesis can be inverted, and how stably is known in advance (App. D.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nlsf.data.generators import block_model, random_geometric, torus
from nlsf.errors import ConfigError
from nlsf.lab.study import Finding, Floats, Study, at_least, lines, remarks, setting
from nlsf.report.charts import Chart, LineChart, Series
from nlsf.report.numbers import percent
from nlsf.spectral import (
    Bands,
    DyadicBands,
    IndexBands,
    Lens,
    UniformBands,
    laplacian,
    partial_eigh,
)

Synthesis: TypeAlias = Callable[[Tensor, Tensor, Lens, float, float], Tensor]

_EXACT = 1e-9


@dataclass(frozen=True)
class InverseSettings:
    """Settings of the study ``inverse``."""

    num_nodes: int = setting(64, "nodes of each graph, about")
    exponents: tuple[float, ...] = setting((0.0, 0.5, 1.0), "the exponents a, 0 to 1")
    eps: tuple[float, ...] = setting((1e-1, 1e-2, 1e-4, 1e-6, 1e-8), "the e of the denominator")
    signals: int = setting(3, "random signals on each graph")
    seed: int = setting(0, "of graphs and signals")

    def __post_init__(self) -> None:
        at_least(9, num_nodes=self.num_nodes)
        at_least(1, signals=self.signals)
        if not self.exponents or not all(0 <= a <= 1 for a in self.exponents):
            raise ConfigError("exponents must be numbers between 0 and 1, at least one.")
        if not self.eps or not all(e > 0 for e in self.eps):
            raise ConfigError("eps must be positive numbers, at least one.")


def diagonal_synthesis(r: Tensor, x: Tensor, lens: Lens, a: float, e: float) -> Tensor:
    """The library's synthesis (App. C.1): coefficients (B, 1) to a signal (N, 1)."""
    return lens(x).synthesize(r, a=a, eps=e)


def run(settings: InverseSettings, synthesis: Synthesis = diagonal_synthesis) -> Finding:
    r"""Compares the singular values of synthesis as a matrix H (N, B) with the formula.

    .. math::
        \sigma_j = \frac{\|g_j(\Delta) X\|_2}{\|g_j(\Delta) X\|_2^a + e}

    Args:
        settings: of the study.
        synthesis: of coefficients r with the bands of a signal x; claimed to be linear in r, with
            these singular values.
    """
    found: list[dict[str, Any]] = []
    for lens, x in _cases(settings):
        norms = lens(x).norms()[:, 0].numpy()
        full = norms > _EXACT * norms.max()  # the claim is about bands in which the signal lives
        for a in settings.exponents:
            for e in settings.eps:
                H = _matrix(synthesis, x, lens, a, e)[:, full]
                found.append({"a": a, "e": e, **_compare(H, norms[full], a, e, settings.seed)})
    isometry = {a: _by_eps(found, a, "isometry") for a in settings.exponents}
    data = {
        "error": max(f["error"] for f in found),
        "overlap": max(f["overlap"] for f in found),
        "excess": max(f["excess"] for f in found),
        "recovery": max(f["recovery"] for f in found),
        "condition": {a: _by_eps(found, a, "condition")[-1] for a in settings.exponents},
        "ideal": {a: _by_eps(found, a, "ideal")[-1] for a in settings.exponents},
        "isometry": isometry,
        "adjoint": _adjoint(settings),
        "cases": len(found),
    }
    holds = all(data[key] < _EXACT for key in ("error", "overlap", "excess", "recovery"))
    last = ""
    if 1.0 in settings.exponents:
        near = isometry[1.0][-1]
        holds = holds and near <= max(_EXACT, _by_eps(found, 1.0, "allowed")[-1])
        last = f" At a = 1 and e = {min(settings.eps):g} synthesis is an isometry up to {near:.0e}."
    conclusion = (
        f"In {len(found)} cases the singular values agree with the formula to {data['error']:.0e}, "
        f"and coefficients are recovered to {data['recovery']:.0e}.{last}"
    )
    charts = [*_charts(settings, found, isometry, data), _remarks(data["adjoint"])]
    return Finding(data, charts, conclusion, holds)


def _cases(settings: InverseSettings) -> list[tuple[Lens, Tensor]]:
    n, seed = settings.num_nodes, settings.seed
    side = round(n**0.5)
    graphs = [random_geometric(n, seed=seed), block_model(n, 3, seed=seed), torus(side, side)]
    families: Sequence[Bands] = [DyadicBands(S=5), UniformBands(S=6), IndexBands(4)]
    generator = torch.Generator().manual_seed(seed)
    cases = []
    for graph in graphs:
        spectrum = partial_eigh(laplacian(graph))
        for bands in families:
            lens = Lens.of(spectrum, bands)
            for _ in range(settings.signals):
                shape = (spectrum.num_nodes, 1)
                cases.append((lens, torch.randn(shape, dtype=torch.float64, generator=generator)))
    return cases


def _matrix(synthesis: Synthesis, x: Tensor, lens: Lens, a: float, e: float) -> Floats:
    """H (N, B): what synthesis makes of each unit coefficient."""
    eye = torch.eye(lens.n_bands, dtype=torch.float64)
    columns = [synthesis(r[:, None], x, lens, a, e)[:, 0] for r in eye]
    matrix: Floats = torch.stack(columns, dim=1).numpy()
    return matrix


def _compare(H: Floats, norms: Floats, a: float, e: float, seed: int) -> dict[str, Any]:
    """What D.3 says of one synthesis, measured."""
    formula = norms / (norms**a + e)
    _, values, _ = np.linalg.svd(H, full_matrices=False)
    gram = H.T @ H
    random = np.random.default_rng(seed)
    r = random.normal(size=H.shape[1])
    noise = random.normal(size=(H.shape[0], 20))
    inverse = np.linalg.pinv(H)
    growth = np.linalg.norm(inverse @ noise, axis=0) / np.linalg.norm(noise, axis=0)
    smallest = formula.min()
    return {
        "values": values,
        "formula": np.sort(formula)[::-1],
        "error": float(np.abs(values / np.sort(formula)[::-1] - 1).max()),
        # The right singular vectors are the unit vectors: columns of H are orthogonal.
        "overlap": float(np.abs(gram - np.diag(np.diag(gram))).max() / np.abs(gram).max()),
        "excess": max(
            float(np.linalg.norm(inverse, 2) * smallest - 1), float(growth.max() * smallest - 1)
        ),
        "recovery": float(np.linalg.norm(inverse @ (H @ r) - r) / np.linalg.norm(r)),
        "condition": float(values[0] / values[-1]) if values[-1] > 0 else np.inf,
        "ideal": float(formula.max() / smallest),
        "isometry": float(np.abs(values - 1).max()),
        "allowed": float(1.01 * (e / (norms + e)).max()),
    }


def _by_eps(found: Sequence[Mapping[str, Any]], a: float, key: str) -> Floats:
    """The worst value of a quantity for each e, the largest e first."""
    steps = sorted({f["e"] for f in found}, reverse=True)
    return np.array([max(f[key] for f in found if f["a"] == a and f["e"] == e) for e in steps])


def _adjoint(settings: InverseSettings) -> dict[str, float]:
    """How far analysis is from the adjoint of synthesis, a = 1 and e -> 0, for three signals."""
    lens, x = _cases(settings)[0]
    generator = torch.Generator().manual_seed(settings.seed)
    r = torch.rand(lens.n_bands, 1, dtype=torch.float64, generator=generator)
    sign = torch.where(torch.arange(len(r)) % 2 == 0, 1.0, -1.0)[:, None]
    H = torch.from_numpy(_matrix(diagonal_synthesis, x, lens, 1.0, 1e-12))
    signals = {
        "r >= 0": H @ r,
        "r of both signs": H @ (sign * r),
        "random": torch.randn(x.shape, dtype=torch.float64, generator=generator),
    }
    norm = torch.linalg.vector_norm
    return {
        name: float(norm(lens(y).norms() - H.T @ y) / norm(lens(y).norms()))
        for name, y in signals.items()
    }


def _charts(
    settings: InverseSettings,
    found: Sequence[Mapping[str, Any]],
    isometry: Mapping[float, Floats],
    data: Mapping[str, Any],
) -> list[Chart]:
    steps = sorted(settings.eps, reverse=True)
    clouds = []
    for a in settings.exponents:
        these = [f for f in found if f["a"] == a and f["e"] == steps[0]]
        x = np.concatenate([f["formula"] for f in these]).tolist()
        y = np.concatenate([f["values"] for f in these]).tolist()
        clouds.append(Series(f"a = {a:g}", x, y, points=True))
    ends = [min(min(s.x) for s in clouds), max(max(s.x) for s in clouds)]
    axis = list(settings.exponents)
    return [
        LineChart(
            "Singular values, measured against the formula",
            "A mark a band: how much synthesis stretches its coefficient, measured on the matrix "
            f"of the map, against what the norm of the signal in the band predicts (e = "
            f"{steps[0]:g}). All marks lie on the diagonal.",
            "formula",
            "measured",
            [*clouds, Series("equal", ends, ends, faint=True)],
            log_x=True,
            log_y=True,
        ),
        LineChart(
            "With a = 1, synthesis becomes an isometry",
            "How far the worst singular value is from 1, in all cases. With a = 1 it shrinks in "
            "proportion to e: lengths are kept. With smaller a it does not shrink, because loud "
            "bands stay loud.",
            "e",
            "largest distance of a singular value from 1",
            lines(steps, {f"a = {a:g}": isometry[a] for a in axis}),
            log_x=True,
            log_y=True,
        ),
        LineChart(
            "How much noise can grow on the way back",
            "The ratio of the largest to the smallest singular value in the worst case, at e = "
            f"{steps[-1]:g}. An error in the signal can grow by this factor, relative to the "
            "coefficients, when synthesis is undone. The larger a, the safer.",
            "exponent a",
            "condition number",
            [
                *lines(axis, {"measured": list(data["condition"].values())}, points=True),
                *lines(axis, {"formula": list(data["ideal"].values())}, faint=True),
            ],
            log_y=True,
        ),
    ]


def _remarks(adjoint: Mapping[str, float]) -> Chart:
    return remarks(
        (
            "sigma_j is written with g_1 in numerator and denominator.",
            "The singular values are those with g_j, as the diagonal of H^T H says.",
        ),
        (
            "For a = 1 and e = 0, analysis is the adjoint of synthesis.",
            "Analysis takes norms, so it is not linear. It equals the adjoint on signals made of "
            f"coefficients r >= 0 (difference {adjoint['r >= 0']:.0e}), gives |r| where r has "
            f"other signs ({percent(adjoint['r of both signs'], 0)}), and differs by "
            f"{percent(adjoint['random'], 0)} on a random signal.",
        ),
    )


INVERSE = Study(
    "inverse",
    "Synthesis has a stable inverse",
    "Diagonal synthesis has the singular values |g_j X| / (|g_j X|^a + e), so it can be inverted "
    "stably, and it is an isometry for a = 1 and e -> 0 (App. D.3).",
    InverseSettings,
    run,
)
