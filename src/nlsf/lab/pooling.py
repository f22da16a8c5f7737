"""Pooling filters separate graphs that graph-level filters cannot, unless p = 2 (App. D.2.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nlsf.data.generators import random_geometric
from nlsf.errors import ConfigError
from nlsf.lab.study import (
    Finding,
    Floats,
    Study,
    at_least,
    lines,
    remarks,
    seeded,
    setting,
    with_coefficients,
)
from nlsf.nn import GraphNLSF, PoolingNLSF, Readout
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart
from nlsf.report.numbers import percent
from nlsf.spectral import IndexBands, Lens, Spectrum, laplacian, partial_eigh
from nlsf.testing.graphs import path

Pool: TypeAlias = Callable[[Tensor, Spectrum, IndexBands, float], float]

_EXACT = 1e-9
_SEPARATED = 1e-4
"""Relative gaps below the first are rounding; from the second on, two values differ."""


@dataclass(frozen=True)
class PoolingSettings:
    """Settings of the study ``pooling``."""

    norms: tuple[float, ...] = setting((1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0), "the p; with 2")
    pairs: int = setting(20, "random pairs of graphs with equal coefficients, for each p")
    num_nodes: int = setting(12, "nodes of the smaller graph of a pair, on average")
    bands: int = setting(3, "leading eigenspaces; the rest is one more band")
    seed: int = setting(0, "of graphs, signals and networks")

    def __post_init__(self) -> None:
        at_least(1, pairs=self.pairs, bands=self.bands)
        at_least(self.bands + 4, num_nodes=self.num_nodes)
        if 2.0 not in self.norms or len(self.norms) < 2 or min(self.norms) < 1:
            raise ConfigError("norms must be numbers of at least 1: 2, and one that is not 2.")


def pool_identity(x: Tensor, spectrum: Spectrum, bands: IndexBands, p: float) -> float:
    r"""A pooling filter without activation that keeps every band: :math:`N^{-1/p} \|x\|_p`."""
    layer = PoolingNLSF(
        1,
        1,
        readout=Readout("lp", p, normalize=True),
        activation=None,
        depth=0,
        bands=bands,
        norm_p=p,
        norm_per_node=True,
        a=0.0,
        eps=1e-12,
    ).double()
    with torch.no_grad():
        return float(layer(x, spectrum=spectrum))


def run(settings: PoolingSettings, pool: Pool = pool_identity) -> Finding:
    """Pairs of graph-signals with equal coefficients, seen by both kinds of graph-level filter.

    Args:
        settings: of the study.
        pool: the pooling filter: of a signal (N, 1), a spectrum, bands and p.
    """
    example = _example(pool, settings.seed)
    generator = torch.Generator().manual_seed(settings.seed)
    gaps: dict[float, Floats] = {}
    level: dict[float, Floats] = {}
    for p in sorted(settings.norms):
        rows = [_pair(settings, pool, p, generator, k) for k in range(settings.pairs)]
        gaps[p], level[p] = np.array(rows).T
    formula = _formula(settings)
    data = {
        "example": example,
        "gaps": gaps,
        "graph_level_gaps": level,
        "separated": {p: float((gap > _SEPARATED).mean()) for p, gap in gaps.items()},
        **formula,
    }
    others = [p for p in gaps if p != 2]
    holds = (
        max(example["coefficients"], example["graph_level"]) < _EXACT
        and abs(example["first"] - 1) < _EXACT
        and abs(example["second"] - 4 / 3) < _EXACT
        and max(float(gap.max()) for gap in level.values()) < _EXACT
        and float(gaps[2.0].max()) < _EXACT
        and min(data["separated"][p] for p in others) > 0.5
        and formula["p2_error"] < _EXACT
        and formula["as_pooling_error"] < _EXACT
    )
    separated = settings.pairs * min(data["separated"][p] for p in others)
    conclusion = (
        f"Pooling gives {example['first']:.4g} and {example['second']:.4g} for the paper's two "
        "graphs, which no graph-level filter tells apart. For every p other than 2 it separates "
        f"at least {separated:.0f} of {settings.pairs} random pairs with equal coefficients. For "
        f"p = 2 it separates none (largest gap {gaps[2.0].max():.0e})."
    )
    return Finding(data, [*_charts(data), _remarks(formula)], conclusion, holds)


def _example(pool: Pool, seed: int) -> dict[str, float]:
    """The paper's paths of 2 and 3 nodes, with the L_1 norm divided by the number of nodes."""
    bands = IndexBands(2)
    spectra = [partial_eigh(laplacian(path(n))) for n in (2, 3)]
    signals = [
        torch.tensor([[1.0 + 1.0], [1.0 - 1.0]], dtype=torch.float64),
        torch.tensor([[1.0 + 1.5], [1.0], [1.0 - 1.5]], dtype=torch.float64),
    ]
    pairs = list(zip(signals, spectra, strict=True))
    norms = [Lens.of(s, bands)(x).norms(p=1.0, normalize=True) for x, s in pairs]
    levels = [_graph_level(x, s, bands, 1.0, seed) for x, s in pairs]
    first, second = (pool(x, s, bands, 1.0) for x, s in pairs)
    return {
        "first": first,
        "second": second,
        "coefficients": float((norms[0] - norms[1]).abs().max()),
        "graph_level": abs(levels[0] - levels[1]),
        "second_eigenvalue": float(spectra[0].values[1]),
    }


