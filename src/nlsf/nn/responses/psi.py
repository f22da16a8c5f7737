"""What every response Psi has in common: `Psi`, `register_response`, and its `Start`.

A start is the linear response that a filter has before training.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.spectral.kernels.transforms import is_transformed
from nlsf.spectral.lens.view import Form
from nlsf.spectral.notebook import bars

_DRAWN = 2_000_000
"""Outputs of a response up to which it is tried for a drawing."""

StartName: TypeAlias = Literal["all-pass", "heat", "ppr", "high-pass", "walk", "random"]
_NAMES = ("all-pass", "heat", "ppr", "high-pass", "walk", "random")


@dataclass(frozen=True)
class Start:
    r"""The gain :math:`h_0(\lambda)` of each band before training.

    - ``all-pass``: :math:`1`
    - ``heat``: :math:`e^{-t \lambda}`
    - ``ppr``: :math:`1 / (1 + t \lambda)`
    - ``high-pass``: :math:`t \lambda / (1 + t \lambda)`
    - ``walk``: :math:`\min(|1 - \lambda|, 1)^t`, on N a random walk of t steps: both ends of the
      spectrum pass, and a gap is left around 1, where nodes with equal neighbourhoods that are no
      neighbours have their differences
    - ``random``: none: the response starts as a random network

    Args:
        name: which of them.
        t: how quickly it falls or rises with the frequency.
        floor: the least gain. A multiplicative response cannot re-open a band whose gain is 0.
    """

    name: StartName = "all-pass"
    t: float = 9.0
    floor: float = 0.05

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise ModelError(f"start must be one of {', '.join(_NAMES)}, not {self.name!r}.")
        if not self.t > 0:
            raise ModelError(f"The t of a start must be positive, not {self.t!r}.")
        if not 0 <= self.floor <= 1:
            raise ModelError(f"The floor of a start must lie between 0 and 1, not {self.floor!r}.")

    @classmethod
    def of(cls, start: StartName | Start) -> Start:
        """Reads the ``start`` argument of a layer."""
        return start if isinstance(start, Start) else cls(start)

    def gains(self, frequencies: Tensor) -> Tensor:
        """The gain of bands with these mean frequencies: same shape, and not to be written to."""
        if _is_fixed(frequencies):
            return _known_gains(self, frequencies, frequencies._version)
        return self._gains(frequencies)

    def _gains(self, frequencies: Tensor) -> Tensor:
        if self.name == "heat":
            gain = torch.exp(-self.t * frequencies)
        elif self.name == "ppr":
            gain = torch.reciprocal(1 + self.t * frequencies)
        elif self.name == "high-pass":
            gain = self.t * frequencies / (1 + self.t * frequencies)
        elif self.name == "walk":
            gain = (1 - frequencies).abs().clamp(max=1) ** self.t
        elif self.name == "all-pass":
            gain = torch.ones_like(frequencies)
        else:
            return torch.zeros_like(frequencies)
        return gain.clamp(min=self.floor)


def _is_fixed(frequencies: Tensor) -> bool:
    """Whether what is computed of them now is good for every later call."""
    if is_transformed():
        return False
    inference = frequencies.is_inference() or torch.is_inference_mode_enabled()
    return not (frequencies.requires_grad or inference)


@lru_cache(maxsize=64)
def _known_gains(start: Start, frequencies: Tensor, version: int) -> Tensor:
    """The gains of one tensor, told from others by its identity: every training step asks again."""
    return start._gains(frequencies)


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
            (..., B, d); (..., B, d, d') for the form ``"matrices"``, one for every band;
            (..., B d, B d') for the full form.
        """
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Back to the start."""
        raise NotImplementedError

    def drawing(self) -> str:
        """For a notebook: the response to a signal with equal energy in all bands."""
        if self.form != "diagonal" or self.n_bands * self.channels > _DRAWN:
            return ""
        trial = copy.deepcopy(self).eval()  # dropout would blur it, and the layer stays as it is
        weight = next(trial.parameters(), torch.ones(()))
        one = torch.ones(trial.n_bands, trial.channels, dtype=weight.dtype, device=weight.device)
        with torch.no_grad():
            gain = trial(one, one[:, 0]).mean(-1)
        if self.multiplicative:
            caption = "factor on the start's gain, band by band; 1 at the start"
            return bars(gain.tolist(), caption, line=1.0)
        caption = "added to the start's gain, band by band; 0 at the start"
        return bars((gain - 1).tolist(), caption)


P = TypeVar("P", bound=Psi)


def register_response(cls: type[P]) -> type[P]:
    """Makes a response known by its ``name``, in layers and in settings (``model.response``).

    A class that is defined again, as in a cell of a notebook that is run twice, takes the place of
    the one before.

    Raises:
        ModelError: another response has this name, or its coefficients have an unknown form.
    """
    if cls.form not in get_args(Form):
        raise ModelError(
            f"The form of a response must be one of {', '.join(get_args(Form))}, not {cls.form!r} "
            "(the bandwise form of version 0.1 is called 'matrices')."
        )
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
        out_channels: d', for forms with matrices; d if it is left out.
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
