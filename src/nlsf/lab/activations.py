"""Activations break the functional symmetry, nonlinear spectral filters keep it (App. A)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from nlsf.errors import ConfigError
from nlsf.lab.study import (
    Finding,
    Floats,
    Study,
    at_least,
    lines,
    relative_error,
    remarks,
    seeded,
    setting,
)
from nlsf.nn import NodeNLSF
from nlsf.report.charts import BarChart, Chart, LineChart
from nlsf.report.numbers import percent
from nlsf.spectral import (
    FunctionalShift,
    IndexBands,
    ShiftOperator,
    Spectrum,
    equivariance_error,
    laplacian,
    partial_eigh,
    sample_shift,
)

Map: TypeAlias = Callable[[Tensor], Tensor]
Layer: TypeAlias = Callable[[Spectrum, int], Map]

_EXACT = 1e-9
_BROKEN = 1e-2
"""Relative errors below the first are rounding; above the second, a symmetry is broken."""


@dataclass(frozen=True)
class ActivationSettings:
    """Settings of the study ``activations``."""

    num_nodes: int = setting(100, "nodes of the circle")
    first: int = setting(10, "first frequency f of the signal, exp(i pi f n / nodes); even")
    second: int = setting(20, "second frequency, even")
    distance: int = setting(5, "how many nodes both frequencies are moved")
    samples: int = setting(20, "random functional shifts and signals that are tried as well")
    seed: int = setting(0, "of those")

    def __post_init__(self) -> None:
        at_least(1, distance=self.distance, samples=self.samples)
        at_least(4, num_nodes=self.num_nodes)
        for name in ("first", "second"):
            f = getattr(self, name)
            if f % 2 or not 0 < f < self.num_nodes:
                raise ConfigError(
                    f"{name} must be even and lie between 0 and num_nodes, not {f!r}: only then "
                    "does the wave close on the circle."
                )


def nonlinear_filter(spectrum: Spectrum, seed: int) -> Map:
    """A `NodeNLSF` with a random response on all eigenspaces of the spectrum, in float64."""
    with seeded(seed):
        bands = IndexBands(spectrum.num_eigenspaces)
        # Two waves leave most bands empty, where a small e would amplify the rounding.
        layer = NodeNLSF(1, 1, bands, a=1.0, start="random", eps=1e-2).double()
    return lambda x: layer(x, spectrum=spectrum)


def run(settings: ActivationSettings, layer: Layer = nonlinear_filter) -> Finding:
    r"""Compares :math:`\rho(Sx)` with :math:`S\rho(x)` for activations and for the filter.

    Three cases. *Printed*: the paper's complex wave, with S on the two frequencies alone. *Real*:
    its real part on the ring's Laplacian, with S on both signs of the frequencies, so that S keeps
    real signals real. *Sampled*: random shifts of the ring and random signals.

    Args:
        settings: of the study.
        layer: makes the map that is claimed to keep the symmetry, of a spectrum and a seed.
    """
    n = settings.num_nodes
    wave = _wave(settings)
    printed = FunctionalShift.from_matrix(_multiplier(settings, both=False), _derivative(n))
    real = FunctionalShift.from_matrix(_multiplier(settings, both=True).real, _ring(n))
    circle, ring = partial_eigh(_derivative(n)), partial_eigh(_ring(n))
    moved = torch.roll(wave, settings.distance, dims=0)
    relu_wave = torch.relu(wave.real)
    errors = {
        "S x = D x": relative_error(printed(wave), moved),
        "ReLU(D x) = D ReLU(x)": relative_error(
            torch.relu(moved.real), torch.roll(relu_wave, settings.distance, dims=0)
        ),
        "printed, real part alone": equivariance_error(lambda x: x.real, wave, printed),
        "printed, ReLU": equivariance_error(lambda x: torch.relu(x.real), wave, printed),
        "printed, filter": equivariance_error(layer(circle, settings.seed), wave, printed),
        "real, ReLU": equivariance_error(torch.relu, wave.real, real),
        "real, filter": equivariance_error(layer(ring, settings.seed), wave.real, real),
    }
    sampled = _sampled(ring, settings, layer)
    amplitude = torch.fft.fft(relu_wave[:, 0]).abs().numpy() / n
    holds = (
        all(errors[key] < _EXACT for key in ("S x = D x", "ReLU(D x) = D ReLU(x)"))
        and all(errors[key] > _BROKEN for key in ("printed, ReLU", "real, ReLU"))
        and all(errors[key] < _EXACT for key in ("printed, filter", "real, filter"))
        and float(sampled["filter"].max()) < _EXACT
        and all(float(v.min()) > _BROKEN for key, v in sampled.items() if key != "filter")
    )
    worst = max(errors["printed, filter"], errors["real, filter"], float(sampled["filter"].max()))
    conclusion = (
        f"ReLU(Sx) and S ReLU(x) differ by {percent(errors['printed, ReLU'], 0)} of ReLU(x) for "
        f"the paper's complex wave, and by {percent(errors['real, ReLU'], 0)} for its real part. "
        f"The filter's error is at most {worst:.0e} there and on {settings.samples} random shifts."
    )
    data = {
        "errors": errors,
        "sampled": sampled,
        "relu_spectrum": amplitude,
        "mean_of_relu": float(amplitude[0]),
        "eigenspaces": circle.num_eigenspaces,
    }
    waves = [x[:, 0] for x in (wave.real, torch.relu(real(wave.real)), real(relu_wave))]
    charts = [*_charts(settings, waves, data), _remarks(n, circle.num_eigenspaces, errors)]
    return Finding(data, charts, conclusion, holds)


def _remarks(n: int, eigenspaces: int, errors: Mapping[str, float]) -> Chart:
    return remarks(
        (
            "Frequency f is the wave exp(i pi f n / 100).",
            "It turns f / 2 times around the circle: 10 and 20 are the Fourier modes 5 and 10.",
        ),
        (
            "The functional shifts of the first central difference are the operators that are "
            "diagonal in the frequency domain.",
            f"Its eigenvalues i sin(2 pi k / {n}) repeat: {eigenspaces} eigenspaces for {n} modes. "
            "So there are more functional shifts; S is one of them.",
        ),
        (
            "The nonlinearity is the real part followed by ReLU.",
            "S moves frequencies of one sign only, so the real part alone, without ReLU, already "
            f"has an error of {percent(errors['printed, real part alone'], 0)}. The real wave, "
            f"where S moves both signs, shows what ReLU itself does: "
            f"{percent(errors['real, ReLU'], 0)}.",
        ),
    )


def _wave(settings: ActivationSettings) -> Tensor:
    """(N, 1), complex: the sum of the two waves."""
    n = torch.arange(settings.num_nodes, dtype=torch.float64)
    phases = [math.pi * f * n / settings.num_nodes for f in (settings.first, settings.second)]
    return torch.stack([torch.exp(1j * phase) for phase in phases]).sum(0)[:, None]


def _multiplier(settings: ActivationSettings, *, both: bool) -> Tensor:
    """S as a matrix: the Fourier modes of the two frequencies move, all others stay."""
    n = settings.num_nodes
    factor = torch.ones(n, dtype=torch.complex128)
    for mode in {settings.first // 2, settings.second // 2}:
        turn = np.exp(-2j * math.pi * mode * settings.distance / n)
        factor[mode] = turn
        if both:
            factor[-mode] = np.conj(turn)
    modes = torch.fft.fft(torch.eye(n, dtype=torch.complex128), dim=0)
    matrix: Tensor = torch.fft.ifft(factor[:, None] * modes, dim=0)
    return matrix


def _derivative(n: int) -> ShiftOperator:
    """The first central difference of a circle, times -i, which makes it Hermitian."""
    step = np.roll(np.eye(n), -1, axis=0)
    return ShiftOperator.from_matrix(-0.5j * (step - step.T), name="-i central difference")


def _ring(n: int) -> ShiftOperator:
    """The Laplacian of the circle: the second difference."""
    start = torch.arange(n)
    return laplacian(torch.stack([start, (start + 1) % n]), num_nodes=n, symmetrize="sum")


def _sampled(ring: Spectrum, settings: ActivationSettings, layer: Layer) -> dict[str, Floats]:
    """Errors (samples,) of each map for random shifts of the ring and random signals."""
    generator = torch.Generator().manual_seed(settings.seed)
    maps: Mapping[str, Map] = {
        "ReLU": torch.relu,
        "absolute value": torch.abs,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "filter": layer(ring, settings.seed + 1),
    }
    errors: dict[str, list[float]] = {name: [] for name in maps}
    for _ in range(settings.samples):
        shift = sample_shift(ring, generator=generator)
        x = torch.randn(settings.num_nodes, 1, dtype=torch.float64, generator=generator)
        for name, f in maps.items():
            errors[name].append(equivariance_error(f, x, shift))
    return {name: np.array(values) for name, values in errors.items()}


def _charts(
    settings: ActivationSettings,
    waves: Sequence[Tensor],
    data: Mapping[str, dict[str, Floats]],
) -> list[Chart]:
    nodes, (x, cut_last, cut_first) = range(settings.num_nodes), waves
    shown = min(settings.num_nodes // 2 + 1, 41)
    sampled, amplitude = data["sampled"], np.asarray(data["relu_spectrum"])
    names = list(sampled)
    middle = [float(np.median(sampled[name])) for name in names]
    whiskers = [(float(sampled[name].min()), float(sampled[name].max())) for name in names]
    turns = sorted({settings.first // 2, settings.second // 2})
    return [
        LineChart(
            "The order of activation and shift matters",
            f"Two waves on a circle of {settings.num_nodes} nodes. One line first moves them by "
            f"{settings.distance} nodes and then cuts off what is negative, the other cuts off "
            "first. If the activation respected the shift S, the lines would lie on each other.",
            "node",
            "value",
            [
                *lines(nodes, {"ReLU(S x): move, then cut": cut_last}),
                *lines(nodes, {"S ReLU(x): cut, then move": cut_first}),
                *lines(nodes, {"x": x}, faint=True),
            ],
        ),
        BarChart(
            "Cutting off creates new frequencies",
            "How much of each frequency is in ReLU(x). The signal x has only "
            f"{' and '.join(map(str, turns))} turns around the circle. The others, "
            "the mean value (0 turns) among them, are new: S does not move them.",
            "turns around the circle",
            "amplitude",
            [str(k) for k in range(shown)],
            [("ReLU(x)", amplitude[:shown].tolist())],
        ),
        BarChart(
            "Error of activations and of the filter under random shifts",
            "How far f(U x) is from U f(x), relative to f(x), on a logarithmic axis: the median of "
            f"{settings.samples} random functional shifts U of the circle with random signals x, "
            "and the range of all. 0 would be perfect; the filter's error is rounding.",
            "",
            "relative error",
            names,
            [("error", middle)],
            log_y=True,
            ranges=[whiskers],
        ),
    ]


ACTIVATIONS = Study(
    "activations",
    "Activations break the symmetry",
    "A pointwise activation does not commute with functional shifts, the graph's translations, "
    "not even on a circle; a nonlinear spectral filter does (App. A and Prop. 1).",
    ActivationSettings,
    run,
)
