"""Activations by name: `activation_of`."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.modules import activation as modules

from nlsf.errors import ModelError, unknown_name

# These need arguments, or are no functions of one number.
_OTHERS = {
    "GLU",
    "LogSoftmax",
    "MultiheadAttention",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Threshold",
}


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


_CLASSES = {
    _plain(name): getattr(modules, name) for name in modules.__all__ if name not in _OTHERS
} | {"swish": nn.SiLU}


def activation_of(activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A pointwise activation of PyTorch by its name, or the callable that was given.

    Names are those of the classes in `torch.nn`, in any spelling: ``"leaky_relu"`` is
    ``LeakyReLU``. PyTorch Geometric has the same, but importing it costs as much as PyTorch itself.

    Raises:
        ModelError: there is no activation of this name.

    Example:
        >>> activation_of("leaky_relu")
        LeakyReLU(negative_slope=0.01)
    """
    if not isinstance(activation, str):
        return activation
    name = _plain(activation)
    if name not in _CLASSES:
        raise ModelError(unknown_name("activation", activation, _CLASSES))
    made: nn.Module = _CLASSES[name]()
    return made
