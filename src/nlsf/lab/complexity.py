"""What a filter costs: operations counted against O(NJd) and O(J^2 d^2) (Sec. 4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from nlsf.errors import ConfigError
from nlsf.lab.study import Finding, Floats, Study, fitted_power, lines, remarks, setting
from nlsf.nn import NodeNLSF
from nlsf.report.charts import Chart, DataTable, LineChart
from nlsf.spectral import IndexBands, Spectrum
from nlsf.spectral.lens import ColumnLens

Count: TypeAlias = Callable[[int, int, int], tuple[int, int]]
"""From N, J and d to the operations of analysis with synthesis, and of the response."""

_TOLERANCE = 0.05
_AXES = ("N", "J", "d")


@dataclass(frozen=True)
class ComplexitySettings:
    """Settings of the study ``complexity``."""

    nodes: tuple[int, ...] = setting((250, 500, 1000, 2000, 4000), "the N that are tried")
    eigenspaces: tuple[int, ...] = setting((4, 8, 16, 32, 64), "the J that are tried")
    channels: tuple[int, ...] = setting((2, 4, 8, 16, 32), "the d that are tried")

    def __post_init__(self) -> None:
        for name in ("nodes", "eigenspaces", "channels"):
            values = getattr(self, name)
            if len(set(values)) < 2 or min(values) < 1:
                raise ConfigError(f"{name} must be at least two different positive numbers.")
        if max(self.eigenspaces) >= min(self.nodes):
            raise ConfigError("eigenspaces must be smaller than all of nodes.")


def count_diagonal(n: int, j: int, d: int) -> tuple[int, int]:
    """The diagonal filter (App. C.1), with a network as wide as its (J + 1) d inputs."""
    return _counted(n, j, d, "diagonal", (j + 1) * d)


def count_full(n: int, j: int, d: int) -> tuple[int, int]:
    """The filter of Eq. 4, whose response is a (J + 1) d x (J + 1) d matrix; width 8."""
    return _counted(n, j, d, "full", 8)


def run(settings: ComplexitySettings, count: Count = count_diagonal) -> Finding:
    """Counts the multiplications and additions in matrix products, and fits powers of N, J and d.

    One of the three is varied at a time, the others have their middle value. The response has
    J + 1 bands, so its power is fitted in J + 1.

    Args:
        settings: of the study.
        count: the operations of the filter that is claimed to be so cheap.
    """
    tried = {"N": settings.nodes, "J": settings.eigenspaces, "d": settings.channels}
    middle = {axis: sorted(values)[len(values) // 2] for axis, values in tried.items()}
    counts = {axis: _sweep(count, axis, values, middle) for axis, values in tried.items()}
    full = {axis: _sweep(count_full, axis, values, middle) for axis, values in tried.items()}
    powers = {axis: _powers(axis, tried[axis], counts[axis]) for axis in _AXES}
    full_powers = {axis: _powers(axis, tried[axis], full[axis]) for axis in _AXES}
    data = {
        "middle": middle,
        "counts": counts,
        "powers": powers,
        "full_powers": full_powers,
        "per_NJd": counts["N"][:, 0] / (np.array(settings.nodes) * middle["J"] * middle["d"]),
    }
    wanted = {"N": (1.0, 0.0), "J": (1.0, 2.0), "d": (1.0, 2.0)}
    off = max(
        abs(found - expected)
        for axis in _AXES
        for found, expected in zip(powers[axis], wanted[axis], strict=True)
    )
    conclusion = (
        f"Analysis and synthesis of the diagonal filter take {_product(powers, 0)} operations, "
        f"{data['per_NJd'][-1]:.2f} N J d of them. The network takes {_product(powers, 1)}. The "
        f"full form of Eq. 4 needs more for its synthesis, {_product(full_powers, 0)}."
    )
    charts = [
        *_charts(tried, counts, middle),
        _table(powers, full_powers),
        _remarks(full_powers),
    ]
    return Finding(data, charts, conclusion, off < _TOLERANCE)


def _counted(n: int, j: int, d: int, response: str, hidden: int) -> tuple[int, int]:
    layer = NodeNLSF(d, d, IndexBands(j), response=response, sharing="mixing", hidden=hidden)
    lens = ColumnLens.on_graph(_path_spectrum(n, j), layer.bands, complement=True)
    # Not a constant: where the bands hold all energy, the rest is computed, not inferred.
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), FlopCounterMode(display=False) as network:
        norms = torch.ones(layer.n_bands, d)
        layer.response(norms, layer.start.gains(lens.frequencies))
    with torch.no_grad(), FlopCounterMode(display=False) as whole:
        layer.filter(layer.view(x, spectrum=lens))
    of_network = network.get_total_flops()
    sums = _sums_over_bands(lens, d, response)
    return whole.get_total_flops() - of_network - sums, of_network


def _sums_over_bands(lens: ColumnLens, d: int, response: str) -> int:
    """Additions over the columns of each band, and their transpose in the diagonal synthesis.

    They are computed as products with a matrix (J + 1) x J of zeros and ones, and left out where
    products are counted. With J < N they are never more than the products with eigenvectors.
    """
    bands, columns = lens.balance.shape
    with FlopCounterMode(display=False) as counted:
        lens.balance @ torch.ones(columns, d)
        if response == "diagonal":
            lens.balance.mT @ torch.ones(bands, d)
    return int(counted.get_total_flops())


def _path_spectrum(n: int, k: int) -> Spectrum:
    """The first k eigenpairs of a path's Laplacian, which are known: cosines."""
    number = torch.arange(k)
    angle = math.pi * number / n
    vectors = torch.cos(angle * (torch.arange(n)[:, None] + 0.5))
    vectors = vectors / torch.linalg.vector_norm(vectors, dim=0)
    values = (2 - 2 * torch.cos(angle.double())).contiguous()
    far = 2 - 2 * math.cos(math.pi * (n - 1) / n)
    return Spectrum(
        values, vectors, torch.zeros(k), far, float(values[-1]), 1e-12, 2.0 * (n - 1), 1, "L"
    )


