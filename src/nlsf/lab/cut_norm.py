"""Leading eigenvectors approximate a matrix uniformly in the cut norm (Theorem 1, App. D.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from nlsf.data import load
from nlsf.data.generators import block_model, preferential_attachment, random_geometric
from nlsf.errors import ConfigError
from nlsf.lab.study import Finding, Floats, Study, at_least, lines, remarks, setting
from nlsf.report.charts import Chart, DataTable, LineChart
from nlsf.report.numbers import percent
from nlsf.spectral import adjacency, laplacian

Approximate: TypeAlias = Callable[[Floats, int], Floats]

_LARGEST = 1000
_RESTARTS = 12
_SMALLEST = 12
"""Nodes of the graphs whose cut norm is computed exactly, over all 4,096 sets."""


@dataclass(frozen=True)
class CutNormSettings:
    """Settings of the study ``cut-norm``."""

    nodes: tuple[int, ...] = setting((40, 80, 160), "sizes of the larger graphs")
    J: tuple[int, ...] = setting((4, 16, 32), "largest numbers of eigenvectors")
    R: tuple[int, ...] = setting((2, 4), "the R of the theorem; each must divide every J")
    data: tuple[str, ...] = setting(("digits-grid",), "data sets whose first graph is added")
    root: str | None = setting(None, "folder of their raw files; by default NLSF_DATA")
    seed: int = setting(0, "of the random graphs")

    def __post_init__(self) -> None:
        at_least(1, R=min(self.R, default=0), J=min(self.J, default=0))
        at_least(max(self.J) + 1, nodes=min(self.nodes, default=0))
        if any(j % r for j in self.J for r in self.R):
            raise ConfigError("R must divide J: every number of R every number of J.")


def leading(M: Floats, m: int) -> Floats:
    """The sum of the m eigenvectors of the largest magnitude: the best approximation of rank m."""
    values, vectors = np.linalg.eigh(M)
    largest = np.argsort(-np.abs(values), kind="stable")[:m]
    found: Floats = (vectors[:, largest] * values[largest]) @ vectors[:, largest].T
    return found


def cut_norm(M: Floats) -> float:
    r"""The cut norm, exactly: :math:`N^{-2} \max_{S, T} |\sum_{i \in S, j \in T} m_{ij}|`.

    For a set S the best T takes all columns whose sum over S has the same sign. All sets S are
    tried, so N should be at most 16 or so.
    """
    n = len(M)
    sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    sums = sets @ M
    positive, negative = np.maximum(sums, 0).sum(1), np.maximum(-sums, 0).sum(1)
    return float(max(positive.max(), negative.max())) / n**2


def cut_norm_bounds(M: Floats, seed: int = 0) -> tuple[float, float]:
    r"""A lower and an upper bound of the cut norm, for any N.

    The lower one is the value at sets S and T that improve each other in turn, from several random
    starts. The upper one is :math:`\|M\|_2 / N`, because indicators have norms up to
    :math:`\sqrt N`.
    """
    n = len(M)
    random = np.random.default_rng(seed)
    best = 0.0
    for sign in (1, -1):
        for start in (random.random((_RESTARTS, n)) < 0.5).astype(np.float64):
            S, value = start, -1.0
            while True:
                T = (sign * (S @ M) > 0).astype(np.float64)
                S = (sign * (M @ T) > 0).astype(np.float64)
                reached = float(sign * (S @ M @ T))
                if reached <= value + 1e-12:
                    break
                value = reached
            best = max(best, value)
    return best / n**2, float(np.abs(np.linalg.eigvalsh(M)).max()) / n


def run(settings: CutNormSettings, approximate: Approximate = leading) -> Finding:
    r"""Measures the cut norm of M - C for every m up to J, on random graphs of several kinds.

    Theorem 1: for m uniform in 1..J and J / R whole, with probability at least 1 - 1/R,

    .. math::
        \|M - C_m\|_\square < \frac{3 \alpha}{2} \sqrt{R / J}.

    Args:
        settings: of the study.
        approximate: C of M and m.
    """
    matrices = [
        matrix for n in (_SMALLEST, *settings.nodes) for matrix in _matrices(n, settings.seed)
    ]
    matrices += [(name, _loaded(name, settings)) for name in settings.data]
    cases = [case for name, M in matrices for case in _cases(name, M, settings, approximate)]
    exact = _tightness(settings)
    growth = _by_size(settings, approximate)
    curve = _by_number(settings, approximate)
    data: dict[str, Any] = {"cases": cases, "exact": exact, "growth": growth, "curve": curve}
    data["sparse"] = _sparse(settings)
    holds = all(case["holds"] for case in cases)
    ratio = max(case["ratio"] for case in cases)
    conclusion = (
        f"In {sum(case['holds'] for case in cases)} of {len(cases)} cases the bound holds for the "
        f"promised share of m. The largest cut norm found for any m is {ratio:.2f} times the "
        f"bound, and sqrt(m + 1) |M - C| / alpha never exceeds "
        f"{max(case['direct'] for case in cases):.2f}."
    )
    charts = [*_charts(cases, growth, curve), _remarks(exact, data["sparse"])]
    return Finding(data, charts, conclusion, holds)


def _cases(
    name: str, M: Floats, settings: CutNormSettings, approximate: Approximate
) -> list[dict[str, Any]]:
    """For every J and R, how much of the bound the cut norms of M - C take."""
    alpha, most = float(np.abs(M).max()), min(max(settings.J), len(M))
    rests = [M - approximate(M, m) for m in range(1, most + 1)]
    if len(M) == _SMALLEST:
        norms = np.array([cut_norm(rest) for rest in rests])
    else:
        norms = np.array([np.abs(np.linalg.eigvalsh(rest)).max() / len(M) for rest in rests])
    direct = float((norms * np.sqrt(np.arange(2, most + 2))).max()) / alpha
    cases = []
    for J, R in product((j for j in settings.J if j <= most), settings.R):
        bound = 1.5 * alpha * math.sqrt(R / J)
        inside = float((norms[:J] < bound).mean())
        cases.append(
            {
                "matrix": name,
                "N": len(M),
                "J": J,
                "R": R,
                "bound": bound,
                "inside": inside,
                "ratio": float(norms[:J].max() / bound),
                "direct": direct,
                "holds": inside >= 1 - 1 / R,
            }
        )
    return cases


def _matrices(n: int, seed: int) -> list[tuple[str, Floats]]:
    """Random matrices of several kinds with n rows."""
    seed += n
    random = np.random.default_rng(seed)
    noise = np.triu(2 * random.random((n, n)) - 1)
    geometric = random_geometric(n, seed=seed)
    return [
        ("Erdos-Renyi, p = 1/2", _erdos_renyi(n, 0.5, random)),
        ("Erdos-Renyi, p = 0.95", _erdos_renyi(n, 0.95, random)),
        ("block model", _dense(block_model(n, 3, min(10.0, n / 3), seed=seed))),
        ("random geometric", _dense(geometric)),
        ("preferential attachment", _dense(preferential_attachment(n, seed=seed))),
        ("uniform entries of both signs", noise + np.triu(noise, 1).T),
        # Leading for a Laplacian are the small eigenvalues: h(L) turns the order around.
        ("pseudo-inverse of L", np.linalg.pinv(laplacian(geometric).matrix.toarray())),
    ]


def _erdos_renyi(n: int, p: float, random: np.random.Generator) -> Floats:
    upper = np.triu(random.random((n, n)) < p, 1).astype(np.float64)
    return upper + upper.T


def _dense(graph: Any) -> Floats:
    matrix: Floats = adjacency(graph).matrix.toarray()
    return matrix


def _loaded(name: str, settings: CutNormSettings) -> Floats:
    graph = load(name, settings.root, offline=True).graphs[0]
    if graph.num_nodes > _LARGEST:
        raise ConfigError(
            f"data must name graphs of at most {_LARGEST:,} nodes, and {name} has "
            f"{graph.num_nodes:,}: every m takes an eigendecomposition."
        )
    return _dense(graph)


def _tightness(settings: CutNormSettings) -> dict[str, float]:
    """How tight the bounds of the cut norm are where it is known."""
    low, high = [], []
    for _, M in _matrices(_SMALLEST, settings.seed):
        for m in (1, 3):
            rest = M - leading(M, m)
            lower, upper = cut_norm_bounds(rest, settings.seed)
            truth = max(cut_norm(rest), 1e-300)
            low.append(lower / truth)
            high.append(upper / truth)
    return {"lower": min(low), "lower_max": max(low), "upper": max(high), "upper_min": min(high)}


def _sparse(settings: CutNormSettings) -> dict[str, float]:
    """The re-normalised bound (App. D.4) on a sparse graph, beside the norm of the matrix itself.

    All entries are positive, so the cut norm of the matrix is its sum over all pairs.
    """
    n, J, R = max(settings.nodes), max(settings.J), min(settings.R)
    M = _dense(preferential_attachment(n, seed=settings.seed))
    edges = float(M.sum() / 2)
    rest = M - leading(M, J)
    scale = n**2 / edges
    return {
        "N": float(n),
        "E": edges,
        "bound": 1.5 * scale * math.sqrt(R / J),
        "matrix": scale * float(M.sum()) / n**2,
        "rest": scale * float(np.abs(np.linalg.eigvalsh(rest)).max()) / n,
    }


def _by_size(settings: CutNormSettings, approximate: Approximate) -> dict[str, Floats]:
    """Three errors of one number of eigenvectors on random graphs of growing size."""
    rows = []
    for n in sorted(settings.nodes):
        M = _erdos_renyi(n, 0.5, np.random.default_rng(settings.seed + n))
        rest = M - approximate(M, min(settings.J))
        lower, upper = cut_norm_bounds(rest, settings.seed)
        frobenius = float(np.linalg.norm(rest) / np.linalg.norm(M))
        rows.append((n, lower, upper, frobenius, upper * n))
    keys = ("N", "lower", "upper", "frobenius", "spectral")
    return dict(zip(keys, np.array(rows).T, strict=True))


def _by_number(settings: CutNormSettings, approximate: Approximate) -> dict[str, Floats]:
    """The bounds of the cut norm for every number of eigenvectors, beside the theorem's."""
    n, J, R = max(settings.nodes), max(settings.J), min(settings.R)
    M = _erdos_renyi(n, 0.5, np.random.default_rng(settings.seed + n))
    m = np.arange(1, J + 1)
    bounds = [cut_norm_bounds(M - approximate(M, int(k)), settings.seed) for k in m]
    lower, upper = np.array(bounds).T
    theorem = np.full(J, 1.5 * math.sqrt(R / J))
    return {"m": m, "lower": lower, "upper": upper, "theorem": theorem, "direct": (m + 1) ** -0.5}


