"""What every response Psi has in common, and all of them by name: `Psi`, `register_response`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.start import Start
from nlsf.spectral.transform import Form

RESPONSES: dict[str, Callable[..., Psi]] = {}
"""What makes a response, by the name that layers and settings call it by."""

ResponseName: TypeAlias = Annotated[str, RESPONSES]
"""A name in `RESPONSES`."""


class Psi(nn.Module):
    r"""A response :math:`\Psi`: from invariant norms to spectral coefficients.

    A response is a subclass with a ``name``, ``forward`` and ``reset_parameters``, made known by
    `register_response`. Norms are invariant to functional shifts, so whatever is made of them is
    too. It is constructed with ``n_bands`` and ``channels``, and with options as keywords:
    ``out_channels``, ``start`` and those of `Response`, of which it takes what it needs.

    Args:
        n_bands: B, the complement included if there is one.
        channels: d.
    """

    name: str
    """What layers and settings call it by."""

    form: Form = "diagonal"
    """Which form of `nlsf.spectral.synthesize` the coefficients are for."""

    sharing: str = "shared"
    """Which channels share parameters; for displays."""

    multiplicative: bool = True
    """Whether it multiplies the gains of the start, rather than adding to them; for displays."""

    gain_parameters: tuple[str, ...] = ()
    """Names of parameters that are added to the gains of the start, whatever the norms are: with
    them alone it is a linear filter. They have a weight decay of their own in training."""

    def __init__(self, n_bands: int, channels: int) -> None:
        super().__init__()
        self.n_bands, self.channels = n_bands, channels

    def forward(self, norms: Tensor, gains: Tensor) -> Tensor:
        """The coefficients.

        Args:
            norms: (..., B, d).
            gains: (..., B), of the linear filter that the layer starts as.

        Returns:
            (..., B, d); (..., B, d, d') for the bandwise form, a matrix for every band;
            (..., B d, B d') for the full form.
        """
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Back to the start."""
        raise NotImplementedError


P = TypeVar("P", bound=Psi)


def register_response(cls: type[P]) -> type[P]:
    """Makes a response known by its ``name``, in layers and in settings (``model.response``).

    A class that is defined again, as in a cell of a notebook that is run twice, takes the place of
    the one before.

    Raises:
        ModelError: another response has this name.
    """
    before = RESPONSES.get(cls.name)
    if before is not None and _place(before) != _place(cls):
        raise ModelError(f"There is a response {cls.name!r} already. Choose another name.")
    RESPONSES[cls.name] = cls
    return cls


def _place(made: object) -> tuple[object, object]:
    return getattr(made, "__module__", None), getattr(made, "__qualname__", None)


def make_response(
    name: ResponseName,
    n_bands: int,
    channels: int,
    *,
    out_channels: int | None = None,
    start: Start | None = None,
    **options: Any,
) -> Psi:
    """The response of this name.

    Args:
        name: one of `RESPONSES`.
        n_bands: B, the complement included if there is one.
        channels: d.
        out_channels: d', for the bandwise and full forms; d if it is left out.
        start: the linear filter that the layer starts as; all-pass if it is left out.
        options: those of `Response`.

    Raises:
        ModelError: there is none of this name.
    """
    if name not in RESPONSES:
        raise ModelError(f"response must be one of {', '.join(RESPONSES)}, not {name!r}.")
    return RESPONSES[name](
        n_bands, channels, out_channels=out_channels or channels, start=start or Start(), **options
    )
