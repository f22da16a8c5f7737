"""Points as Optuna sees them: `Grid`."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nlsf.experiments.space import Choice, Point, Space, decode, encode

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_LISTED = 2_000
"""Points that are listed to find one not tried yet; larger spaces are drawn from."""

_DRAWS = 200
_ALONE = 100
"""Draws of a neighbour that differs in one key, before two may differ."""


@dataclass(frozen=True)
class Grid:
    """A space in the parameters of Optuna.

    Numbers become their place in ascending order, so that the sampler knows which of them are
    neighbours; all other choices become their JSON.

    Attributes:
        space: the choices.
    """

    space: Space

    def distributions(self) -> dict[str, BaseDistribution]:
        """What Optuna draws from, by key."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        return {
            key: IntDistribution(0, len(values) - 1)
            if _ordered(values)
            else CategoricalDistribution([encode(value) for value in values])
            for key, values in self.space.choices.items()
        }

    def params(self, point: Point) -> dict[str, Any]:
        """The parameters of a point."""
        return {
            key: [encode(value) for value in sorted(values)].index(encode(point[key]))  # type: ignore[type-var]
            if _ordered(values)
            else encode(point[key])
            for key, values in self.space.choices.items()
        }

    def point(self, params: Mapping[str, Any]) -> Point:
        """The point of some parameters; those that are not drawn yet are left out."""
        return {
            key: sorted(values)[params[key]] if _ordered(values) else decode(params[key])  # type: ignore[type-var]
            for key, values in self.space.choices.items()
            if key in params
        }

    def neighbour(
        self, point: Point, tried: Collection[str], seed: int, turn: int = 0
    ) -> Point | None:
        """A point that is not tried and differs from this one in a key or two; else ``None``.

        Args:
            point: the point.
            tried: the `key` of every point that is tried.
            seed: of the draw.
            turn: keys take turns: this is whose turn it is to be changed.
        """
        rng = np.random.default_rng(seed)
        free = [name for name, values in self.space.choices.items() if len(values) > 1]
        for draw in range(_DRAWS if free else 0):
            # Where its other choices are all tried, any key may go with it.
            names = [free[turn % len(free)], *rng.choice(free, 1)][: 1 + (draw >= _ALONE)]
            changed = {**point, **{str(name): self._other(str(name), point, rng) for name in names}}
            if key(changed) not in tried:
                return changed
        return None

    def _other(self, name: str, point: Point, rng: np.random.Generator) -> Choice:
        """Another choice of a key than that of a point."""
        others = [v for v in self.space.choices[name] if encode(v) != encode(point[name])]
        return others[int(rng.integers(len(others)))]

    def untried(self, tried: Collection[str], seed: int) -> Point | None:
        """A random point whose `key` is not among those tried; ``None`` if there is none."""
        rng = np.random.default_rng(seed)
        choices = self.space.choices
        if self.space.size <= _LISTED:
            every = (
                dict(zip(choices, values, strict=True))
                for values in itertools.product(*choices.values())
            )
            left = [point for point in every if key(point) not in tried]
            return left[int(rng.integers(len(left)))] if left else None
        while True:  # more points than can be tried, so most draws are new
            point = {
                name: values[int(rng.integers(len(values)))] for name, values in choices.items()
            }
            if key(point) not in tried:
                return point


def key(point: Point) -> str:
    """A text that equal points share."""
    return encode(dict(point))


def _ordered(values: tuple[Choice, ...]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