def _charts(
    cases: Sequence[Mapping[str, Any]], growth: Mapping[str, Floats], curve: Mapping[str, Floats]
) -> list[Chart]:
    rows = [
        [
            c["matrix"],
            str(c["N"]),
            str(c["J"]),
            str(c["R"]),
            f"{c['bound']:.3g}",
            percent(1 - 1 / c["R"], 0),
            percent(c["inside"], 0),
            f"{c['ratio']:.2f}",
        ]
        for c in cases
    ]
    return [
        LineChart(
            "The cut norm of what m eigenvectors leave",
            f"A random graph of {int(growth['N'].max())} nodes in which half of all pairs are "
            "joined. The cut norm compares how many edges run between any two sets of nodes; it "
            "lies between the two measured lines. The theorem's bound is the level one.",
            "number m of eigenvectors",
            "cut norm of M - C",
            [
                *lines(
                    curve["m"],
                    {
                        "upper bound, measured": curve["upper"],
                        "lower bound, measured": curve["lower"],
                        "the theorem": curve["theorem"],
                    },
                ),
                *lines(curve["m"], {"1 / sqrt(m + 1)": curve["direct"]}, faint=True),
            ],
            log_y=True,
        ),
        LineChart(
            "Small in one norm, large in others",
            "What the same number of eigenvectors leaves of random graphs of growing size. The cut "
            "norm falls. The Frobenius error, relative to the matrix, stays: entry by entry, a "
            "random graph cannot be compressed. The spectral norm grows.",
            "nodes N",
            "error",
            lines(
                growth["N"],
                {
                    "cut norm, upper bound": growth["upper"],
                    "cut norm, lower bound": growth["lower"],
                    "Frobenius, relative": growth["frobenius"],
                    "spectral": growth["spectral"],
                },
            ),
            log_x=True,
            log_y=True,
        ),
        DataTable(
            "All cases",
            f"The bound, the share of m = 1..J for which it must hold, the share for which it does "
            f"(the cut norm exactly for N = {_SMALLEST}, else its upper bound |M - C|_2 / N), and "
            "the largest ratio of the two.",
            ["Matrix", "N", "J", "R", "Bound", "Promised", "Found", "Ratio"],
            rows,
        ),
    ]


