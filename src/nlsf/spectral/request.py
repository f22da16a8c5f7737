"""A request for eigenpairs, seen from the low end: `EigenRequest`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from scipy import sparse

from nlsf.spectral.demand import Demand
from nlsf.spectral.memory import require_memory
from nlsf.spectral.shift import ShiftOperator
from nlsf.spectral.spectral_measure import SpectralMeasure


@dataclass(frozen=True)
class EigenRequest:
    """The arguments of `partial_eigh`, with the operator turned so that its low end leads."""

    shift: ShiftOperator
    demand: Demand
    gap_tol: float
    tol: float
    dense_limit: int
    memory_limit: int | None
    seed: int

    @cached_property
    def low(self) -> sparse.csr_array:
        """The operator, or its negative where the largest eigenvalues lead."""
        return self.shift.matrix if self.shift.order == "ascending" else -self.shift.matrix

    @cached_property
    def measure(self) -> SpectralMeasure:
        """What thirty products tell about the spectrum of `low`."""
        return SpectralMeasure.of(self.low, self.shift.scale, self.seed)

    @property
    def bounds(self) -> tuple[float, float]:
        """An interval that encloses the spectrum of `low`."""
        a, b = self.shift.bounds
        return (a, b) if self.shift.order == "ascending" else (-b, -a)

    @property
    def gap(self) -> float:
        """The absolute gap tolerance."""
        return self.gap_tol * self.shift.scale

    @property
    def kernel(self) -> bool:
        """Whether every component is known to have exactly one zero eigenvalue, the lowest."""
        return self.shift.null_vector is not None

    def origin(self, lowest: float) -> float:
        """The eigenvalue of `low` that has frequency 0; see `Spectrum.origin`."""
        if self.shift.order == "ascending" and lowest >= -self.gap:
            return 0.0
        return lowest

    def require_dense(self, size: int, columns: int) -> None:
        """Refuses a dense solve (LAPACK keeps about four squares) that would not fit."""
        require_memory(
            (4 * size * size + self.shift.num_nodes * columns) * self.low.dtype.itemsize,
            self.memory_limit,
            f"The dense eigendecomposition of a component with {size:,} nodes",
            "Ask for fewer eigenpairs (k, or bands that end lower), or raise memory_limit.",
        )
