"""Dyadic, uniform and affine-geometric bands, and what lies in them (Sec. 3.2, App. F.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nlsf.data import load
from nlsf.data.dataset import Dataset
from nlsf.errors import ConfigError
from nlsf.lab.study import Finding, Floats, Study, at_least, fitted_power, lines, remarks, setting
from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Region
from nlsf.report.numbers import evenly_chosen
from nlsf.spectral import (
    AffineGeometricBands,
    DyadicBands,
    Lens,
    UniformBands,
    laplacian,
    partial_eigh,
)

EdgeBands: TypeAlias = DyadicBands | UniformBands | AffineGeometricBands
Affine: TypeAlias = Callable[[float, int], EdgeBands]

_EXACT = 1e-9
_RATES = (2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.001)
_SIGNALS = 256


@dataclass(frozen=True)
class BandSettings:
    """Settings of the study ``bands``."""

    data: tuple[str, ...] = setting(
        ("digits-grid", "digits", "csbm", "digits-graphs"), "data sets of 'nlsf data list'"
    )
    root: str | None = setting(None, "folder of raw files; by default NLSF_DATA")
    S: int = setting(4, "number of bands")
    rate: float = setting(0.5, "decay rate r of the dyadic bands")
    growth: float = setting(1.5, "growth rate r of the affine-geometric bands")
    graphs: int = setting(40, "how many graphs of a set of graphs are looked at")

    def __post_init__(self) -> None:
        at_least(2, S=self.S)
        at_least(1, graphs=self.graphs)
        if not self.data:
            raise ConfigError("data must name at least one data set.")


def affine_geometric(r: float, S: int) -> EdgeBands:
    """The library's bands with the edges a r^j - b."""
    return AffineGeometricBands(r=r, S=S)


def run(settings: BandSettings, affine: Affine = affine_geometric) -> Finding:
    r"""Measures the edges of three families of bands, and the energy of features in them.

    The edges :math:`a r^j - b` that run from 0 to :math:`\lambda_N` are
    :math:`\lambda_N (r^j - 1) / (r^S - 1)`. For :math:`r = 1 + h` they differ from the uniform
    edges by at most :math:`h \lambda_N \max_j j (S - j) / (2 S)` to first order.

    Args:
        settings: of the study.
        affine: makes the bands between dyadic and uniform, of a growth rate r > 1 and S.
    """
    S = settings.S
    families: dict[str, EdgeBands] = {
        "dyadic": DyadicBands(settings.rate, S),
        "uniform": UniformBands(S),
        "affine-geometric": affine(settings.growth, S),
    }
    edges = {name: bands.edges(1.0).numpy() for name, bands in families.items()}
    widths = np.diff(edges["dyadic"])
    density = float(np.abs(widths[2:] / widths[1:-1] * settings.rate - 1).max(initial=0.0))
    distance = np.array(
        [np.abs(affine(r, S).edges(1.0).numpy() - edges["uniform"]).max() for r in _RATES]
    )
    steps = np.array(_RATES) - 1
    near = steps <= 0.05
    slope = fitted_power(steps[near], distance[near])
    j = np.arange(S + 1)
    predicted = steps * (j * (S - j)).max() / (2 * S)
    sets = {name: _measure(name, settings, families) for name in settings.data}
    lost = max(float(abs(e.sum() - 1)) for s in sets.values() for e in s["energy"].values())
    data = {
        "edges": edges,
        "density_error": density,
        "rates": np.array(_RATES),
        "distance_to_uniform": distance,
        "slope": slope,
        "predicted_distance": predicted,
        "sets": sets,
        "lost_energy": lost,
    }
    holds = (
        density < _EXACT
        and bool((np.diff(widths[1:]) > 0).all())
        and lost < _EXACT
        and abs(slope - 1) < 0.05
        and abs(distance[-1] / predicted[-1] - 1) < 0.05
    )
    even = sum(_evenness(s, "dyadic") > _evenness(s, "uniform") for s in sets.values())
    conclusion = (
        f"From the second on, each dyadic band is {1 / settings.rate:.3g} times as wide as the one "
        "below it. The edges a r^j - b approach the uniform ones in proportion to "
        f"(r - 1)^{slope:.2f}, to {distance[-1]:.0e} of the spectrum at r = {_RATES[-1]:g}. On "
        f"{len(sets)} data sets the bands share out all energy of the features (missing "
        f"{lost:.0e}), on {even} of them more evenly by dyadic than by uniform bands."
    )
    note = remarks(
        (
            "The closer to low frequencies, the denser the dyadic bands become.",
            "But for the first, which reaches down to 0 and is r / (1 - r) times as wide as the "
            f"second: {widths[0] / widths[1]:.3g} times at r = {settings.rate:g}, and wider "
            "than it for every r > 1/2.",
        )
    )
    return Finding(data, [*_charts(settings, families, data), note], conclusion, holds)


