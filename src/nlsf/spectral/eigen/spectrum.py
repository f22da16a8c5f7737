"""The `Spectrum` of a shift operator, and how much of one is needed: `Demand`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.notebook import density, panel
from nlsf.spectral.operators.shift import Order


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""The leading eigenpairs :math:`\Delta V = V \Lambda` of a shift operator, all or some.

    A spectrum is data: it carries no gradient, and no eigenspace in it is cut. Two neighbouring
    eigenvalues belong to one eigenspace when they differ by at most ``gap_tol``; only the kernel of
    a Laplacian, which is known exactly from the connected components, is never merged with others.

    Attributes:
        values: (k,), float64 always, leading first.
        vectors: (N, k), orthonormal columns, real or complex.
        residuals: (k,), :math:`\|\Delta v_i - \lambda_i v_i\|_2`.
        far: the eigenvalue at the other end of the spectrum, known even when k < N; from
            50,000 nodes on, where it is not computed, a bound a few hundredths outside of it.
        reach: every eigenpair with a frequency up to this one is here; infinite when all are.
        gap_tol: absolute distance below which two eigenvalues count as equal.
        trace: the sum of *all* N eigenvalues, known even when k < N.
        nullity: how many of the leading values are exact zeros with an analytic kernel; 0 where the
            kernel was not known in advance.
        name: the operator's name.
        order: whether ``values`` ascend (Laplacians) or descend (adjacency).
        solver: how it was computed.
    """

    values: Tensor
    vectors: Tensor
    residuals: Tensor
    far: float
    reach: float
    gap_tol: float
    trace: float
    nullity: int = 0
    name: str = "custom"
    order: Order = "ascending"
    solver: str = "dense"

    @property
    def num_nodes(self) -> int:
        """N, the number of nodes."""
        return self.vectors.shape[0]

    @property
    def num_pairs(self) -> int:
        """k, the number of eigenpairs at hand."""
        return self.vectors.shape[1]

    @property
    def is_complete(self) -> bool:
        """Whether all N eigenpairs are here."""
        return self.num_pairs == self.num_nodes

    @property
    def lam_max(self) -> float:
        """The largest eigenvalue of the operator (not only of the pairs at hand)."""
        if self.order == "ascending":
            return self.far
        return float(self.values[0]) if self.num_pairs else 0.0

    @property
    def lam_min(self) -> float:
        """The smallest eigenvalue of the operator."""
        if self.order == "descending":
            return self.far
        return float(self.values[0]) if self.num_pairs else 0.0

    @property
    def origin(self) -> float:
        """The eigenvalue that has frequency 0: 0 for a Laplacian, lam_max for an adjacency."""
        if self.order == "descending":
            return self.lam_max
        return self.lam_min if self.lam_min < -self.gap_tol else 0.0

    @property
    def bandwidth(self) -> float:
        """The largest frequency; bands partition [0, bandwidth]. lam_max for a Laplacian."""
        return abs(self.far - self.origin)

    @cached_property
    def frequencies(self) -> Tensor:
        r"""(k,), :math:`|\lambda - origin|`, ascending; for a Laplacian the eigenvalues."""
        sign = 1.0 if self.order == "ascending" else -1.0
        return (sign * (self.values - self.origin)).clamp(min=0.0)

    @cached_property
    def eigenspaces(self) -> Tensor:
        """(k,), int64: the number of the eigenspace that each column belongs to, from 0."""
        return eigenspace_ids(self.values, self.gap_tol, self.nullity)

    @property
    def num_eigenspaces(self) -> int:
        """How many eigenspaces are at hand."""
        return int(self.eigenspaces[-1]) + 1 if self.num_pairs else 0

    @cached_property
    def multiplicities(self) -> Tensor:
        """(number of eigenspaces,), int64: the dimension of each."""
        return torch.bincount(self.eigenspaces, minlength=0)

    @cached_property
    def eigenspace_frequencies(self) -> Tensor:
        """(number of eigenspaces,): the mean frequency of each, which stands for all its copies."""
        count = self.multiplicities.to(self.frequencies)
        return torch.zeros_like(count).index_add(0, self.eigenspaces, self.frequencies) / count

    def to(
        self,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        *,
        non_blocking: bool = False,
    ) -> Spectrum:
        """The same spectrum with vectors of another precision or on another device.

        The eigenvalues stay in float64: which band one belongs to must not depend on the precision
        of the training. A real dtype asked of complex vectors sets the precision of their parts.

        Args:
            dtype: of the vectors.
            device: of all tensors.
            non_blocking: as in ``torch.Tensor.to``. PyTorch Geometric always passes it, and leaves
                an object that does not take it where it was, without a word.
        """
        if dtype is not None and self.vectors.is_complex() and not dtype.is_complex:
            dtype = dtype.to_complex()
        return replace(
            self,
            values=self.values.to(device=device, non_blocking=non_blocking),
            vectors=self.vectors.to(dtype=dtype, device=device, non_blocking=non_blocking),
            residuals=self.residuals.to(device=device, non_blocking=non_blocking),
        )

    def cpu(self) -> Spectrum:
        """The same spectrum in main memory; what ``Data.cpu()`` calls."""
        return self.to(device="cpu")

    def permute(self, permutation: Tensor) -> Spectrum:
        """The spectrum of the graph whose node i is this one's node ``permutation[i]``."""
        return replace(self, vectors=self.vectors[permutation])

    def __repr__(self) -> str:
        residual = float(self.residuals.max()) if self.num_pairs else 0.0
        return (
            f"Spectrum({self.name}, num_nodes={self.num_nodes}, num_pairs={self.num_pairs}, "
            f"num_eigenspaces={self.num_eigenspaces}, lam_max={self.lam_max:.6g}, "
            f"residual={residual:.1e}, solver={self.solver!r})"
        )

    def _repr_html_(self) -> str:
        facts = [("eigenpairs", f"{self.num_pairs:,} of {self.num_nodes:,}")]
        drawings = []
        if self.num_pairs:
            facts += [
                ("eigenvalues", f"{self.lam_min:.6g} to {self.lam_max:.6g}"),
                ("eigenspaces", f"{self.num_eigenspaces:,}"),
                ("heaviest eigenvalue", self._heaviest()),
                ("largest residual", f"{float(self.residuals.max()):.1e}"),
            ]
            drawings = [density(self.frequencies, self.bandwidth or 1.0, self.num_nodes)]
        facts.append(("solver", self.solver))
        return panel(f"Spectrum of {self.name}", facts, *drawings)

    def _heaviest(self) -> str:
        """The eigenvalue of the largest eigenspace, and its multiplicity, in words."""
        eigenspace = int(self.multiplicities.argmax())
        times = int(self.multiplicities[eigenspace])
        if times == 1:
            return "none is repeated"
        return f"{float(self.values[self.eigenspaces == eigenspace].mean()):.6g}, {times:,} times"


