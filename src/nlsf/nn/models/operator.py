"""Which Laplacian a branch of a model reads: `Operator`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from nlsf.errors import ModelError
from nlsf.spectral.operators.shift import Normalization

Operator: TypeAlias = Literal["L", "N"]
"""The Laplacian L = D - A, or the normalised one N."""


def normalization_of(operator: Operator) -> Normalization:
    """The ``normalization`` of a layer that reads this operator."""
    return None if operator == "L" else "sym"


def check_operators(*operators: Operator) -> None:
    """Raises unless each is one of the two."""
    for operator in operators:
        if operator not in ("L", "N"):
            raise ModelError(f"The operator of a branch must be L or N, not {operator!r}.")
