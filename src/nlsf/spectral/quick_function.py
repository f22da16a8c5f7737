"""Functions with a gradient of their own that are called often: `QuickFunction`."""

from __future__ import annotations

from typing import Any

import torch


class QuickFunction(torch.autograd.Function):
    """A `torch.autograd.Function` whose call costs little more than its ``forward``.

    PyTorch binds the arguments of a function with ``setup_context`` to their names by
    ``inspect`` at every call, which takes longer than a small product. Without default values and
    outside of the transforms of `torch.func` nothing needs it; and without gradients nothing needs
    more than ``forward``.
    """

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """The value of ``forward``, whose arguments are given by position."""
        if torch._C._are_functorch_transforms_active():
            return super().apply(*arguments)  # type: ignore[no-untyped-call]
        if not torch.is_grad_enabled():
            return cls.forward(*arguments)
        return super(torch.autograd.Function, cls).apply(*arguments)  # type: ignore[misc]