def _graph_level(x: Tensor, spectrum: Spectrum, bands: IndexBands, p: float, seed: int) -> float:
    """A graph-level filter with a random network."""
    with seeded(seed):
        layer = GraphNLSF(1, 1, bands, norm_p=p, norm_per_node=True).double()
    with torch.no_grad():
        return float(layer(x, spectrum=spectrum))


def _pair(
    settings: PoolingSettings, pool: Pool, p: float, generator: torch.Generator, number: int
) -> tuple[float, float]:
    """Relative gap of pooling, and of a graph-level filter, for signals with equal coefficients."""
    bands = IndexBands(settings.bands)
    targets = 0.5 + torch.rand(settings.bands + 1, generator=generator, dtype=torch.float64)
    pooled, levels = [], []
    for k in range(2):
        n = settings.num_nodes + 5 * k + number % 3
        graph = random_geometric(n, seed=settings.seed + 2 * number + k)
        spectrum = partial_eigh(laplacian(graph))
        lens = Lens.of(spectrum, bands)
        x = torch.randn(n, 1, dtype=torch.float64, generator=generator)
        y = with_coefficients(x, lens, targets[:, None], p=p, normalize=True)
        pooled.append(pool(y, spectrum, bands, p))
        levels.append(_graph_level(y, spectrum, bands, p, settings.seed + number))
    return _gap(*pooled), _gap(*levels)


def _gap(first: float, second: float) -> float:
    return abs(first - second) / max(abs(first), abs(second), 1e-12)


def _formula(settings: PoolingSettings) -> dict[str, Any]:
    """The other halves of the proof, on one random graph.

    For p = 2 the pooled value depends on the coefficients alone; and every graph-level filter is a
    pooling filter: all of its value is put on the band with the largest coefficient.
    """
    generator = torch.Generator().manual_seed(settings.seed + 1)
    spectrum = partial_eigh(laplacian(random_geometric(settings.num_nodes, seed=settings.seed)))
    lens = Lens.of(spectrum, IndexBands(settings.bands))
    x = torch.randn(settings.num_nodes, 1, dtype=torch.float64, generator=generator)
    r = torch.randn(lens.n_bands, 1, dtype=torch.float64, generator=generator)
    a, e, p = 0.5, 0.1, 1.0
    c = lens(x).norms()
    measured = torch.linalg.vector_norm(lens(x).synthesize(r, a=a, eps=e)) ** 2
    exact = (r**2 * c**2 / (c**a + e) ** 2).sum()
    printed = (r**2 * c**2 / (c**a + e)).sum()

    norms = lens(x).norms(p=p)
    best = int(norms[:, 0].argmax())
    errors = []
    for value in (0.7, -0.7):
        chosen = torch.zeros_like(norms)
        chosen[best] = value * (norms[best] ** a + e) / norms[best]
        y = lens(x).synthesize(chosen, a=a, eps=e, p=p)
        errors.append(abs(float(torch.linalg.vector_norm(y, ord=p)) - value))
    return {
        "p2_error": float((measured / exact - 1).abs()),
        "p2_printed_error": float((measured / printed - 1).abs()),
        "as_pooling_error": errors[0],
        "negative_error": errors[1],
        "p2_with_relu": _with_relu(settings),
    }


