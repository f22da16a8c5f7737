"""Adam for many models at once, each with its own settings: `BatchAdam`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


class BatchAdam:
    r"""Adam on parameters with a leading dimension, one slice a model.

    .. math::
        g \leftarrow g + w_m \theta, \quad m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        \theta \leftarrow \theta - \eta_m \frac{\hat m}{\sqrt{\hat v} + \epsilon}

    Every operation is elementwise, so a model's numbers do not depend on its neighbours. PyTorch's
    own Adam has one learning rate a tensor; here it, and the weight decay, may differ along the
    leading dimension.

    Args:
        params: stacked parameters by name, (M, ...), leaves that require a gradient.
        lr: the learning rates of every parameter: (M,).
        weight_decay: its weight decays: (M,).
        betas: the decay rates of the moments.
        eps: the :math:`\epsilon` of the formula.
    """

    def __init__(
        self,
        params: Mapping[str, Tensor],
        lr: Mapping[str, Sequence[float]],
        weight_decay: Mapping[str, Sequence[float]],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.params = dict(params)
        self.lr = {name: _column(lr[name], p) for name, p in params.items()}
        self.decay = {name: _column(weight_decay[name], p) for name, p in params.items()}
        self.betas, self.eps = betas, eps
        self.first = {name: torch.zeros_like(p) for name, p in params.items()}
        self.second = {name: torch.zeros_like(p) for name, p in params.items()}
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """One update from the gradients, which are then forgotten."""
        self.steps += 1
        b1, b2 = self.betas
        for name, p in self.params.items():
            if p.grad is None:
                continue
            g = torch.addcmul(p.grad, self.decay[name], p)
            m, v = self.first[name], self.second[name]
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            scale = self.lr[name] / (1 - b1**self.steps)
            p -= scale * m / ((v / (1 - b2**self.steps)).sqrt_() + self.eps)
            p.grad = None

    def keep(self, params: Mapping[str, Tensor], index: Tensor) -> None:
        """Goes on with some of the models: ``params`` are their stacked parameters."""
        self.params = dict(params)
        for store in (self.lr, self.decay, self.first, self.second):
            for name, value in store.items():
                store[name] = value[index]

    def state(self) -> dict[str, Tensor]:
        """The moments, by name; `load_state` takes them back."""
        first = {f"first.{name}": m for name, m in self.first.items()}
        return {**first, **{f"second.{name}": v for name, v in self.second.items()}}

    def load_state(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Goes on where another left off."""
        self.first = {name: state[f"first.{name}"].clone() for name in self.params}
        self.second = {name: state[f"second.{name}"].clone() for name in self.params}
        self.steps = steps


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    """One number a model, in a shape that multiplies a stacked parameter."""
    column = torch.as_tensor(values, dtype=like.dtype, device=like.device)
    return column.reshape(-1, *[1] * (like.ndim - 1))
