"""Whether a signal varies slowly on its graph: `lower_half`, `mean_frequency`, `verdict`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nlsf.spectral import Spectrum
from nlsf.spectral.operators.shift import ShiftOperator

_CLEAR = 0.1
"""How far from a half a share must lie to be called smooth or rough."""


def centred(signal: Tensor, known: Tensor) -> Tensor:
    """The signal (N, C) in float64 minus its mean over known rows; 0 where it is not known.

    The mean says how frequent a class is, and nothing of where on the graph it lies.
    """
    rows = signal[known].to(torch.float64)
    result = torch.zeros(signal.shape, dtype=torch.float64)
    result[known] = rows - rows.mean(0, keepdim=True)
    return result


def lower_half(spectrum: Spectrum, signal: Tensor) -> float | None:
    """The share of a signal's energy in the lower half of the eigenvalues.

    A random signal has a half of its energy there, whatever the graph. An eigenspace that reaches
    over the middle counts by the part of its dimensions that lies below.

    Args:
        spectrum: complete.
        signal: (N, C).

    Returns:
        0 to 1; ``None`` for a signal without energy.
    """
    vectors = spectrum.vectors.to(torch.promote_types(spectrum.vectors.dtype, torch.float64))
    energy = (vectors.mH @ signal.to(vectors.dtype)).abs().square().sum(-1)
    total = float(energy.sum())
    if not total > 0:
        return None
    count = spectrum.multiplicities.to(torch.float64)
    by_space = torch.zeros_like(count).index_add(0, spectrum.eigenspaces, energy)
    before = count.cumsum(0) - count
    below = ((spectrum.num_nodes / 2 - before) / count).clamp(0, 1)
    return float((by_space * below).sum()) / total


def mean_frequency(shift: ShiftOperator, signal: Tensor) -> float | None:
    """The mean frequency of a signal over that of a random one; needs no eigenpairs.

    It is the Rayleigh quotient of the signal divided by the mean of all eigenvalues.

    Args:
        shift: a Laplacian.
        signal: (N, C).

    Returns:
        1 for a random signal, less for a smoother one; ``None`` without energy or edges.
    """
    x = signal.numpy().astype(np.float64)
    energy = float(np.square(x).sum())
    mean = float(shift.matrix.diagonal().real.mean()) if shift.num_nodes else 0.0
    if not energy > 0 or not mean > 0:
        return None
    return float((x * (shift.matrix @ x)).real.sum()) / energy / mean


def verdict(share: float) -> str:
    """What a share of energy at low frequencies says, with a half for a random signal."""
    if share >= 0.5 + _CLEAR:
        return "smooth: neighbours tend to agree, homophilic in the spectral sense"
    if share <= 0.5 - _CLEAR:
        return "rough: neighbours tend to differ, heterophilic in the spectral sense"
    return "neither smooth nor rough: divided over low and high frequencies as by chance"
