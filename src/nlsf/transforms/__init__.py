"""Transforms for PyTorch Geometric data."""
