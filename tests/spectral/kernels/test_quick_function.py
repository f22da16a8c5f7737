"""A quick function is an ordinary one: values, gradients, transforms of `torch.func`."""

from typing import Any

import pytest
import torch
from torch import Tensor

from nlsf.spectral.kernels.transforms import QuickFunction


class Cube(QuickFunction):
    """x^3, whose gradient is scaled by a number so that a test can see that it was used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, factor: float) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        return ctx.factor * 3 * x**2 * grads[0], None


X = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def test_value_and_own_gradient() -> None:
    x = X.clone().requires_grad_()
    y = Cube.apply(x, 10.0)
    assert torch.equal(y, X**3)
    y.sum().backward()
    assert torch.allclose(x.grad, 30 * X**2)


def test_gradients_are_checked_twice() -> None:
    x = X.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: Cube.apply(t, 1.0), x)
    assert torch.autograd.gradgradcheck(lambda t: Cube.apply(t, 1.0), x)


def test_transforms_of_torch_func() -> None:
    grad = torch.func.grad(lambda t: Cube.apply(t, 10.0).sum())
    assert torch.allclose(grad(X), 30 * X**2)
    many = torch.stack([X, 2 * X])
    assert torch.allclose(torch.func.vmap(grad)(many), 30 * many**2)


def test_too_few_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        Cube.apply(X)


def test_without_gradients_it_is_its_value() -> None:
    x = X.clone().requires_grad_()
    with torch.no_grad():
        y = Cube.apply(x, 10.0)
    assert torch.equal(y, X**3)
    assert not y.requires_grad
    with torch.no_grad():
        grad = torch.func.grad(lambda t: Cube.apply(t, 10.0).sum())(X)
    assert torch.allclose(grad, 30 * X**2)
