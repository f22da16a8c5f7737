"""Assertions for layers that claim a symmetry, and graphs on which layers tend to break.

    from nlsf.testing import assert_shift_equivariant, hostile_graphs

A graph function respects the functional symmetry when it commutes with every unitary map that
commutes with the shift operator. The assertions sample such maps and compare; each names the error
that it found. They work on any callable, an ``nn.Module`` of another library included.
"""

from nlsf.testing.asserts import (
    assert_basis_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    assert_shift_equivariant,
    assert_shift_invariant,
    rotate_basis,
    tolerance,
)
from nlsf.testing.graphs import TinyGraph, hostile_graphs, tiny_graphs

__all__ = [
    "TinyGraph",
    "assert_basis_invariant",
    "assert_permutation_equivariant",
    "assert_permutation_invariant",
    "assert_shift_equivariant",
    "assert_shift_invariant",
    "hostile_graphs",
    "rotate_basis",
    "tiny_graphs",
    "tolerance",
]
