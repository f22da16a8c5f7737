"""Batch normalisation with the statistics of all processes: `SharedBatchNorm`."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn

from nlsf.nn.batch_norm import NodeBatchNorm
from nlsf.train.group import Group


class SharedBatchNorm(NodeBatchNorm):
    r"""``nn.BatchNorm1d`` over the whole batch, of which every process has a share.

    With :math:`n_k` rows in process k, their mean :math:`\mu_k` and variance :math:`v_k`, and
    :math:`w_k = n_k / \sum_k n_k`,

    .. math::
        \mu = \sum_k w_k \mu_k, \qquad v = \sum_k w_k \bigl( v_k + (\mu_k - \mu)^2 \bigr),

    which does not cancel, as a difference of mean squares would. One message forwards and one
    backwards, of P (2 C + 1) numbers. PyTorch's ``SyncBatchNorm`` is for graphics cards only,
    and not for `torch.func.vmap`.

    Shapes:
        - input, output: (n, C) or (n, C, L)
        - inside: as in `NodeBatchNorm`
    """

    group: Group

    def forward(self, x: Tensor, inside: Tensor | None = None) -> Tensor:
        """The batch, normalised; in evaluation by the running statistics."""
        if not self.training:
            return super().forward(x)
        x = x.movedim(1, -1)
        rows = torch.ones_like(x[..., :1]) if inside is None else inside.to(x).unsqueeze(-1)
        count, mean, v = _moments(x, rows)
        own, ranks = torch.cat([count, mean, v]), range(self.group.size)
        # A sum of rows that only one process fills gathers them.
        placed = torch.stack([own if k == self.group.rank else 0 * own.detach() for k in ranks])
        every: Tensor = _Sum.apply(placed, self.group)  # type: ignore[no-untyped-call]
        counts, (means, variances) = every[:, :1], every[:, 1:].chunk(2, dim=1)
        total = counts.sum()
        w = counts / total
        mean = (w * means).sum(0)
        v = (w * (variances + (means - mean).square())).sum(0)
        self.track(mean.detach(), (v * total / (total - 1)).detach())
        y = (x - mean) * (v + self.eps).rsqrt()
        if self.affine:
            y = y * self.weight + self.bias
        return (y if inside is None else y * rows).movedim(-1, 1)


def _moments(x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The number (1,) of rows that are 1 and not 0, and the means and variances (C,) over them."""
    every = tuple(range(x.ndim - 1))
    count = rows.sum(every)
    mean = (x * rows).sum(every) / count.clamp(min=1)
    return count, mean, ((x - mean).square() * rows).sum(every) / count.clamp(min=1)


def with_shared_norms(model: nn.Module, group: Group) -> nn.Module:
    """A copy of a model whose batch statistics are those of all processes; names do not change."""
    if group.size == 1:
        return model
    model = copy.deepcopy(model)
    for part in model.modules():
        if type(part) in (nn.BatchNorm1d, NodeBatchNorm):
            # The same parameters and names, another way to compute.
            part.__class__ = SharedBatchNorm
            cast("SharedBatchNorm", part).group = group
    return model


class _Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(own: Tensor, group: Group) -> Tensor:
        return group.sum(own)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.group = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None]:
        return ctx.group.sum(grads[0]), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, own: Tensor, group: Group) -> tuple[Tensor, int | None]:
        # All models at once: one message.
        return _Sum.apply(own, group), in_dims[0]  # type: ignore[no-untyped-call]
