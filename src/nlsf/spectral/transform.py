"""Analysis and synthesis: from signals to invariant coefficients and back (Sec. 3.3)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.batch_projector import BatchProjector
from nlsf.spectral.norms import energy, lp_norm, power
from nlsf.spectral.projector import Decomposition, Projector
from nlsf.spectral.thin import thin_product
from nlsf.spectral.vmapped import holds_everywhere

Form: TypeAlias = Literal["diagonal", "bandwise", "full"]

_PYTHAGORAS = 1e-3
"""Share of the energy below which the implicit band's norm is computed, not inferred."""


def analyze(
    x: Tensor | Decomposition,
    projector: Projector | BatchProjector | None = None,
    *,
    p: float = 2.0,
    normalize: bool = False,
) -> Tensor:
    r"""The norm of every channel in every band (Eq. 2 and 3).

    .. math::
        \mathcal{A}(\Delta, X)_{j, c} = \| P_j X_{:, c} \|_p

    Unitary maps that commute with the bands do not change it for p = 2. No other L_p norm is kept
    by unitary maps: for those only the permutation of nodes leaves it as it is.

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
        norm = power(_energies(parts), 0.5)
    elif parts.rest_energy is not None:
        raise SignalError("A prepared signal knows its L_2 norms only: use p = 2.")
    else:
        each = range(parts.projector.n_bands)
        bands = [lp_norm(parts.projector.part(parts, j), p) for j in each]
        norm = torch.stack(bands, dim=-2)
    if normalize:
        norm = norm / parts.projector.sizes.to(norm) ** (1 / p)
    return norm


def synthesize(
    r: Tensor,
    x: Tensor | Decomposition,
    projector: Projector | BatchProjector | None = None,
    *,
    form: Form = "diagonal",
    a: float = 1.0,
    eps: float = 1e-6,
    p: float = 2.0,
    normalize: bool = False,
    norms: Tensor | None = None,
) -> Tensor:
    r"""A signal from spectral coefficients, with the given signal's projections as basis.

    With :math:`Q_j = P_j X / (\|P_j X\|^a + e)`, channel by channel, and :math:`0^0 = 1`:

    .. math::
        \text{diagonal (App. C.1):} \quad Y = \sum_j r_j \odot Q_j, \qquad
        \text{bandwise (App. F.6):} \quad Y = \sum_j Q_j R_j, \qquad
        \text{full (Eq. 2, 3):} \quad Y = [Q_1, \dots, Q_B] R .

    The normalisation goes into the coefficients, so that for every form two thin products remain
    and nothing of the size N x B d is built.

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

    Returns:
        diagonal (..., N, d); bandwise (..., N, d'); full (..., N, B d').

    Raises:
        SignalError: shapes that do not fit, a outside [0, 1], or eps that is not positive.
    """
    parts = _decomposition(x, projector)
    if not 0 <= a <= 1:
        raise SignalError(f"The exponent a must lie between 0 and 1, not {a!r}.")
    if not eps > 0:
        raise SignalError(f"eps must be positive, not {eps!r}.")
    if norms is None:
        norms = analyze(parts, p=p, normalize=normalize)
    scale = 1 / (power(norms, a) + eps)
    n_bands, channels = norms.shape[-2:]

    if form == "diagonal":
        _check_shape(r, (n_bands, channels), form)
        return _diagonal(parts, r * scale)
    if form == "bandwise":
        _check_shape(r, (n_bands, channels, None), form)
        return _mixing(parts, scale, r)
    if form == "full":
        _check_shape(r, (n_bands * channels, None), form)
        return _mixing(parts, scale, r.unflatten(-2, (n_bands, channels)))
    raise SignalError(f"form must be 'diagonal', 'bandwise' or 'full', not {form!r}.")


def _decomposition(
    x: Tensor | Decomposition, projector: Projector | BatchProjector | None
) -> Decomposition:
    if isinstance(x, Decomposition):
        return x
    if projector is None:
        raise SignalError("A signal needs a projector: analyze(x, projector).")
    return projector.decompose(x)


def _energies(parts: Decomposition) -> Tensor:
    """Squared norms (..., B, d): sums of squared coefficients over the columns of each band."""
    energies = parts.projector.band_sums(energy(parts.coefficients))
    if parts.projector.rest is None:
        return energies
    rest = _rest_energy(parts, energies.sum(-2, keepdim=True))
    return energies.index_add(-2, parts.projector.rest_index, rest)


def _rest_energy(parts: Decomposition, explicit: Tensor) -> Tensor:
    """The implicit band's energy (..., 1, d): by Pythagoras where that is accurate.

    The difference of two nearly equal energies has no digits left. Where less than a thousandth is
    left to the implicit band, its norm is computed from the remainder (docs/decisions.md).
    """
    if parts.rest_energy is not None:
        return parts.rest_energy
    if parts.known_remainder is None:
        # One pass, where squares and their sum would be two.
        total = torch.linalg.vector_norm(parts.signal, dim=-2, keepdim=True).square()
        rest: Tensor = total - explicit
        if holds_everywhere(rest > _PYTHAGORAS * total):
            return rest
    return energy(parts.remainder).sum(-2, keepdim=True)


def _diagonal(parts: Decomposition, gain: Tensor) -> Tensor:
    projector = parts.projector
    gain = gain.to(parts.coefficients.dtype)
    if projector.rest is None:
        gained = parts.coefficients * projector.spread(gain)
        return projector.restore(thin_product(projector.vectors, gained))
    rest = gain[..., projector.rest, None, :]
    if parts.known_remainder is None:  # the rest is X minus the columns: fold it into them
        gained = parts.coefficients * (projector.spread(gain) - rest)
        y = thin_product(projector.vectors, gained)
        return projector.restore(torch.addcmul(y, parts.signal, rest))
    y = thin_product(projector.vectors, parts.coefficients * projector.spread(gain))
    return projector.restore(torch.addcmul(y, parts.remainder, rest))


def _mixing(parts: Decomposition, scale: Tensor, r: Tensor) -> Tensor:
    projector = parts.projector
    r = (r * scale.unsqueeze(-1)).to(parts.coefficients.dtype)
    mixed = projector.mix(parts.coefficients, r)
    if projector.rest is None:
        return projector.restore(thin_product(projector.vectors, mixed))
    rest = r[..., projector.rest, :, :]
    if parts.known_remainder is None:
        mixed = mixed - parts.coefficients @ rest
        y = thin_product(projector.vectors, mixed)
        return projector.restore(y + parts.signal @ rest)
    return projector.restore(thin_product(projector.vectors, mixed) + parts.remainder @ rest)


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
