"""Functional shifts, which filters commute with; errors against them; a distance up to them."""

from nlsf.spectral.symmetry.distance import spectral_distance
from nlsf.spectral.symmetry.functional_shift import (
    FunctionalShift,
    equivariance_error,
    invariance_error,
    random_unitary,
    sample_shift,
)

__all__ = [
    "FunctionalShift",
    "equivariance_error",
    "invariance_error",
    "random_unitary",
    "sample_shift",
    "spectral_distance",
]
