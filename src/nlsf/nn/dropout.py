"""Dropout whose random mask can be handed in: `Dropout`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError


class Dropout(nn.Module):
    """Like ``nn.Dropout``, with a mask of its own or one that is handed in.

    A mask that is handed in makes a training step a function of its inputs. So many models can be
    trained in one `torch.func.vmap`, and a run can be repeated from one generator. Each module is
    called at most once in a forward pass: it has one mask.

    Args:
        p: the share of entries that become zero, at least 0 and less than 1; 0 is the identity.

    Attributes:
        generator: draws the masks, where none is handed in; ``None`` for PyTorch's own.
        window: where the rows of the input lie in a larger batch, for the generator's masks: it
            gets their number and gives the first row and the number of all rows.
        mask: of the input's shape, 0 or 1 / (1 - p); ``None`` to draw one in every call. It is no
            part of the state that is saved, and evaluation does not look at it.
    """

    mask: Tensor | None

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ModelError(f"A dropout must be at least 0 and less than 1, not {p!r}.")
        self.p = p
        self.generator: torch.Generator | None = None
        self.window: Callable[[int], tuple[int, int]] | None = None
        self.register_buffer("mask", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The signal, times the mask in training."""
        if not self.training or self.p == 0:
            return x
        if self.mask is not None:
            return x * self.mask.to(x.dtype)
        if self.generator is not None:
            window = None if self.window is None else self.window(x.shape[0])
            return x * _mask(x.shape, self.p, self.generator, window).to(x.dtype)
        return nn.functional.dropout(x, self.p)

    def extra_repr(self) -> str:
        """The share."""
        return f"p={self.p}"


def dropout_shapes(module: nn.Module, call: Callable[[], object]) -> dict[str, torch.Size]:
    """The shape of the mask that each `Dropout` of a module needs.

    The call is made once, without gradient and in evaluation mode, so that it leaves running
    statistics and random numbers alone; the modes are as before afterwards.

    Args:
        module: a model.
        call: calls it on the input that it will see.

    Returns:
        Shapes by the names of ``module.named_modules()``, of those that the call reached and whose
        p is not 0.

    Raises:
        ModelError: if one is used twice in the call.
    """
    shapes: dict[str, torch.Size] = {}

    def record(name: str) -> Callable[[nn.Module, Any], None]:
        def hook(_: nn.Module, inputs: Any) -> None:
            if name in shapes:
                raise ModelError(f"The dropout {name!r} is used twice in a call: it has one mask.")
            shapes[name] = inputs[0].shape

        return hook

    parts = active_dropouts(module).items()
    handles = [part.register_forward_pre_hook(record(name)) for name, part in parts]
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            call()
    finally:
        for handle in handles:
            handle.remove()
        for part, mode in modes:
            part.training = mode
    return shapes


def draw_masks(
    module: nn.Module,
    shapes: Mapping[str, torch.Size],
    generator: torch.Generator,
    windows: Mapping[str, tuple[int, int]] | None = None,
) -> dict[str, Tensor]:
    """New masks, in the order of ``module.named_modules()``.

    Args:
        module: a model.
        shapes: as `dropout_shapes` gives them.
        generator: where the random numbers come from; the masks are on its device.
        windows: where the input is a part of a larger batch: the first row of each mask, and the
            number of rows of the whole batch, for which numbers are drawn.

    Returns:
        Buffers by name, ``{"encoder.2.mask": ...}``, float32, for ``torch.func.functional_call``.
    """
    masks = {}
    for name, part in active_dropouts(module).items():
        if name in shapes:
            window = None if windows is None else windows[name]
            mask = _mask(shapes[name], part.p, generator, window)
            masks[f"{name}.mask" if name else "mask"] = mask
    return masks


def draw_padded_masks(
    modules: Sequence[nn.Module],
    shapes: Mapping[str, torch.Size],
    generators: Sequence[torch.Generator],
    rows: Sequence[int],
    width: int,
) -> dict[str, Tensor]:
    """New masks of many models that look at different numbers of rows, padded with zeros.

    Numbers are drawn as each model would alone, where every `Dropout` draws when it is called.

    Args:
        modules: M models.
        shapes: as `dropout_shapes` gives them, in the order of the calls; with a first dimension
            of 0 where it is the model's number of rows.
        generators: where the random numbers come from, one a model.
        rows: how many each model has.
        width: how many the masks have, with padding.

    Returns:
        Buffers (M, ...) by name, as from `draw_masks`.
    """
    masks = {}
    for name, (first, *others) in shapes.items():
        sizes = [first] * len(modules) if first else rows
        mask = torch.zeros(len(modules), first or width, *others)
        mask = mask.to(generators[0].device)
        for one, size, generator in zip(mask, sizes, generators, strict=True):
            one[:size].uniform_(generator=generator)
        p = [cast("Dropout", module.get_submodule(name)).p for module in modules]
        low, kept = (torch.tensor(v).to(mask) for v in (p, [1 - share for share in p]))
        one_a_model = (-1, *[1] * (mask.ndim - 1))
        mask.ge_(low.reshape(one_a_model)).div_(kept.reshape(one_a_model))
        masks[f"{name}.mask" if name else "mask"] = mask
    return masks


def _mask(
    shape: torch.Size, p: float, generator: torch.Generator, window: tuple[int, int] | None
) -> Tensor:
    # Uniform numbers and a comparison take less than half the time of bernoulli_.
    if window is None:
        uniform = torch.rand(shape, generator=generator, device=generator.device)
    else:
        start, rows = window
        every = torch.rand((rows, *shape[1:]), generator=generator, device=generator.device)
        uniform = every[start : start + shape[0]]
    return uniform.ge_(p).div_(1 - p)


def active_dropouts(module: nn.Module) -> dict[str, Dropout]:
    """Those that change anything in training, by name."""
    parts = module.named_modules()
    return {name: part for name, part in parts if isinstance(part, Dropout) and part.p > 0}
