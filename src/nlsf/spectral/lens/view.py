"""A signal seen through bands: `View`; on many graphs, for training: `FixedNodes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from nlsf.errors import BandError, SignalError
from nlsf.spectral.kernels.dense import lp_norm, power
from nlsf.spectral.kernels.segments import nodes_of_graphs, segment_filter
from nlsf.spectral.kernels.transforms import as_pytree

Form: TypeAlias = Literal["diagonal", "matrices", "full"]
"""Of coefficients: a number for every band and channel, a matrix for every band, or one for all."""


class View(ABC):
    r"""A signal seen through bands, computed once and shared by analysis and synthesis.

    `norms` is the analysis of the paper and `synthesize` its synthesis (Sec. 3.3). The other
    methods are what a kind of lens implements.

    Attributes:
        lens: what it is seen through.
        signal: (..., N, d), the signal itself, at the nodes that are synthesised.
        partial: whether only some nodes of the signal are here, so that L_2 norms are all there
            is to be known of the others.
    """

    lens: Any
    signal: Tensor
    partial: bool = False

    @property
    def n_bands(self) -> int:
        """B, with the complement."""
        return int(self.lens.n_bands)

    @property
    def frequencies(self) -> Tensor:
        """(B,), or (G, B) for many graphs, the mean frequency of each band."""
        found: Tensor = self.lens.frequencies
        return found

    @property
    def num_graphs(self) -> int:
        """G; 1 where there is one graph."""
        return int(self.lens.num_graphs)

    @property
    def graph_of_nodes(self) -> Tensor | None:
        """(N,), the graph of each node; ``None`` where there is one graph."""
        found: Tensor | None = self.lens.graph_of_nodes
        return found

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.frequencies.device

    @abstractmethod
    def energies(self) -> Tensor:
        r"""(..., B, d), the energy :math:`\langle x, P_j x \rangle` of each channel in each band.

        For exact projections it is :math:`\|P_j x\|^2`. The energies are not negative.
        """

    @abstractmethod
    def weighted(self, gain: Tensor) -> Tensor:
        r"""The sum :math:`\sum_j g_j \odot P_j X` with gains (..., B, d): (..., N, d)."""

    @abstractmethod
    def mixed(self, r: Tensor) -> Tensor:
        r"""The sum :math:`\sum_j P_j X R_j` with matrices (..., B, d, d'): (..., N, d')."""

    @abstractmethod
    def padded_part(self, j: int) -> Tensor:
        """The projection on band j, counted from 0: that of many graphs is padded, (G, n, d)."""

    def mapped(self, gain: Tensor, weight: Tensor) -> Tensor:
        r"""The sum with gains, and a linear map W (d, d') after it: (..., N, d')."""
        y = self.weighted(gain)
        return y @ weight.to(y.dtype)

    def gained_and_mixed(self, gain: Tensor, maps: Tensor) -> Tensor:
        r"""The sum :math:`\sum_j (g_j \odot P_j X) W_j` with one map (B, d, d') a band."""
        return self.mixed(gain.unsqueeze(-1) * maps)

    def part(self, j: int) -> Tensor:
        """The projection on band j, counted from 0: (..., N, d)."""
        if not 0 <= j < self.n_bands:
            raise BandError(
                f"There is no band {j}: the bands are numbered 0 to {self.n_bands - 1}."
            )
        return self._restored(self.padded_part(j))

    def _restored(self, y: Tensor) -> Tensor:
        """From the padded layout to that in which the signal came; there is none on one graph."""
        if self.lens.nodes is None:
            return y
        restored: Tensor = self.lens.restore(y)
        return restored

    def parts(self) -> Iterator[Tensor]:
        """The projections on all bands, one at a time: only one is in memory."""
        return (self.part(j) for j in range(self.n_bands))

    def norms(self, p: float = 2.0, normalize: bool = False) -> Tensor:
        r"""The norm of every channel in every band (Eq. 2 and 3).

        .. math::
            \mathcal{A}(\Delta, X)_{j, c} = \| P_j X_{:, c} \|_p

        Unitary maps that commute with the bands do not change it for p = 2. No other L_p norm is
        kept by unitary maps: for those only the permutation of nodes leaves it as it is. Polynomial
        bands are no exact projections: for p = 2 they give :math:`\langle x, P_j x \rangle^{1/2}`.

        Args:
            p: the norm, at least 1, ``math.inf`` allowed. Anything but 2 looks at one projection of
                (..., N, d) after the other.
            normalize: divide by :math:`N^{1/p}`, so that the norm of a constant signal does not
                depend on the size of the graph.

        Returns:
            (..., B, d), real and not negative; the gradient of a zero norm is 0. (G, B, d) for many
            graphs.

        Raises:
            SignalError: p below 1, or not 2 where only some nodes are here.
        """
        if not p >= 1:
            raise SignalError(f"p must be at least 1, not {p!r}.")
        if p == 2:
            norm = power(self.energies(), 0.5)
        elif self.partial:
            raise SignalError("A prepared signal knows its L_2 norms only: use p = 2.")
        else:
            norm = torch.stack(
                [lp_norm(self.padded_part(j), p) for j in range(self.n_bands)], dim=-2
            )
        return norm / self.lens.sizes.to(norm) ** (1 / p) if normalize else norm

    def synthesize(
        self,
        r: Tensor,
        *,
        form: Form = "diagonal",
        a: float = 1.0,
        eps: float = 1e-6,
        p: float = 2.0,
        normalize: bool = False,
        norms: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        r"""A signal from spectral coefficients, with the projections of this one as basis.

        With :math:`Q_j = P_j X / (\|P_j X\|^a + e)`, channel by channel, and :math:`0^0 = 1`:

        .. math::
            \text{diagonal (App. C.1):} \quad Y = \sum_j r_j \odot Q_j, \qquad
            \text{matrices:} \quad Y = \sum_j Q_j R_j, \qquad
            \text{full (Eq. 2, 3):} \quad Y = [Q_1, \dots, Q_B] R .

        The normalisation goes into the coefficients, so that for every form two thin products
        remain and nothing of the size N x B d is built. The norms are those of `norms`, for
        polynomial bands too.

        Args:
            r: the coefficients: diagonal (..., B, d); matrices (..., B, d, d'); full
                (..., B d, B d').
            form: which of the three.
            a: exponent of the norm, 0 to 1.
            eps: the e in the denominator, positive.
            p: the norm in the denominator.
            normalize: divide that norm by :math:`N^{1/p}`.
            norms: what `norms` gave for the same p and normalize, if it is at hand.
            weight: (d, d'), a linear map of the channels after the diagonal form: Y W, which costs
                less than both in turn where it leaves fewer channels.

        Returns:
            diagonal (..., N, d), with a map (..., N, d'); matrices (..., N, d'); full
            (..., N, B d').

        Raises:
            SignalError: shapes that do not fit, a outside [0, 1], or eps that is not positive.
        """
        if norms is None:
            norms = self.norms(p, normalize)
        scale = band_scale(norms, a, eps)
        of_maps = scale.unsqueeze(-1) if isinstance(scale, Tensor) else scale
        n_bands, channels = norms.shape[-2:]

        if form == "diagonal":
            _check_shape(r, (n_bands, channels), form)
            gain = r * scale
            return self.weighted(gain) if weight is None else self.mapped(gain, weight)
        if weight is not None:
            raise SignalError(
                f"A map after the synthesis is for the diagonal form, not for {form!r}."
            )
        if form == "matrices":
            _check_shape(r, (n_bands, channels, None), form)
            return self.mixed(r * of_maps)
        if form == "full":
            _check_shape(r, (n_bands * channels, None), form)
            return self.mixed(r.unflatten(-2, (n_bands, channels)) * of_maps)
        raise SignalError(f"form must be 'diagonal', 'matrices' or 'full', not {form!r}.")


def band_scale(norms: Tensor, a: float, eps: float) -> Tensor | float:
    r"""The factors :math:`1 / (\|P_j X\|^a + e)` of the synthesis, in the shape of the norms.

    For a = 0 they are all the same number, and that is what it returns.

    Raises:
        SignalError: a outside [0, 1], or eps that is not positive.
    """
    if not 0 <= a <= 1:
        raise SignalError(f"The exponent a must lie between 0 and 1, not {a!r}.")
    if not eps > 0:
        raise SignalError(f"eps must be positive, not {eps!r}.")
    if a == 0:  # 0^0 = 1
        return 1 / (1 + eps)
    return 1 / (power(norms, a) + eps)


def _check_shape(r: Tensor, expected: tuple[int | None, ...], form: str) -> None:
    fits = r.ndim >= len(expected)
    for wanted, got in zip(expected, r.shape[-len(expected) :], strict=fits):
        fits = fits and wanted in (None, got)
    if not fits:
        sizes = ", ".join("d'" if e is None else str(e) for e in expected)
        raise SignalError(
            f"The coefficients of the {form} form must have the shape (..., {sizes}), "
            f"not {tuple(r.shape)}."
        )


@as_pytree
@dataclass(frozen=True, eq=False)
class FixedNodes(View):
    r"""Fixed signals on many graphs, projected on all bands once and for all.

    A filter on the signal itself is then a sum of given signals with weights that depend on given
    norms,

    .. math::
        Y = \sum_j \frac{R_j(c)}{c_j^a + e} \odot P_j X, \qquad c_j = \|P_j X\|_p,

    so that a training step multiplies no eigenvectors, and graphs need no padding to one size.
    An index of graphs gives the same for these graphs; with an index (M, R), for M models that look
    at R graphs each, and their nodes are padded to the number of the largest.

    Attributes:
        projections: (..., n, B, d), at the nodes of all graphs, one graph after the other.
        owner: (..., n), the graph of each node, 0 to G - 1; G for nodes that pad.
        known_norms: (..., G, B, d).
        band_frequencies: (..., G, B), the mean frequency of each band.
        nodes: (..., G), the number of nodes of each graph.
    """

    projections: Tensor
    owner: Tensor
    known_norms: Tensor
    band_frequencies: Tensor
    nodes: Tensor

    partial = True

    @classmethod
    def of(cls, view: View, p: float = 2.0, normalize: bool = False) -> FixedNodes:
        """All projections of a view of many graphs; p and normalize are those of its norms."""
        if view.graph_of_nodes is None:
            raise SignalError("Fixed nodes are those of many graphs: use a lens on a list.")
        projections = torch.stack(list(view.parts()), dim=1)
        norms = view.norms(p, normalize)
        return cls(projections, view.graph_of_nodes, norms, view.frequencies, view.lens.nodes)

    @classmethod
    def cat(cls, parts: Sequence[FixedNodes]) -> FixedNodes:
        """All graphs of several, one after the other."""
        if len({part.n_bands for part in parts}) != 1:
            raise SignalError("Fixed nodes are put together from at least one, of equal bands.")
        nodes = torch.cat([part.nodes for part in parts])
        return cls(
            torch.cat([part.projections for part in parts]),
            torch.repeat_interleave(nodes),
            torch.cat([part.known_norms for part in parts]),
            torch.cat([part.band_frequencies for part in parts]),
            nodes,
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: Tensor) -> FixedNodes:
        """Some of the graphs: (R,), or (M, R) for M models that look at R graphs each."""
        node, graph = nodes_of_graphs(self.nodes, index if index.ndim == 2 else index[None])
        if index.ndim == 1:
            node, graph = node[0], graph[0]
        # Whole rows are copied: a third of the time of projections[node].
        rows = self.projections.flatten(1).index_select(0, node.flatten())
        projections = rows.reshape(*node.shape, *self.projections.shape[1:])
        norms, frequencies = self.known_norms[index], self.band_frequencies[index]
        return FixedNodes(projections, graph, norms, frequencies, self.nodes[index])

    @property
    def n_bands(self) -> int:
        """B."""
        return self.known_norms.shape[-2]

    @property
    def frequencies(self) -> Tensor:
        """(G, B)."""
        return self.band_frequencies

    @property
    def graph_of_nodes(self) -> Tensor:
        """(n,)."""
        return self.owner

    @property
    def num_graphs(self) -> int:
        """G."""
        return self.nodes.shape[-1]

    def norms(self, p: float = 2.0, normalize: bool = False) -> Tensor:
        """(G, B, d), those that were asked for when the signal was fixed."""
        return self.known_norms

    def energies(self) -> Tensor:
        """(G, B, d), the squares of the known norms."""
        return self.known_norms.square()

    def weighted(self, gain: Tensor) -> Tensor:
        """The sum with gains (G, B, d): (n, d)."""
        # Nodes that pad belong to one graph more, whose gains are 0.
        gain = torch.cat([gain, torch.zeros_like(gain[:1])])
        return segment_filter(self.projections, gain, self.owner)

    def mixed(self, r: Tensor) -> Tensor:
        """The sum with matrices (G, B, d, d'): (n, d')."""
        r = torch.cat([r, torch.zeros_like(r[:1])]).index_select(0, self.owner)
        return torch.einsum("nbd,nbde->ne", self.projections, r)

    def padded_part(self, j: int) -> Tensor:
        """The projection on band j: (n, d), in which nothing is padded."""
        return self.projections[..., j, :]

    def _restored(self, y: Tensor) -> Tensor:
        return y
