"""Analysis and synthesis: from signals to invariant coefficients and back (Sec. 3.3)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.decomposition import BandProjector, Decomposition
from nlsf.spectral.norms import lp_norm, power

Form: TypeAlias = Literal["diagonal", "bandwise", "full"]


def analyze(
    x: Tensor | Decomposition,
    projector: BandProjector | None = None,
    *,
    p: float = 2.0,
    normalize: bool = False,
) -> Tensor:
    r"""The norm of every channel in every band (Eq. 2 and 3).

    .. math::
        \mathcal{A}(\Delta, X)_{j, c} = \| P_j X_{:, c} \|_p

    Unitary maps that commute with the bands do not change it for p = 2. No other L_p norm is kept
    by unitary maps: for those only the permutation of nodes leaves it as it is. Polynomial bands
    are not exact projections: for p = 2 they give :math:`\langle x, P_j x \rangle^{1/2}`.

    Args:
        x: (..., N, d), or a `Decomposition` of it.
        projector: the bands; not needed with a `Decomposition`.
        p: the norm, at least 1, ``math.inf`` allowed. Anything but 2 looks at one projection of
            (..., N, d) after the other.
        normalize: divide by :math:`N^{1/p}`, so that the norm of a constant signal does not depend
            on the size of the graph.

    Returns:
        (..., B, d), real and not negative; the gradient of a zero norm is 0. (G, B, d) for the G
        graphs of a `BatchProjector`.

    Raises:
        SignalError: wrong shape or dtype, a value that is not finite, or p below 1.
    """
    parts = _decomposition(x, projector)
    if not p >= 1:
        raise SignalError(f"p must be at least 1, not {p!r}.")
    if p == 2:
        norm = parts.norms()
    elif parts.prepared:
        raise SignalError("A prepared signal knows its L_2 norms only: use p = 2.")
    else:
        each = range(parts.projector.n_bands)
        bands = [lp_norm(parts.part(j), p) for j in each]
        norm = torch.stack(bands, dim=-2)
    if normalize:
        norm = norm / parts.projector.sizes.to(norm) ** (1 / p)
    return norm


def synthesize(
    r: Tensor,
    x: Tensor | Decomposition,
    projector: BandProjector | None = None,
    *,
    form: Form = "diagonal",
    a: float = 1.0,
    eps: float = 1e-6,
    p: float = 2.0,
    normalize: bool = False,
    norms: Tensor | None = None,
    weight: Tensor | None = None,
) -> Tensor:
    r"""A signal from spectral coefficients, with the given signal's projections as basis.

    With :math:`Q_j = P_j X / (\|P_j X\|^a + e)`, channel by channel, and :math:`0^0 = 1`:

    .. math::
        \text{diagonal (App. C.1):} \quad Y = \sum_j r_j \odot Q_j, \qquad
        \text{bandwise (App. F.6):} \quad Y = \sum_j Q_j R_j, \qquad
        \text{full (Eq. 2, 3):} \quad Y = [Q_1, \dots, Q_B] R .

    The normalisation goes into the coefficients, so that for every form two thin products remain
    and nothing of the size N x B d is built. The norms are those of `analyze`, for polynomial bands
    too.

    Args:
        r: the coefficients: diagonal (..., B, d); bandwise (..., B, d, d'); full
            (..., B d, B d').
        x: (..., N, d), or a `Decomposition` of it.
        projector: the bands; not needed with a `Decomposition`.
        form: which of the three.
        a: exponent of the norm, 0 to 1.
        eps: the e in the denominator, positive.
        p: the norm in the denominator.
        normalize: divide that norm by :math:`N^{1/p}`.
        norms: what `analyze` gave for the same x, p and normalize, if it is at hand.
        weight: (d, d'), a linear map of the channels after the diagonal form: Y W, which costs less
            than both in turn where it leaves fewer channels.

    Returns:
        diagonal (..., N, d), with a map (..., N, d'); bandwise (..., N, d'); full (..., N, B d').

    Raises:
        SignalError: shapes that do not fit, a outside [0, 1], or eps that is not positive.
    """
    parts = _decomposition(x, projector)
    if norms is None:
        norms = analyze(parts, p=p, normalize=normalize)
    scale = band_scale(norms, a, eps)
    of_maps = scale.unsqueeze(-1) if isinstance(scale, Tensor) else scale
    n_bands, channels = norms.shape[-2:]

    if form == "diagonal":
        _check_shape(r, (n_bands, channels), form)
        gain = r * scale
        return parts.weighted(gain) if weight is None else parts.mapped(gain, weight)
    if weight is not None:
        raise SignalError(f"A map after the synthesis is for the diagonal form, not for {form!r}.")
    if form == "bandwise":
        _check_shape(r, (n_bands, channels, None), form)
        return parts.mixed(r * of_maps)
    if form == "full":
        _check_shape(r, (n_bands * channels, None), form)
        return parts.mixed(r.unflatten(-2, (n_bands, channels)) * of_maps)
    raise SignalError(f"form must be 'diagonal', 'bandwise' or 'full', not {form!r}.")


def band_scale(norms: Tensor, a: float, eps: float) -> Tensor | float:
    r"""The factors :math:`1 / (\|P_j X\|^a + e)` of the synthesis, in the shape of the norms.

    For a = 0 they are all the same number, and that is what it returns.

    Raises:
        SignalError: a outside [0, 1], or eps that is not positive.
    """
    if not 0 <= a <= 1:
        raise SignalError(f"The exponent a must lie between 0 and 1, not {a!r}.")
    if not eps > 0:
        raise SignalError(f"eps must be positive, not {eps!r}.")
    if a == 0:  # 0^0 = 1
        return 1 / (1 + eps)
    return 1 / (power(norms, a) + eps)


def _decomposition(x: Tensor | Decomposition, projector: BandProjector | None) -> Decomposition:
    if isinstance(x, Decomposition):
        return x
    if projector is None:
        raise SignalError("A signal needs a projector: analyze(x, projector).")
    return projector.decompose(x)


def _check_shape(r: Tensor, expected: tuple[int | None, ...], form: str) -> None:
    got = r.shape[-len(expected) :]
    if r.ndim < len(expected) or any(
        e is not None and e != g for e, g in zip(expected, got, strict=True)
    ):
        wanted = ", ".join("d'" if e is None else str(e) for e in expected)
        raise SignalError(
            f"The coefficients of the {form} form must have the shape (..., {wanted}), "
            f"not {tuple(r.shape)}."
        )
