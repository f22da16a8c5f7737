"""The linear operators that commute with functional shifts are the linear filters (Lemma 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from nlsf.lab.study import Finding, Floats, Study, at_least, lines, remarks, setting
from nlsf.report.charts import Chart, DataTable, HeatMap, LineChart
from nlsf.report.numbers import percent
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    Lens,
    Spectrum,
    UniformBands,
    laplacian,
    partial_eigh,
    sample_shift,
)
from nlsf.testing.graphs import TinyGraph, star, torus, weighted

Space: TypeAlias = Spectrum | Lens
Draw: TypeAlias = Callable[[Space, torch.Generator], Floats]

_EXACT, _SMALL = 1e-9, 1e-6
"""Relative errors below the first are rounding; the e of a filter may cause the second."""

_ZERO = 1e-6
"""Singular values below this share of the largest count as zero."""


@dataclass(frozen=True)
class CommutingSettings:
    """Settings of the study ``commuting``."""

    samples: int = setting(24, "random functional shifts of each group")
    channels: int = setting(2, "channels of the signal in the second half of the table")
    eps: float = setting(1e-9, "the e in the denominator of the filter")
    seed: int = setting(0, "of the shifts and signals")

    def __post_init__(self) -> None:
        at_least(1, samples=self.samples, channels=self.channels)


@dataclass(frozen=True)
class _Case:
    """A group of shifts on a graph: that of a spectrum (Def. 1), or of bands (Def. 2, 3)."""

    graph: str
    group: str
    space: Space
    channels: int


@dataclass(frozen=True)
class _Measured:
    """What commutes with the sampled shifts of a case, beside the linear filters.

    Attributes:
        case: the group.
        shifts: those that were sampled.
        values: the singular values of the equations, ascending.
        operators: (m, Nd, Nd), a basis of the operators that commute.
        expected: the dimension of the linear filters.
        misfit: the largest part of a unit operator that no filter explains.
    """

    case: _Case
    shifts: Sequence[Floats]
    values: Floats
    operators: Floats
    expected: int
    misfit: float


def random_shift(space: Space, generator: torch.Generator) -> Floats:
    """A random functional shift as a matrix (N, N)."""
    matrix: Floats = sample_shift(space, generator=generator).matrix().numpy()
    return matrix


def run(settings: CommutingSettings, draw: Draw = random_shift) -> Finding:
    r"""Solves :math:`B U_i = U_i B` for B, and compares the solutions with linear filters.

    A linear filter with a d x d matrix a band, :math:`X \mapsto \sum_j P_j X M_j`, has
    :math:`b d^2` parameters for b bands that are not empty: the dimension that Lemma 1 predicts.

    Args:
        settings: of the study.
        draw: draws a functional shift of the group of a spectrum (Def. 1) or lens (Def. 2, 3).
    """
    measured = [_measure(case, settings, draw) for case in _cases(settings.channels)]
    linear, mixing = _as_nonlinear_filters(settings)
    dimensions, expected = [len(m.operators) for m in measured], [m.expected for m in measured]
    misfit = max(m.misfit for m in measured)
    data = {
        "dimension": np.array(dimensions),
        "expected": np.array(expected),
        "residual": np.array([m.misfit for m in measured]),
        "gap": np.array([[*m.values, 0.0][len(m.operators)] for m in measured]),
        "filter_error": linear,
        "mixing_defect": mixing,
    }
    holds = dimensions == expected and misfit < _EXACT and linear < _SMALL
    same = sum(a == b for a, b in zip(dimensions, expected, strict=True))
    conclusion = (
        f"In {same} of {len(dimensions)} cases the operators that commute with {settings.samples} "
        "sampled shifts have exactly the dimension of the linear filters: the number of bands "
        "times the square of the number of channels. Filters fit these operators to "
        f"{misfit:.0e}."
    )
    charts = [
        *_charts(measured, settings),
        remarks(
            (
                "The operators are the filters with a linear function Psi.",
                "With a = 1 and e -> 0, Psi must also act on each band by itself: c_j -> b_j c_j "
                f"gives the operator (error {linear:.0e} at e = {settings.eps:g}). A linear Psi "
                f"that mixes bands commutes with the shifts, but is not additive: its output for "
                f"x + y misses the sum of the outputs by {percent(mixing, 0)}.",
            )
        ),
    ]
    return Finding(data, charts, conclusion, holds)


def _measure(case: _Case, settings: CommutingSettings, draw: Draw) -> _Measured:
    generator = torch.Generator().manual_seed(settings.seed)
    shifts = [draw(case.space, generator) for _ in range(settings.samples)]
    values, operators = commutant(shifts, case.channels)
    basis = filters(case.space, case.channels)
    misfit = distance_from_span(operators, basis)
    return _Measured(case, shifts, values, operators, len(basis), misfit)


def commutant(shifts: Sequence[Floats], channels: int) -> tuple[Floats, Floats]:
    """Ascending singular values of B -> (B U - U B)_U, and a basis (m, Nd, Nd) of its kernel.

    Singular values are relative to the largest; U acts on every channel alike. They are roots of
    eigenvalues, so that a zero shows as 1e-8.
    """
    size = shifts[0].shape[0] * channels
    eye, gram = np.eye(size), np.zeros((size**2, size**2))
    for shift in shifts:
        U = np.kron(shift, np.eye(channels))
        # With the rows of B one after the other, U B is (U x I) vec B and B U is (I x U^T) vec B.
        equations = np.kron(U, eye) - np.kron(eye, U.T)
        gram += equations.T @ equations
    squares, vectors = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares, 0.0) / max(squares[-1], 1e-300))
    return values, vectors.T[values < _ZERO].reshape(-1, size, size)


def filters(space: Space, channels: int) -> Floats:
    """An orthonormal basis (m, Nd, Nd) of the filters X -> sum_j P_j X M_j."""
    if isinstance(space, Spectrum):
        space = Lens.of(space, IndexBands(space.num_eigenspaces))
    eye = torch.eye(space.num_nodes, dtype=torch.float64)
    basis = []
    for P in (part.numpy() for part in space(eye).parts()):
        if np.trace(P) < 0.5:  # an empty band
            continue
        for k in range(channels**2):
            unit = np.zeros(channels**2)
            unit[k] = 1.0
            basis.append(np.kron(P, unit.reshape(channels, channels)) / np.sqrt(np.trace(P)))
    return np.array(basis)


def distance_from_span(found: Floats, basis: Floats) -> float:
    """The largest distance of a unit operator among those found from the span of the basis."""
    if len(found) == 0:
        return 1.0
    a, b = found.reshape(len(found), -1), basis.reshape(len(basis), -1)
    return float(np.linalg.norm(a - (a @ b.T) @ b, 2))


def _cases(channels: int) -> list[_Case]:
    graphs: Mapping[str, TinyGraph] = {"torus": torus(3, 4), "star": star(7), "path": weighted(9)}
    cases = []
    for name, graph in graphs.items():
        spectrum = partial_eigh(laplacian(graph))
        groups: Mapping[str, Space] = {
            "all eigenspaces": spectrum,
            "3 leading eigenspaces": Lens.of(spectrum, IndexBands(3)),
            "dyadic bands": Lens.of(spectrum, DyadicBands(S=4)),
            "uniform bands": Lens.of(spectrum, UniformBands(S=3)),
        }
        cases += [_Case(name, group, space, 1) for group, space in groups.items()]
        if name == "star":
            cases += [_Case(name, group, space, channels) for group, space in groups.items()]
    return cases


def _in_eigenbasis(null: Floats, space: Space, seed: int) -> Floats:
    """A random operator of those found, seen between eigenvectors in order of frequency."""
    V = (space if isinstance(space, Spectrum) else space.spectrum).vectors.numpy()
    weights = np.random.default_rng(seed).normal(size=len(null))
    seen: Floats = np.abs(V.T @ np.tensordot(weights, null, axes=1) @ V)
    return seen


def _as_nonlinear_filters(settings: CommutingSettings) -> tuple[float, float]:
    """Error of a linear filter written as an NLSF, and how far a mixing Psi is from additive."""
    generator = torch.Generator().manual_seed(settings.seed)
    lens = Lens.of(partial_eigh(laplacian(torus(3, 4))), DyadicBands(S=4), complement=False)
    n, bands = lens.num_nodes, lens.n_bands
    x, y = torch.randn(2, n, 1, dtype=torch.float64, generator=generator)
    gains = torch.randn(bands, 1, dtype=torch.float64, generator=generator)
    weight = torch.randn(bands, bands, dtype=torch.float64, generator=generator)

    def theta(z: torch.Tensor, psi: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        return lens(z).synthesize(psi(lens(z).norms()), a=1.0, eps=settings.eps)

    parts = lens(x).parts()
    exact = sum((g * part for g, part in zip(gains, parts, strict=True)), torch.zeros_like(x))
    error = torch.linalg.vector_norm(theta(x, lambda c: gains * c) - exact)
    both = theta(x + y, lambda c: weight @ c)
    each = theta(x, lambda c: weight @ c) + theta(y, lambda c: weight @ c)
    norm = torch.linalg.vector_norm
    return float(error / norm(exact)), float(norm(both - each) / norm(each))


def _charts(measured: Sequence[_Measured], settings: CommutingSettings) -> list[Chart]:
    of_torus = {
        m.case.group: m for m in measured if (m.case.graph, m.case.channels) == ("torus", 1)
    }
    first = range(1, min(settings.samples, 8) + 1)
    left = {
        group: [len(commutant(m.shifts[:count], 1)[1]) for count in first]
        for group, m in of_torus.items()
    }
    dyadic = of_torus["dyadic bands"]
    some = dyadic.values[:24]
    picture = _in_eigenbasis(dyadic.operators, dyadic.case.space, settings.seed)
    nodes = [str(i + 1) for i in range(len(picture))]
    header = ["Graph", "Nodes", "Group of shifts", "Channels", "Filters", "Found", "Misfit"]
    rows = [
        [
            m.case.graph,
            str(m.case.space.num_nodes),
            m.case.group,
            *(str(number) for number in (m.case.channels, m.expected, len(m.operators))),
            f"{m.misfit:.0e}",
        ]
        for m in measured
    ]
    return [
        LineChart(
            "Every shift rules operators out, until filters remain",
            "How many independent operators commute with the first shifts that were drawn, on a "
            "torus of 12 nodes (of 144 operators). Each curve ends at the number of its bands.",
            "shifts",
            "independent operators",
            lines(first, left),
            log_y=True,
        ),
        LineChart(
            "The gap that counts them",
            "Singular values of the equations B U = U B for dyadic bands of the torus. Those at "
            "the level of rounding are operators that commute exactly; the next one is far away, "
            "so there is no doubt how many there are.",
            "number",
            "singular value",
            lines(range(1, len(some) + 1), {"singular value": some}, points=True),
            log_y=True,
        ),
        HeatMap(
            "An operator that commutes is a number a band",
            "A random one of the operators found for dyadic bands of the torus, in absolute value, "
            "seen between eigenvectors of the Laplacian in order of frequency. It is diagonal, "
            "with the same number all over a band.",
            "eigenvector",
            "eigenvector",
            nodes,
            nodes,
            np.round(picture, 3).tolist(),
        ),
        DataTable(
            "All cases",
            "The dimension of all linear filters, the dimension of the operators that commute with "
            "the sampled shifts, and the largest part of such an operator that no filter explains.",
            header,
            rows,
        ),
    ]


COMMUTING = Study(
    "commuting",
    "Linear filters are the commuting operators",
    "A linear operator commutes with the functional shifts of a set of bands exactly if it is a "
    "linear filter, one number a band (Lemma 1, App. D.2.1).",
    CommutingSettings,
    run,
)