def _with_relu(settings: PoolingSettings) -> float:
    """The median gap at p = 2 with the activation that the paper puts before the readout."""

    def pool(x: Tensor, spectrum: Spectrum, bands: IndexBands, p: float) -> float:
        return pool_identity(torch.relu(x), spectrum, bands, p)

    generator = torch.Generator().manual_seed(settings.seed)
    rows = [_pair(settings, pool, 2.0, generator, k)[0] for k in range(min(settings.pairs, 10))]
    return float(np.median(rows))


def _charts(data: Mapping[str, Any]) -> list[Chart]:
    gaps, example, levels = data["gaps"], data["example"], data["graph_level_gaps"].values()
    axis, every = list(gaps), np.array(list(gaps.values()))
    return [
        LineChart(
            "What pooling sees beyond the coefficients",
            "Pairs of random graphs and signals, made so that all their spectral coefficients (the "
            "L_p norms in the bands) are equal. How far the pooled values of a pair are apart, "
            "relative to them: the median and the largest and smallest of all pairs. At p = 2 "
            "Pythagoras fixes the pooled value, and the gap is zero.",
            "p of the norm",
            "relative gap",
            [
                *lines(axis, {"median": np.median(every, 1)}),
                *lines(axis, {"largest": every.max(1), "smallest": every.min(1)}, faint=True),
            ],
            marks=[(2.0, "p = 2")],
        ),
        BarChart(
            "How many pairs are told apart",
            "The share of the pairs whose pooled values differ by more than 0.01 %, for each p. A "
            "graph-level filter, which reads only the coefficients, tells none of them apart.",
            "p of the norm",
            "share of the pairs",
            [f"{p:g}" for p in axis],
            [
                ("pooling", [data["separated"][p] for p in axis]),
                ("graph level", [float((g > _SEPARATED).mean()) for g in levels]),
            ],
            percent=True,
        ),
        DataTable(
            "The paper's example",
            "Two nodes joined by an edge, and three in a row. Their L_1 coefficients, divided by "
            "the number of nodes, are 1 and 1 on both.",
            ["Graph", "Signal", "Coefficients", "Pooled, the paper", "Pooled, measured"],
            [
                ["2 nodes", "(2, 0)", "1 and 1", "1", f"{example['first']:.10g}"],
                ["3 nodes", "(5/2, 1, -1/2)", "1 and 1", "4/3", f"{example['second']:.10g}"],
            ],
        ),
    ]


def _remarks(formula: Mapping[str, float]) -> Chart:
    return remarks(
        (
            "The Laplacian of two nodes has the eigenvalues 0 and 1.",
            "They are 0 and 2. The index form, which the example uses, does not see the values.",
        ),
        (
            "The squared norm for p = 2 has the denominator |P_j X|^a + e.",
            f"It must be squared: then the formula is exact ({formula['p2_error']:.0e}); as "
            f"printed it is off by {percent(formula['p2_printed_error'], 0)}.",
        ),
        (
            "For p = 2, pooling and graph-level filters have the same expressivity.",
            "Without the activation before the readout. With ReLU there, pooling tells pairs with "
            f"equal coefficients apart at p = 2 too (median gap "
            f"{percent(formula['p2_with_relu'], 0)}).",
        ),
        (
            "Every graph-level filter Psi is a pooling filter, by its largest band.",
            "A norm has no sign: pooling returns |Psi| "
            f"(error {formula['as_pooling_error']:.0e} for a positive value). Two channels, for "
            "the positive and the negative part, give Psi itself after a linear map.",
        ),
    )


POOLING = Study(
    "pooling",
    "Pooling is more expressive unless p = 2",
    "With L_p norms, p other than 2, pooling filters tell graph-signals apart that no graph-level "
    "filter can, and lose nothing; for p = 2, without an activation, both are equal (App. D.2.4).",
    PoolingSettings,
    run,
)
