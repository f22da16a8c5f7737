"""Signals whose spectral coefficients are given: `with_coefficients`."""

from __future__ import annotations

import torch
from torch import Tensor

from nlsf.spectral import Projector, analyze

_TINY = 1e-300


def with_coefficients(
    x: Tensor, projector: Projector, wanted: Tensor, *, p: float = 2.0, normalize: bool = False
) -> Tensor:
    """The signal with the directions of x in every band, and these norms there.

    Args:
        x: (..., N, d), not zero in any band where something is wanted.
        projector: the bands.
        wanted: (..., B, d), what `analyze` is to give for the result.
        p: of the norm.
        normalize: of the norm.
    """
    norms = analyze(x, projector, p=p, normalize=normalize)
    scale = wanted / norms.clamp(min=_TINY)
    parts = torch.stack(list(projector.projections(x)), dim=-3)
    return (scale.unsqueeze(-2) * parts).sum(-3)
