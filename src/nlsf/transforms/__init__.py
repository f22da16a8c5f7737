"""Transforms for PyTorch Geometric data."""

from nlsf.transforms.add_spectrum import AddSpectrum

__all__ = ["AddSpectrum"]
