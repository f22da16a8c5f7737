"""The charts of the study `transfer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nlsf.lab.study import remarks
from nlsf.report.charts import Chart, DataTable, LineChart, Series


def charts_of(nodes: Sequence[int], uneven: float, data: Mapping[str, Any]) -> list[Chart]:
    """Errors by size on the first space, a filter that was moved, all errors, and remarks."""
    nodes = list(nodes)
    charts: list[Chart] = []
    for case in data["cases"][:2]:
        e = case["errors"]
        lines = [
            Series("index on L, to the space", nodes, e["index, space"].tolist()),
            Series("value on N, to the space", nodes, e["value, space"].tolist()),
            Series("index on L, two graphs", nodes, e["index, pair"].tolist()),
            Series("value on N, two graphs", nodes, e["value, pair"].tolist()),
            Series("eigenvectors one by one, two graphs", nodes, e["single, pair"].tolist()),
        ]
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
                lines,
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
            [
                Series("index on L, even", nodes, even["index"].tolist()),
                Series("value on N, even", nodes, even["value"].tolist()),
                Series("index on L, uneven", nodes, other["index"].tolist()),
                Series("value on N, uneven", nodes, other["value"].tolist()),
            ],
            log_x=True,
        )
    )
    names = {
        "index, space": "index on L, to the space",
        "value, space": "value on N, to the space",
        "index, pair": "index on L, two graphs",
        "value, pair": "value on N, two graphs",
        "single, pair": "one by one, two graphs",
    }
    rows = [
        [
            case["space"],
            f"{case['s']:g}",
            name,
            *(_percent(e) for e in case["errors"][key]),
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
            f"{', '.join(_percent(d) for d in left)} away from the space for r = 0.6, 0.3, 0.15.",
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


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
