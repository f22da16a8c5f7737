"""What depends on the private parts of PyTorch: its function transforms and pytrees."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node


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


def is_transformed() -> bool:
    """Whether a compiler or a transform of `torch.func` looks on, and nothing may be remembered."""
    return bool(torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active())


def is_vmapped(tensor: Tensor) -> bool:
    """Whether it stands for many tensors, or is of use only within a transform of `torch.func`."""
    if torch.compiler.is_compiling():  # the tracer knows no such tensors, nor how to ask
        return False
    wrapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return wrapped


def lasting(source: Tensor) -> AbstractContextManager[object]:
    """For what is computed of a tensor and kept: a training may need it and its gradient later.

    The first to ask may have switched gradients off, to look at a number between two steps.
    """
    if torch.is_grad_enabled() or is_transformed() or source.is_inference():
        return nullcontext()
    modes = ExitStack()
    modes.enter_context(torch.inference_mode(False))
    modes.enter_context(torch.enable_grad())
    return modes


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


_Class = TypeVar("_Class", bound=type)


def as_pytree(cls: _Class) -> _Class:
    """Lets `torch.func.vmap` see the tensors in the fields of a frozen dataclass."""
    names = [field.name for field in dataclasses.fields(cls)]
    register_pytree_node(
        cls,
        lambda one: ([getattr(one, name) for name in names], None),
        lambda values, _: cls(*values),
    )
    return cls
