"""Circle, torus and sphere: points of any density, and the eigenfunctions of their Laplacians."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import eval_legendre, j1
from torch_geometric.data import Data

from nlsf.data.dataset import undirected
from nlsf.errors import ConfigError, unknown_name
from nlsf.lab.study import Floats


@dataclass(frozen=True)
class Space:
    r"""A space on which all balls of a radius have the same volume V, with probability dx.

    Its Laplacian is that of App. D.5 divided by V, the operator that N is compared with:

    .. math::
        \mathcal{L} f(x) = \frac{1}{V} \int_{B_r(x)} (f(x) - f(y)) \, dy

    Attributes:
        name: of the space.
        radius: r.
        volume: V.
        eigenvalues: of the lowest eigenspaces of the Laplacian and of the first one beyond them.
        dimensions: of the lowest eigenspaces, one less.
        coordinates: number of coordinates of a point.
        functions: from points (n, c) to the eigenfunctions (n, sum of dimensions), orthonormal in
            :math:`L^2(dx)`, eigenspace by eigenspace.
    """

    name: str
    radius: float
    volume: float
    eigenvalues: tuple[float, ...]
    dimensions: tuple[int, ...]
    coordinates: int
    functions: Callable[[Floats], Floats]

    @property
    def edges(self) -> tuple[float, ...]:
        """Values halfway between neighbouring eigenvalues: the upper ends of value bands."""
        return tuple((a + b) / 2 for a, b in itertools.pairwise(self.eigenvalues))

    def norms(self, coefficients: Floats) -> Floats:
        """The norms (eigenspaces, signals) of the parts of signals with these coefficients."""
        parts = np.split(coefficients, np.cumsum(self.dimensions)[:-1])
        return np.array([np.linalg.norm(part, axis=0) for part in parts])

    def sample(self, n: int, s: float, random: np.random.Generator, turn: float = 0.0) -> Floats:
        """Points (n, c) of density 1 + s t; t from -1 to 1 is a cosine or a height.

        Args:
            n: number of points.
            s: non-uniformity, 0 to 1.
            random: source of randomness.
            turn: angle by which the densest place of a circle or torus is turned.
        """
        found = np.empty((0, self.coordinates))
        while len(found) < n:
            points = self._uniform(2 * n, random)
            height = points[:, 2] if self.name == "sphere" else np.cos(points[:, 0] - turn)
            found = np.concatenate([found, points[random.random(2 * n) * (1 + s) < 1 + s * height]])
        return found[:n]

    def graph(self, points: Floats) -> Data:
        """Points joined when they are at most r apart."""
        if self.name == "sphere":
            # Points of the unit sphere at the angle r are so far apart in space.
            tree, reach = cKDTree(points), 2 * math.sin(self.radius / 2)
        else:
            tree, reach = cKDTree(points, boxsize=2 * math.pi), self.radius
        pairs = tree.query_pairs(reach, output_type="ndarray").astype(np.int64)
        edge_index = undirected(pairs[:, 0], pairs[:, 1], len(points))
        return Data(edge_index=edge_index, num_nodes=len(points))

    def _uniform(self, n: int, random: np.random.Generator) -> Floats:
        if self.name == "sphere":
            points = random.standard_normal((n, 3))
            on_sphere: Floats = points / np.linalg.norm(points, axis=1, keepdims=True)
            return on_sphere
        return 2 * math.pi * random.random((n, self.coordinates))


def circle(radius: float = 0.6) -> Space:
    """The circle, waves with up to 3 turns: eigenvalue 1 - sin(k r) / (k r) of k turns."""
    values = [0.0, *(1 - math.sin(k * radius) / (k * radius) for k in range(1, 5))]

    def functions(points: Floats) -> Floats:
        x = points[:, 0]
        waves = [f(k * x) for k in range(1, 4) for f in (np.cos, np.sin)]
        return np.stack([np.ones_like(x), *(math.sqrt(2) * wave for wave in waves)], axis=1)

    return Space("circle", radius, radius / math.pi, tuple(values), (1, 2, 2, 2), 1, functions)


def torus(radius: float = 1.0) -> Space:
    """The flat torus, waves k with 0, 1 and 2 = |k|^2: 1 - 2 J_1(|k| r) / (|k| r)."""
    lengths = np.sqrt([1.0, 2.0, 4.0]) * radius
    values = [0.0, *(1 - 2 * j1(lengths) / lengths).tolist()]

    def functions(points: Floats) -> Floats:
        phases = points @ np.array([[1, 0], [0, 1], [1, 1], [1, -1]]).T
        waves = math.sqrt(2) * np.stack([np.cos(phases), np.sin(phases)], axis=2)
        return np.concatenate([np.ones((len(points), 1)), waves.reshape(len(points), -1)], axis=1)

    return Space("torus", radius, radius**2 / (4 * math.pi), tuple(values), (1, 4, 4), 2, functions)


def sphere(radius: float = 0.8) -> Space:
    """The sphere, degrees up to 2: eigenvalue 1 - the mean of P_l over a cap, of degree l."""
    c = math.cos(radius)
    values = [0.0]
    for k in range(1, 4):
        mean = (eval_legendre(k - 1, c) - eval_legendre(k + 1, c)) / ((2 * k + 1) * (1 - c))
        values.append(float(1 - mean))

    def functions(points: Floats) -> Floats:
        x, y, z = points.T
        first = [math.sqrt(3) * u for u in (x, y, z)]
        second = [math.sqrt(15) * u for u in (x * y, y * z, x * z, (x**2 - y**2) / 2)]
        second.append(math.sqrt(5) * (3 * z**2 - 1) / 2)
        return np.stack([np.ones_like(x), *first, *second], axis=1)

    return Space("sphere", radius, (1 - c) / 2, tuple(values), (1, 3, 5), 3, functions)


SPACES: dict[str, Callable[[], Space]] = {"circle": circle, "torus": torus, "sphere": sphere}


def find_space(name: str) -> Space:
    """The space of this name, with its usual radius.

    Raises:
        ConfigError: there is none; the message has the nearest name.
    """
    if name not in SPACES:
        raise ConfigError(unknown_name("space", name, SPACES))
    return SPACES[name]()
