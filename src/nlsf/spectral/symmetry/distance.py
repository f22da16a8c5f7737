"""The pseudo-metric that filters are continuous in: `spectral_distance` (Sec. 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.lens.view import View


def spectral_distance(
    view: View, other: View, *, p: float = 2.0, normalize: bool = False
) -> Tensor:
    r"""The distance of two graph-signals in the spectral domain (Sec. 4.3, App. D.2.2, D.2.3).

    .. math::
        \mathrm{dist}\bigl((\Delta, X), (\Delta', X')\bigr)
            = \| \mathcal{A}(\Delta, X) - \mathcal{A}(\Delta', X') \|_2

    It is a pseudo-metric: symmetric, with the triangle inequality, and zero between signals that
    differ, namely (for p = 2) by a functional shift. On one graph it is at most
    :math:`\|X - X'\|_2` for p = 2.

    Args:
        view: one graph-signal, as its lens shows it: ``lens(x)``.
        other: the other one, through as many bands.
        p: the norm of `View.norms`.
        normalize: divide norms by :math:`N^{1/p}`, to compare graphs of different sizes.

    Returns:
        (...), real and not negative; one number a graph where there are many.

    Raises:
        SignalError: the two have different numbers of bands or channels, or they refuse the norm.

    Example:
        >>> import torch
        >>> from nlsf.spectral import Lens, UniformBands, laplacian, partial_eigh, sample_shift
        >>> spectrum = partial_eigh(laplacian(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])))
        >>> P = Lens.of(spectrum, UniformBands(S=2))
        >>> x = torch.randn(3, 2, dtype=torch.float64)
        >>> bool(spectral_distance(P(x), P(sample_shift(P)(x))) < 1e-12)
        True
    """
    first = view.norms(p, normalize)
    second = other.norms(p, normalize)
    if first.shape[-2:] != second.shape[-2:]:
        raise SignalError(
            f"Signals are compared band by band and channel by channel, but one has "
            f"{first.shape[-2]} x {first.shape[-1]} coefficients and the other {second.shape[-2]} "
            f"x {second.shape[-1]}: use the same bands and as many channels."
        )
    distance: Tensor = torch.linalg.vector_norm(first - second, dim=(-2, -1))
    return distance
