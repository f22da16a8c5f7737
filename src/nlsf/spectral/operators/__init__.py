"""Graphs as operators: what is read as a graph, and the Hermitian matrices made of it."""

from nlsf.spectral.operators.graph_input import adjacency_matrix
from nlsf.spectral.operators.shift import (
    ShiftOperator,
    adjacency,
    laplacian,
    magnetic_laplacian,
)

__all__ = [
    "ShiftOperator",
    "adjacency",
    "adjacency_matrix",
    "laplacian",
    "magnetic_laplacian",
]
