"""Bands whose projections are polynomials of the operator."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from nlsf.errors import BandError
from nlsf.spectral.bands.base import Bands, whole
from nlsf.spectral.bands.edges import DyadicBands
from nlsf.spectral.demand import Demand
from nlsf.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class PolynomialBands(Bands):
    r"""The bands of another family with smooth edges, for which no eigenvector is needed.

    .. math::
        P_j = p_j(\Delta), \qquad p_j(\lambda) \approx 1[e_{j-1} < \lambda \le e_j],
        \qquad 0 \le p_j \le 1, \qquad \sum_j p_j = 1

    Each :math:`p_j` is a Chebyshev series with Jackson's damping: an edge is
    :math:`\pi / (\text{order} + 2)` wide in :math:`\arccos` of the frequency axis scaled to
    [-1, 1], so it is sharper at both ends of the spectrum than in its middle. The cost is one
    sparse product a degree, for all bands together. `PolynomialProjector` applies them to one
    graph, `PolynomialBatchProjector` to many.

    Args:
        base: the bands, of a family with fixed edges: `DyadicBands`, `UniformBands`,
            `AffineGeometricBands` or `IntervalBands`.
        order: the degree K of the polynomials.
        pairs: at least so many leading eigenpairs are computed and projected exactly, and the
            polynomials act on what they leave: for narrow bands at the low end.

    Raises:
        BandError: for a base whose edges depend on the eigenvalues, an order below 1, or negative
            pairs.
    """

    base: Bands = field(default_factory=DyadicBands)
    order: int = 32
    pairs: int = 0

    def __post_init__(self) -> None:
        whole("order", self.order)
        whole("pairs", self.pairs, 0)
        if self.base.limits(1.0) is None:
            raise BandError(
                "Polynomial bands need a base with fixed edges (dyadic, uniform, affine-geometric "
                f"or intervals), and those of {type(self.base).__name__} depend on eigenvalues."
            )

    @property
    def n_bands(self) -> int:
        """The bands of the base."""
        return self.base.n_bands

    @property
    def covers_all(self) -> bool:
        """Whether the base does."""
        return self.base.covers_all

    def demand(self) -> Demand:
        """The leading eigenpairs that are asked for, none by default."""
        return Demand(pairs=self.pairs)

    def assign(self, spectrum: Spectrum) -> Tensor:
        """Raises: a smooth band has a part of every eigenpair.

        Raises:
            BandError: always.
        """
        raise BandError(
            "Polynomial bands act through the operator, not through eigenpairs: use "
            "PolynomialProjector(shift, bands), or the base with a Projector."
        )
