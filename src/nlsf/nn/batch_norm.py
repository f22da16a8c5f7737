"""Batch normalisation of nodes of which some may be padding: `NodeBatchNorm`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nlsf.errors import SignalError


class NodeBatchNorm(nn.BatchNorm1d):
    """``nn.BatchNorm1d`` whose statistics leave out the nodes that pad a model's batch.

    Padding is there for `torch.func.vmap`, behind the nodes of each model, and comes out as 0. The
    numbers are those of ``nn.BatchNorm1d`` on the other nodes alone.

    Shapes:
        - x, output: (N, C)
        - inside: (N,), true for nodes and false for padding; ``None`` where there is no padding
    """

    def forward(self, x: Tensor, inside: Tensor | None = None) -> Tensor:
        """The batch, normalised; in evaluation by the running statistics."""
        if not self.training or inside is None:
            return super().forward(x)
        y: Tensor
        y, mean, variance, _, _ = _Padded.apply(  # type: ignore[no-untyped-call]
            x, inside, self.weight, self.bias, self.eps
        )
        self.track(mean, variance)
        return y

    def track(self, mean: Tensor, variance: Tensor) -> None:
        """Moves the running statistics, as ``nn.BatchNorm1d`` does."""
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        rate = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
        self.running_mean.mul_(1 - rate).add_(rate * mean)
        self.running_var.mul_(1 - rate).add_(rate * variance)


class _Padded(torch.autograd.Function):
    """Normalised rows (M, n, C), means, unbiased variances, and what the gradient needs: (M, C).

    A model at a time, in the kernels of ``nn.BatchNorm1d``, so that the numbers are its own.
    """

    @staticmethod
    def forward(
        x: Tensor, inside: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, ...]:
        if x.ndim != 3:
            raise SignalError("Padded nodes are normalised inside of a torch.func.vmap.")
        y = torch.zeros_like(x)
        mean, variance = x.new_zeros(2, x.shape[0], x.shape[2])
        saved = []
        for m, rows in enumerate(inside.sum(1).tolist()):
            if rows < 2:
                raise SignalError("Batch normalisation needs more than one node a step.")
            part, *kept = torch.native_batch_norm(
                x[m, :rows],
                None if weight is None else weight[m],
                None if bias is None else bias[m],
                mean[m],  # momentum 1: the statistics of this batch are written here
                variance[m],
                training=True,
                momentum=1.0,
                eps=eps,
            )
            y[m, :rows] = part
            saved.append(kept)
        return y, mean, variance, *(torch.stack(each) for each in zip(*saved, strict=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, inside, weight, bias, ctx.eps = inputs
        _, *others = output
        ctx.mark_non_differentiable(*others)
        ctx.save_for_backward(x, inside, weight, bias, *others[2:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        x, inside, weight, bias, *kept = ctx.saved_tensors
        of_x = torch.zeros_like(x)
        of_others = []
        for m, rows in enumerate(inside.sum(1).tolist()):
            of_x[m, :rows], *rest = torch.ops.aten.native_batch_norm_backward(
                grads[0][m, :rows],
                x[m, :rows],
                None if weight is None else weight[m],
                None,
                None,
                kept[0][m],
                kept[1][m],
                True,
                ctx.eps,
                [True, weight is not None, bias is not None],
            )
            of_others.append(rest)
        if weight is None:
            return of_x, None, None, None, None
        return of_x, None, *(torch.stack(each) for each in zip(*of_others, strict=True)), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        *tensors, eps = inputs
        batched = [
            t if t is None or dim is None else t.movedim(dim, 0)
            for t, dim in zip(tensors, in_dims, strict=False)
        ]
        batched = [
            t.expand(info.batch_size, *t.shape) if t is not None and dim is None else t
            for t, dim in zip(batched, in_dims, strict=False)
        ]
        return _Padded.apply(*batched, eps), (0,) * 5  # type: ignore[no-untyped-call]
