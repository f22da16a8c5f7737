"""How far polynomial bands are from exact ones: leakage, and error on white noise, by order.

    NLSF_DATA=... python benchmarks/polynomial_bands.py          measure what is missing
    NLSF_DATA=... python benchmarks/polynomial_bands.py --table  print the table of the rows at hand

Operator N with self loops, dyadic bands r = 0.5, S = 6, on Cora and Pubmed. The error is the
distance of all projections of white noise from the exact ones, relative to the noise.

The exact projections of Cora are by eigenvectors, which would take half an hour for Pubmed. There
polynomials of order 20,000 stand in for them. Their own distance from the exact projections is
bounded (`sharp_projections`), and the rows hold the bound.
"""

import argparse
import json
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "polynomial_bands.jsonl"
SETS = ("Cora", "Pubmed")
ORDERS = (10, 16, 32, 64, 128, 200)
LARGE = 5_000  # nodes from which on eigenvectors take too long
SHARP = 20_000  # the order that stands in for them


def bands():
    from nlsf.spectral import DyadicBands

    return DyadicBands(r=0.5, S=6)


def exact_projections(shift, x):
    """The projections of x (N, d) by eigenvectors, (B, N, d), and 0, their error."""
    import torch

    from nlsf.spectral import Lens, partial_eigh

    exact = Lens.of(partial_eigh(shift, bands=bands()), bands(), complement=False)
    return torch.stack(list(exact(x).parts())), 0.0


def sharp_projections(shift, x, order=SHARP):
    r"""The projections of x (N, d) by polynomials of a high order, (B, N, d), and their error.

    A polynomial :math:`p` of a band that passes 1/2 at its edges is nearer to 1 inside and nearer
    to 0 outside, so that :math:`(1_j - p_j)^2 \le p_j (1 - p_j)`, and for these very x

    .. math::
        \sum_j \|P_j x - p_j x\|^2 \le \sum_j \langle p_j x, x - p_j x \rangle .

    Returns:
        The projections, and the root of this bound relative to x.
    """
    import torch

    from nlsf.spectral.bands.polynomial import band_series
    from nlsf.spectral.kernels.chebyshev import ScaledOperator

    operator = ScaledOperator.of(shift)
    limits = bands().limits(operator.bandwidth)
    series = band_series(limits, operator.bandwidth, order, gap=operator.gap)[:-1]
    previous, current = x, operator.apply(x)
    found = series[:, 0, None, None] * previous + series[:, 1, None, None] * current
    for weights in series.T[2:]:
        following = torch.empty_like(current)
        operator.advance(previous, current, following)
        previous, current = current, following
        found.view(len(weights), -1).addr_(weights, current.flatten())
    left = (found * (x - found)).sum().clamp(min=0)
    return found, float(left.sqrt() / x.norm())


def measure(name):
    """The rows of one set."""
    import torch

    from nlsf.data import load
    from nlsf.spectral import Lens, PolynomialBands, laplacian

    graph = load(name).graphs[0]
    shift = laplacian(graph.edge_index, normalization="sym", self_loops=True)
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(shift.num_nodes, 8, dtype=torch.float64, generator=noise)
    reference = sharp_projections if shift.num_nodes > LARGE else exact_projections
    wanted, unsure = reference(shift, x)
    for order in ORDERS:
        soft = Lens.of(shift, PolynomialBands(bands(), order=order), complement=False)
        found = torch.stack(list(soft(x).parts()))
        yield {
            "set": name, "nodes": shift.num_nodes, "order": order,
            "leakage": float(soft.leakage.sum()),
            "error": float((found - wanted).norm() / x.norm()), "unsure": unsure,
        }  # fmt: skip


def read():
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def table():
    """The rows as Markdown."""
    rows = {(row["set"], row["order"]): row for row in read()}
    lines = ["| order | " + " | ".join(map(str, ORDERS)) + " |", "|---" * (len(ORDERS) + 1) + "|"]
    for name in SETS:
        if (name, ORDERS[0]) in rows:
            for what, digits in (("leakage", 3), ("error", 2)):
                cells = [f"{rows[name, order][what]:.{digits}f}" for order in ORDERS]
                lines.append(f"| {name}, {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        ROWS.parent.mkdir(exist_ok=True)
        for name in SETS:
            if any(row["set"] == name for row in read()):
                continue
            for row in list(measure(name)):
                with ROWS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(table())


if __name__ == "__main__":
    main()