def _remarks(exact: Mapping[str, float], sparse: Mapping[str, float]) -> Chart:
    return remarks(
        (
            "The Frobenius norm is normalised by 1/N: sqrt(1/N sum m_ij^2) <= alpha.",
            "That sum has N^2 terms, so the proof needs 1/N^2 under the root; with 1/N the norm of "
            "a matrix of ones is sqrt(N).",
        ),
        (
            "With probability 1 - 1/R over m, the cut norm is below (3/2) alpha sqrt(R/J).",
            "More is true, for every m: |M - C|_2 is the next eigenvalue, at most "
            "|M|_F / sqrt(m + 1), so the cut norm is at most alpha / sqrt(m + 1). With m >= J/R "
            "this gives the theorem without the factor 3/2.",
        ),
        (
            "For sparse graphs the cut norm is multiplied by N^2 / E.",
            f"Then the bound says little: on preferential attachment with {sparse['N']:.0f} nodes "
            f"and {sparse['E']:.0f} edges it is {sparse['bound']:.1f}, where the matrix itself has "
            f"the norm {sparse['matrix']:.1f} and the rest, at most, {sparse['rest']:.1f}.",
        ),
        (
            "The cut norm is a supremum over all pairs of sets.",
            f"For {_SMALLEST} nodes it was computed over all of them: the lower bound used for "
            f"larger graphs reaches {percent(exact['lower'], 0)} of it or more, the upper bound is "
            f"at most {exact['upper']:.1f} times as large.",
        ),
    )


CUT_NORM = Study(
    "cut-norm",
    "Leading eigenvectors approximate uniformly",
    "What the m leading eigenvectors leave of a matrix with entries up to alpha has a cut norm "
    "below (3/2) alpha sqrt(R/J) for a share 1 - 1/R of m = 1..J, whatever its size (Theorem 1).",
    CutNormSettings,
    run,
)
