"""Batch normalisation of nodes of which some may be padding: `NodeBatchNorm`."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class NodeBatchNorm(nn.BatchNorm1d):
    r"""``nn.BatchNorm1d`` whose statistics leave out nodes that pad.

    With :math:`s_i = 1` for a node and 0 for padding, and :math:`n = \sum_i s_i`,

    .. math::
        \mu = \frac1n \sum_i s_i x_i, \qquad v = \frac1n \sum_i s_i (x_i - \mu)^2, \qquad
        y_i = \frac{x_i - \mu}{\sqrt{v + \epsilon}} \odot w + b

    Shapes:
        - x, output: (N, C)
        - inside: (N,), or ``None`` where no node is padding; then x may be (N, C, L) too
    """

    def forward(self, x: Tensor, inside: Tensor | None = None) -> Tensor:
        """The batch, normalised; in evaluation by the running statistics."""
        if not self.training or (inside is None and type(self) is NodeBatchNorm):
            return super().forward(x)
        x = x.movedim(1, -1)
        count, mean, v = self.statistics(x, inside)
        self._track(mean.detach(), (v * count / (count - 1)).detach())
        y = (x - mean) * (v + self.eps).rsqrt()
        if self.affine:
            y = y * self.weight + self.bias
        return y.movedim(-1, 1)

    def statistics(self, x: Tensor, inside: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The number of rows (1,), their mean (C,) and their variance (C,), from (..., C)."""
        if inside is None:
            v, mean = torch.var_mean(x, dim=tuple(range(x.ndim - 1)), correction=0)
            return torch.full_like(mean[:1], x.numel() / x.shape[-1]), mean, v
        share = inside.to(x.dtype)
        count = share.sum().unsqueeze(0)
        mean = share @ x / count
        return count, mean, share @ (x - mean).square() / count

    def _track(self, mean: Tensor, variance: Tensor) -> None:
        """Moves the running statistics, as ``nn.BatchNorm1d`` does."""
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        rate = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
        self.running_mean.mul_(1 - rate).add_(rate * mean)
        self.running_var.mul_(1 - rate).add_(rate * variance)