# Data sets that are stored with spectra name the class by the place it was first released at. It
# keeps that name, whatever file it stands in, so that they can be loaded, with and without
# ``weights_only``, by this version and by older ones.
Spectrum.__module__ = "nlsf.spectral.spectrum"
sys.modules[Spectrum.__module__] = sys.modules[__name__]


def eigenspace_ids(values: Tensor, gap_tol: float, nullity: int = 0) -> Tensor:
    """Numbers the eigenspaces of sorted eigenvalues: a new one starts after a gap > ``gap_tol``.

    Args:
        values: (k,), sorted in either direction.
        gap_tol: absolute tolerance.
        nullity: the first so many values are one eigenspace, whatever follows.

    Returns:
        (k,), int64, from 0.
    """
    starts = torch.zeros(values.shape[0], dtype=torch.bool, device=values.device)
    starts[1:] = values.diff().abs() > gap_tol
    if 0 < nullity < values.shape[0]:
        starts[nullity] = True
    return starts.cumsum(0)


@dataclass(frozen=True)
class Demand:
    """How much of the leading end of a spectrum is needed; at most one field is set, none = all.

    Attributes:
        pairs: at least this many eigenpairs.
        eigenspaces: at least this many eigenspaces.
        fraction: all frequencies up to this fraction of the bandwidth.
        frequency: all frequencies up to this one.
    """

    pairs: int | None = None
    eigenspaces: int | None = None
    fraction: float | None = None
    frequency: float | None = None

    @property
    def is_all(self) -> bool:
        """Whether the complete spectrum is needed."""
        return self == Demand()

    @property
    def is_cut(self) -> bool:
        """Whether everything up to some frequency is needed."""
        return self.fraction is not None or self.frequency is not None

    def cut(self, bandwidth: float) -> float | None:
        """The frequency up to which everything is needed, where that is what is demanded."""
        return self.fraction * bandwidth if self.fraction is not None else self.frequency

    def check(self, spectrum: Spectrum) -> None:
        """Raises a `BandError` that says what to do unless the spectrum holds what is needed."""
        if spectrum.is_complete:
            return
        have = f"the spectrum holds {spectrum.num_pairs} of {spectrum.num_nodes} eigenpairs"
        todo = "compute it with partial_eigh(shift, bands=...)"
        if self.is_all:
            raise BandError(f"These bands need every eigenpair, but {have}; {todo}.")
        if self.pairs is not None and spectrum.num_pairs < self.pairs:
            raise BandError(f"These bands need {self.pairs} eigenpairs, but {have}; {todo}.")
        if self.eigenspaces is not None and spectrum.num_eigenspaces < self.eigenspaces:
            raise BandError(
                f"These bands need {self.eigenspaces} eigenspaces, but {have} in "
                f"{spectrum.num_eigenspaces} eigenspaces; {todo}."
            )
        cut = self.cut(spectrum.bandwidth)
        if cut is not None and not spectrum.reach >= cut:
            raise BandError(
                f"These bands need every eigenpair up to the frequency {cut:.6g}, but {have}, "
                f"known to be all up to {spectrum.reach:.6g}; {todo}."
            )
