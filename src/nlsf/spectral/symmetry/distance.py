"""The pseudo-metric that filters are continuous in: `spectral_distance` (Sec. 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.decomposition import BandProjector, Decomposition
from nlsf.spectral.transform import analyze


def spectral_distance(
    x: Tensor | Decomposition,
    projector: BandProjector | None,
    other: Tensor | Decomposition,
    other_projector: BandProjector | None = None,
    *,
    p: float = 2.0,
    normalize: bool = False,
) -> Tensor:
    r"""The distance of two graph-signals in the spectral domain (Sec. 4.3, App. D.2.2, D.2.3).

    .. math::
        \mathrm{dist}\bigl((\Delta, X), (\Delta', X')\bigr)
            = \| \mathcal{A}(\Delta, X) - \mathcal{A}(\Delta', X') \|_2

    It is a pseudo-metric: symmetric, with the triangle inequality, and zero between signals that
    differ, namely (for p = 2) by a functional shift. On one graph it is at most
    :math:`\|X - X'\|_2` for p = 2.

    Args:
        x: (..., N, d), or a `Decomposition` of it.
        projector: the bands of its graph; not needed with a `Decomposition`.
        other: (..., N', d), the other signal.
        other_projector: the bands of the other graph, as many; the same graph by default.
        p: the norm of `analyze`.
        normalize: divide norms by :math:`N^{1/p}`, to compare graphs of different sizes.

    Returns:
        (...), real and not negative; one number a graph for a `BatchProjector`.

    Raises:
        SignalError: the two have different numbers of bands or channels, or `analyze` refuses one.

    Example:
        >>> import torch
        >>> from nlsf.spectral import Projector, UniformBands, laplacian, partial_eigh, sample_shift
        >>> spectrum = partial_eigh(laplacian(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])))
        >>> P = Projector(spectrum, UniformBands(S=2))
        >>> x = torch.randn(3, 2, dtype=torch.float64)
        >>> bool(spectral_distance(x, P, sample_shift(P)(x)) < 1e-12)
        True
    """
    if other_projector is None:
        other_projector = projector
    first = analyze(x, projector, p=p, normalize=normalize)
    second = analyze(other, other_projector, p=p, normalize=normalize)
    if first.shape[-2:] != second.shape[-2:]:
        raise SignalError(
            f"Signals are compared band by band and channel by channel, but one has "
            f"{first.shape[-2]} x {first.shape[-1]} coefficients and the other {second.shape[-2]} "
            f"x {second.shape[-1]}: use the same bands and as many channels."
        )
    distance: Tensor = torch.linalg.vector_norm(first - second, dim=(-2, -1))
    return distance