def _measure(name: str, settings: BandSettings, families: Mapping[str, EdgeBands]) -> Any:
    """Shares of energy and of eigenvalues in each band, for N, over some graphs of a data set."""
    dataset = load(name, settings.root, offline=True)
    pairs = [
        (partial_eigh(laplacian(graph, normalization="sym")), _signal(dataset, graph))
        for graph in dataset.graphs[: settings.graphs]
    ]
    energy = {family: np.zeros(settings.S) for family in families}
    count = {family: np.zeros(settings.S) for family in families}
    for spectrum, x in pairs:
        for family, bands in families.items():
            lens = Lens.of(spectrum, bands, complement=False)
            energy[family] += lens(x).norms().square().sum(1).numpy()
            count[family] += lens.dimension.numpy()
    total = sum(float(x.square().sum()) for _, x in pairs)
    first, x = pairs[0]
    cumulative = (first.vectors.T @ x).square().sum(1).cumsum(0)
    return {
        "energy": {family: value / total for family, value in energy.items()},
        "eigenvalues": {family: value / value.sum() for family, value in count.items()},
        "values": first.values.numpy(),
        "cumulative": (cumulative / cumulative[-1]).numpy(),
    }


def _signal(dataset: Dataset, graph: Any) -> Tensor:
    """(N, F), float64: signals side by side, features, or a constant where there are none."""
    if dataset.signals is not None:
        return dataset.signals[:_SIGNALS].movedim(0, 1).flatten(1).double()
    if graph.x is None:
        return torch.ones(int(graph.num_nodes), 1, dtype=torch.float64)
    x: Tensor = graph.x
    return (x if x.layout == torch.strided else x.to_dense()).double()


def _evenness(measured: Any, family: str) -> float:
    """The entropy of the shares of energy: larger where they are more even."""
    share: Floats = measured["energy"][family]
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def _charts(
    settings: BandSettings, families: Mapping[str, EdgeBands], data: Mapping[str, Any]
) -> list[Chart]:
    name, shown = next(iter(data["sets"].items()))
    count = len(shown["values"])
    some, rank = evenly_chosen(count), np.arange(1, count + 1) / count
    charts: list[Chart] = []
    for family, bands in families.items():
        edges = bands.edges(float(shown["values"][-1])).tolist()
        regions = [Region(a, b, str(k + 1)) for k, (a, b) in enumerate(pairwise(edges))]
        charts.append(
            LineChart(
                f"{settings.S} {family} bands",
                f"The frequencies of {name}, shaded in turn by band, with the share of eigenvalues "
                "and of the features' energy up to each frequency. Where a line climbs inside a "
                "band, the band has something to filter.",
                "frequency (eigenvalue of the normalised Laplacian)",
                "share up to here",
                lines(
                    shown["values"][some],
                    {"eigenvalues": rank[some], "energy": shown["cumulative"][some]},
                ),
                regions=regions,
            )
        )
    charts.append(_limit(settings, data))
    for name, measured in data["sets"].items():
        charts.append(
            BarChart(
                f"Energy of the features of {name}",
                "The share of the features' energy in each band, the lowest frequencies first, for "
                "the three families.",
                "band",
                "share of the energy",
                [str(k + 1) for k in range(settings.S)],
                [(family, values.tolist()) for family, values in measured["energy"].items()],
                percent=True,
            )
        )
    charts.append(_table(data["sets"]))
    return charts


def _limit(settings: BandSettings, data: Mapping[str, Any]) -> Chart:
    steps = data["rates"] - 1
    return LineChart(
        "From geometric to uniform",
        "How far the edges a r^j - b are from the uniform ones, as a share of the spectrum. As r "
        "goes to 1 the distance vanishes in proportion to r - 1, as a first-order expansion says.",
        "r - 1",
        "largest distance of an edge",
        [
            *lines(steps, {"measured": data["distance_to_uniform"]}, points=True),
            *lines(steps, {"first order": data["predicted_distance"]}, faint=True),
        ],
        log_x=True,
        log_y=True,
    )


def _table(sets: Mapping[str, Any]) -> Chart:
    rows = [
        [
            name,
            family,
            *(f"{100 * e:.1f} / {100 * k:.1f}" for e, k in zip(energy, count, strict=True)),
        ]
        for name, measured in sets.items()
        for family, energy in measured["energy"].items()
        for count in [measured["eigenvalues"][family]]
    ]
    bands = len(rows[0]) - 2
    return DataTable(
        "Energy and eigenvalues by band",
        "In percent: energy of the features / eigenvalues of the normalised Laplacian.",
        ["Data", "Bands", *(f"Band {k + 1}" for k in range(bands))],
        rows,
    )


BANDS = Study(
    "bands",
    "Dyadic, uniform and affine-geometric bands",
    "Dyadic bands become denser towards low frequencies, uniform ones do not, and bands with the "
    "edges a r^j - b become uniform as r goes to 1 (Sec. 3.2, App. F.8).",
    BandSettings,
    run,
)
