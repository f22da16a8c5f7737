"""A Gaussian on a torus, moved as a whole and moved at two speeds (App. B.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from nlsf.data.generators import torus
from nlsf.errors import ConfigError
from nlsf.lab.study import (
    Finding,
    Floats,
    Study,
    at_least,
    lines,
    relative_error,
    seeded,
    setting,
)
from nlsf.nn import NodeNLSF
from nlsf.report.charts import Chart, LineChart, Pictures, Tiles
from nlsf.report.numbers import percent
from nlsf.spectral import IndexBands, Lens, laplacian, partial_eigh

_EXACT = 1e-9
_DIFFERENT = 0.05
"""Relative errors below the first are rounding; above the second, two pictures differ."""

_BANDS = 30


@dataclass(frozen=True)
class TranslationSettings:
    """Settings of the study ``translation``."""

    side: int = setting(31, "nodes along each side of the torus, odd")
    deviation: float = setting(1.0, "standard deviation of the Gaussian, in nodes")
    cutoff: float = setting(1.0, "largest eigenvalue of the Laplacian that counts as low")
    low_speed: float = setting(1.0, "nodes that low frequencies move in a unit of time")
    high_speed: float = setting(0.4, "nodes that high frequencies move in a unit of time")
    times: tuple[int, ...] = setting((0, 5, 10, 15), "the times of the pictures")
    seed: int = setting(0, "of the filter whose symmetry is measured")

    def __post_init__(self) -> None:
        at_least(5, side=self.side)
        at_least(1e-3, deviation=self.deviation)
        if self.side % 2 == 0:
            raise ConfigError(
                f"side must be odd, not {self.side}: the highest frequency of an even side cannot "
                "be moved by a part of a node."
            )
        if len(self.times) < 2 or self.times[-1] <= 0:
            raise ConfigError("times must be at least two numbers, the last one positive.")


Translate: TypeAlias = Callable[[Floats, float, TranslationSettings], Floats]


def classical(images: Floats, t: float, settings: TranslationSettings) -> Floats:
    """Images (..., M, M) with all frequencies moved by t nodes down and to the right."""
    return _modulated(images, np.full((settings.side, settings.side), t))


def functional(images: Floats, t: float, settings: TranslationSettings) -> Floats:
    r"""Images (..., M, M) with low and high frequencies moved at their own speeds.

    .. math::
        \hat I'(u, v) = \hat I(u, v) \, e^{-2 \pi i (u + v) s t}

    with u and v in turns a node, and s the speed of the band that the eigenvalue
    :math:`4 - 2 \cos 2 \pi u - 2 \cos 2 \pi v` of the Laplacian lies in.
    """
    low = _low(settings)
    return _modulated(images, t * np.where(low, settings.low_speed, settings.high_speed))


def run(settings: TranslationSettings, translate: Translate = functional) -> Finding:
    """Moves a Gaussian both ways, and measures whether the second way is a functional shift.

    Args:
        settings: of the study.
        translate: the map that is claimed to be a functional shift and not a translation.
    """
    side, last = settings.side, settings.times[-1]
    picture = _gaussian(settings)
    rolled = [np.roll(picture, (t, t), (0, 1)) for t in settings.times]
    tops = [classical(picture, t, settings) for t in settings.times]
    shift = laplacian(torus(side, side))
    spectrum = partial_eigh(shift)
    eye = np.eye(side * side).reshape(-1, side, side)
    U = translate(eye, last, settings).reshape(side * side, -1).T
    L: Floats = shift.matrix.toarray()
    x, moved = picture.reshape(-1, 1), U @ picture.reshape(-1, 1)

    lens = Lens.of(spectrum, IndexBands(spectrum.num_eigenspaces))
    norms = lens(torch.from_numpy(x)).norms().numpy()
    norms_moved = lens(torch.from_numpy(moved)).norms().numpy()
    with seeded(settings.seed):
        layer = NodeNLSF(1, 1, IndexBands(_BANDS), a=1.0, start="random").double()
    with torch.no_grad():
        out = layer(torch.from_numpy(x), spectrum=spectrum).numpy()
        out_moved = layer(torch.from_numpy(moved), spectrum=spectrum).numpy()
    low = lens.frequencies.numpy() <= settings.cutoff
    displacement = _displacements(picture, translate, settings)
    data: dict[str, Any] = {
        "classical_error": max(relative_error(a, b) for a, b in zip(tops, rolled, strict=True)),
        "unitary_error": float(np.abs(U.T @ U - np.eye(len(U))).max()),
        "commutator": float(np.abs(U @ L - L @ U).max() / shift.scale),
        "coefficient_error": relative_error(norms_moved, norms),
        "filter_error": relative_error(out_moved, U @ out),
        "to_nearest_translation": _to_nearest(picture, moved.reshape(side, side)),
        "largest_entry": float(np.abs(U).max()),
        "displacement": displacement,
        "low_energy": float((norms[:, 0] ** 2)[low].sum()) / float((norms**2).sum()),
    }
    exact = ("classical_error", "unitary_error", "commutator", "coefficient_error", "filter_error")
    speeds = {"low": settings.low_speed, "high": settings.high_speed}
    on_time = all(
        np.abs(displacement[part] - (speed * displacement["t"]) % side).max() <= 0.5 + _EXACT
        for part, speed in speeds.items()
    )
    holds = (
        all(data[key] < _EXACT for key in exact)
        and data["to_nearest_translation"] > _DIFFERENT
        and on_time
    )
    conclusion = (
        f"Low frequencies moved {settings.low_speed * last:g} nodes and high ones "
        f"{settings.high_speed * last:g}, by a unitary map that commutes with the Laplacian (error "
        f"{data['commutator']:.0e}). It keeps all {spectrum.num_eigenspaces} spectral coefficients "
        f"(error {data['coefficient_error']:.0e}), and leaves the picture "
        f"{percent(data['to_nearest_translation'], 0)} away from the nearest translation."
    )
    return Finding(data, _charts(settings, picture, tops, translate, data), conclusion, holds)


def _gaussian(settings: TranslationSettings) -> Floats:
    """(M, M), a Gaussian around a node near the upper left corner, so that it has room to move."""
    place = np.arange(settings.side) - settings.side // 4
    place = (place + settings.side // 2) % settings.side - settings.side // 2
    bump = np.exp(-(place**2) / (2 * settings.deviation**2))
    return bump[:, None] * bump


def _low(settings: TranslationSettings) -> np.ndarray[Any, np.dtype[np.bool_]]:
    wave = 2 - 2 * np.cos(2 * math.pi * np.fft.fftfreq(settings.side))
    low: np.ndarray[Any, np.dtype[np.bool_]] = wave[:, None] + wave <= settings.cutoff
    return low


def _modulated(images: Floats, distance: Floats) -> Floats:
    u = np.fft.fftfreq(images.shape[-1])
    turn = np.exp(-2j * math.pi * (u[:, None] + u) * distance)
    moved: Floats = np.fft.ifft2(np.fft.fft2(images) * turn).real
    return moved


def _to_nearest(picture: Floats, moved: Floats) -> float:
    """Relative distance to the nearest translation of the picture by whole nodes."""
    squared = (picture**2).sum() + (moved**2).sum() - 2 * _correlation(picture, moved).max()
    return float(np.sqrt(max(squared, 0.0)) / np.linalg.norm(picture))


def _correlation(a: Floats, b: Floats) -> Floats:
    """(M, M): the inner product of b with a moved by each number of nodes."""
    found: Floats = np.fft.ifft2(np.fft.fft2(a).conj() * np.fft.fft2(b)).real
    return found


def _displacements(
    picture: Floats, translate: Translate, settings: TranslationSettings
) -> dict[str, Floats]:
    """How far the low and the high part have moved along the diagonal, at every whole time."""
    low = np.fft.ifft2(np.fft.fft2(picture) * _low(settings)).real
    times = np.arange(settings.times[-1] + 1)
    found: dict[str, Floats] = {"t": times.astype(np.float64)}
    for name, part in (("low", low), ("high", picture - low)):
        rows = [
            np.diag(_correlation(part, translate(part, float(t), settings))).argmax() for t in times
        ]
        found[name] = np.array(rows, dtype=np.float64)
    return found


def _charts(
    settings: TranslationSettings,
    picture: Floats,
    tops: list[Floats],
    translate: Translate,
    data: Mapping[str, Any],
) -> list[Chart]:
    bottoms = [translate(picture, t, settings) for t in settings.times]
    frames = range(settings.times[-1] + 1)
    film = [[move(picture, t, settings) for t in frames] for move in (classical, translate)]
    rows = ["Classical translation", "Functional translation"]
    moved = data["displacement"]
    return [
        Pictures(
            "Moved as a whole, and moved at two speeds",
            "A bump on a square whose opposite sides are joined. In the upper row everything moves "
            "alike and the bump keeps its shape. In the lower row its smooth part moves "
            f"{settings.low_speed:g} and its fine part {settings.high_speed:g} nodes in a unit of "
            "time, so it comes apart. To the spectrum of the graph both are translations.",
            rows,
            [f"t = {t}" for t in settings.times],
            np.round([tops, bottoms], 3).tolist(),
        ),
        Pictures(
            "The same as a film",
            "Press Play, or move the slider through time.",
            ["Classical", "Functional"],
            [f"t = {t}" for t in frames],
            np.round(film, 3).tolist(),
            moving=True,
        ),
        Tiles(
            [
                (
                    "Energy in low frequencies",
                    percent(data["low_energy"], 0),
                    f"eigenvalues of the Laplacian up to {settings.cutoff:g}, of at most 8",
                ),
                (
                    "Largest entry of the map",
                    f"{data['largest_entry']:.2f}",
                    "1 if it only renumbered nodes, as every classical symmetry does",
                ),
                (
                    "Error of a filter",
                    f"{data['filter_error']:.0e}",
                    f"filtering before and after the move, {_BANDS} eigenspaces and the rest",
                ),
            ]
        ),
        LineChart(
            "Where the two parts are",
            "How far the smooth and the fine part of the bump have moved, found by comparing each "
            "with itself at time 0, to the nearest node.",
            "time",
            "nodes moved",
            lines(
                moved["t"],
                {"low frequencies": moved["low"], "high frequencies": moved["high"]},
                points=True,
            ),
        ),
    ]


TRANSLATION = Study(
    "translation",
    "Translation at two speeds",
    "Moving the low and the high frequencies of a signal on a torus by different distances is a "
    "functional shift, though no translation and no renumbering of nodes (App. B.1).",
    TranslationSettings,
    run,
)