def _sweep(count: Count, axis: str, values: Sequence[int], middle: Mapping[str, int]) -> Floats:
    """(values, 2): operations of analysis with synthesis, and of the network."""
    rows = []
    for value in values:
        at = {**middle, axis: value}
        rows.append(count(at["N"], at["J"], at["d"]))
    return np.array(rows, dtype=np.float64)


def _powers(axis: str, values: Sequence[int], counts: Floats) -> tuple[float, float]:
    """The exponents that fit the two counts."""
    bands = np.array(values) + 1.0 if axis == "J" else values
    return fitted_power(values, counts[:, 0]), fitted_power(bands, counts[:, 1])


def _product(powers: Mapping[str, tuple[float, float]], which: int) -> str:
    """The fitted powers in a row: N^1.00 J^1.00 d^1.00."""
    names = {"N": "N", "J": "(J + 1)" if which else "J", "d": "d"}
    return " ".join(f"{names[axis]}^{abs(powers[axis][which]):.2f}" for axis in _AXES)


def _charts(
    tried: Mapping[str, Sequence[int]], counts: Mapping[str, Floats], middle: Mapping[str, int]
) -> list[Chart]:
    words = {"N": "number of nodes N", "J": "number of eigenspaces J", "d": "channels d"}
    parts = ("analysis and synthesis", "network in the spectral domain")
    charts: list[Chart] = []
    for axis in _AXES:
        others = " and ".join(f"{k} = {v:,}" for k, v in middle.items() if k != axis)
        charts.append(
            LineChart(
                f"Operations against the {words[axis]}",
                f"Multiplications and additions of one pass, with {others}, on logarithmic axes. "
                "A line that climbs as fast as it goes right doubles with the number below it; "
                "twice as steep means four times; a level line does not depend on it.",
                words[axis],
                "operations",
                lines(tried[axis], dict(zip(parts, counts[axis].T, strict=True))),
                log_x=True,
                log_y=True,
            )
        )
    return charts


def _table(
    powers: Mapping[str, tuple[float, float]], full: Mapping[str, tuple[float, float]]
) -> Chart:
    names = ("analysis and synthesis", "network")
    rows = [
        [form, names[which], *(f"{abs(found[axis][which]):.2f}" for axis in _AXES)]
        for form, found in (("as examined", powers), ("full, Eq. 4", full))
        for which in (0, 1)
    ]
    caption = (
        "The exponents that fit the counts. The network's power of J is one of J + 1, its number "
        "of bands; the full form's network has a fixed width."
    )
    return DataTable("Fitted powers", caption, ["Filter", "Part", "of N", "of J", "of d"], rows)


def _remarks(full: Mapping[str, tuple[float, float]]) -> Chart:
    return remarks(
        (
            "Analysis and synthesis take O(NJd).",
            "For the diagonal form. The full form of Eq. 4 has an output of N x (J + 1) d numbers, "
            "each a sum over bands and channels: its synthesis grows like "
            f"N^{full['N'][0]:.1f} J^{full['J'][0]:.1f} d^{full['d'][0]:.1f} here.",
        ),
        (
            "This is faster than message passing, O(E d^2), if N J < E d.",
            "A graph convolution that maps channels before it sums over edges needs only "
            "O(N d^2 + E d), so against it the condition is N J < N d + E.",
        ),
    )


COMPLEXITY = Study(
    "complexity",
    "What a filter costs",
    "A step of learning takes O(N J d) operations for analysis and synthesis and O(J^2 d^2) for "
    "the network in the spectral domain, none of which depends on the edges (Sec. 4.1). "
    "Examined for the diagonal form.",
    ComplexitySettings,
    run,
)
