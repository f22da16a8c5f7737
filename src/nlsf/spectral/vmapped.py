"""What a computation may ask of its tensors when `torch.func.vmap` runs it for many at once."""

from __future__ import annotations

import torch
from torch import Tensor


def is_vmapped(tensor: Tensor) -> bool:
    """Whether it stands for many tensors, or is of use only within a transform of `torch.func`."""
    if torch.compiler.is_compiling():  # the tracer knows no such tensors, nor how to ask
        return False
    wrapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return wrapped


def holds_everywhere(condition: Tensor) -> bool:
    """Whether a condition is true in all entries, of all tensors that it stands for.

    A branch inside of `torch.func.vmap` can only be taken for all members together. PyTorch before
    2.6 cannot look into them; there the answer is no.
    """
    if is_vmapped(condition):
        if not hasattr(torch.func, "debug_unwrap"):
            return False
        condition = torch.func.debug_unwrap(condition)
    return bool(condition.all())
