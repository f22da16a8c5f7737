"""Circle, torus and sphere: points of any density, and the eigenfunctions of their Laplacians.

Also a task on random circles that two studies share: a `WaveReader` reads the strength of waves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.spatial import cKDTree
from scipy.special import eval_legendre, j1
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.data.dataset import undirected
from nlsf.errors import ConfigError, unknown_name
from nlsf.lab.study import Floats, seeded
from nlsf.nn import GraphNLSF, LaplacianAttention
from nlsf.spectral import IndexBands, IntervalBands, laplacian, partial_eigh
from nlsf.spectral.operators.shift import Normalization

Operators: TypeAlias = tuple[Normalization, Normalization]
"""Of the index branch and of the value branch: ``None`` is L, ``"sym"`` is N."""

Sample: TypeAlias = tuple[tuple[Tensor, Tensor], Tensor]
"""Norms of both branches, (M, B, 1) each, and targets (M, 3)."""

RATE = 1e-2
"""Of learning."""

_HIDDEN = 32


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

    @property
    def indices(self) -> IndexBands:
        """As many leading eigenvectors as the lowest eigenspaces have dimensions, one by one."""
        return IndexBands(sum(self.dimensions))

    @property
    def intervals(self) -> IntervalBands:
        """A value band around each of the lowest eigenvalues."""
        return IntervalBands(zip((0.0, *self.edges[:-1]), self.edges, strict=True))

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


@dataclass(frozen=True, eq=False)
class WaveReader:
    """Two filters that read the strength of waves off signals on random circles, and their weights.

    Attributes:
        attention: both filters, weighted.
        branches: a filter with indices and one with values, one output for each norm but the mean.
    """

    attention: LaplacianAttention
    branches: tuple[GraphNLSF, GraphNLSF]

    @classmethod
    def of(cls, seed: int, operators: Operators) -> WaveReader:
        """One that has not been trained."""
        space = circle()
        options: dict[str, Any] = {"norm_per_node": True, "hidden": _HIDDEN}
        bands = (space.indices, space.intervals)
        with seeded(seed):
            index, value = (
                GraphNLSF(1, len(space.dimensions) - 1, some, normalization=operator, **options)
                for some, operator in zip(bands, operators, strict=True)
            )
            return cls(LaplacianAttention(index, value), (index, value))

    def draw(
        self,
        s: float,
        graphs: int,
        nodes: tuple[int, int],
        random: np.random.Generator,
        signals: int = 8,
    ) -> Sample:
        """What the filters see of graphs with random densest places, with random signals.

        Args:
            s: non-uniformity of the points.
            graphs: how many.
            nodes: of the smallest and of the largest graph.
            random: source of randomness.
            signals: on every graph.
        """
        space = circle()
        norms: tuple[list[Tensor], list[Tensor]] = ([], [])
        targets = []
        for _ in range(graphs):
            n = int(random.integers(nodes[0], nodes[1] + 1))
            points = space.sample(n, s, random, turn=2 * math.pi * random.random())
            coefficients = random.standard_normal((sum(space.dimensions), signals))
            x = torch.from_numpy((space.functions(points) @ coefficients).T[..., None])
            graph = space.graph(points)
            for branch, found in zip(self.branches, norms, strict=True):
                shift = laplacian(graph, normalization=branch.normalization)
                parts = branch.view(x, spectrum=partial_eigh(shift, bands=branch.bands))
                found.append(branch.norms(parts).float())
            targets.append(torch.from_numpy(space.norms(coefficients)[1:].T).float())
        return (torch.cat(norms[0]), torch.cat(norms[1])), torch.cat(targets)

    def outputs(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """What each branch says alone, (M, 3)."""
        (index, value), (norms, _) = self.branches, sample
        return index.respond_norms(norms[0]), value.respond_norms(norms[1])

    def fit_branches(self, sample: Sample, steps: int) -> None:
        """Trains both branches, each to solve the task alone."""

        def loss() -> Tensor:
            return sum((squares(y, sample[1]) for y in self.outputs(sample)), torch.zeros(()))

        train([p for branch in self.branches for p in branch.parameters()], loss, steps)


def train(
    parameters: Sequence[nn.Parameter], loss: Callable[[], Tensor], steps: int, rate: float = RATE
) -> None:
    """Steps of Adam on a loss."""
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def squares(found: Tensor, target: Tensor) -> Tensor:
    """The mean of squared differences."""
    return (found - target).square().mean()


def share_of_spread(found: Tensor, target: Tensor) -> float:
    """The error relative to the spread of the targets: 1 for the best constant."""
    return float((squares(found, target) / squares(target.mean(0), target)).sqrt())
