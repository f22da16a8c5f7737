"""Where a filter starts: the linear response that it has before training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from nlsf.errors import ModelError

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
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    inference = frequencies.is_inference() or torch.is_inference_mode_enabled()
    return not (frequencies.requires_grad or inference)


@lru_cache(maxsize=64)
def _known_gains(start: Start, frequencies: Tensor, version: int) -> Tensor:
    """The gains of one tensor, told from others by its identity: every training step asks again."""
    return start._gains(frequencies)
