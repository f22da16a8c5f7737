"""The small networks inside of layers, models and peers.

`FeatureLinear` also takes sparse features, `GroupedMLP` is several networks side by side, `Head`
the last network of a model, and `NodeBatchNorm` leaves out nodes that pad a batch; `activation_of`
finds an activation by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import activation as modules

from nlsf.errors import ModelError, SignalError, unknown_name
from nlsf.nn.dropout import Dropout
from nlsf.spectral.kernels.sparse_signal import SparseSignal

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


class FeatureLinear(nn.Linear):
    """``nn.Linear`` for features that are dense, or a fixed `SparseSignal`.

    Its weight (out_features, in_features) lies in memory column by column, one a feature: products
    with sparse features read it so, and write its gradient so. The numbers are those of
    ``nn.Linear``.

    Shapes:
        - input: (N, in_features)
        - output: (N, out_features)
    """

    def reset_parameters(self) -> None:
        """Back to the start."""
        # Random numbers are drawn in the order of memory: in that of nn.Linear.
        self.weight.data = self.weight.data.contiguous()
        super().reset_parameters()
        self.weight.data = self.weight.data.mT.contiguous().mT

    def forward(self, x: Tensor | SparseSignal) -> Tensor:
        """The product, and the bias if there is one."""
        if isinstance(x, Tensor):
            return super().forward(x)
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


def dropped(x: Tensor | SparseSignal, dropout: Dropout) -> Tensor | SparseSignal:
    """Features after dropout, which acts on the values of a sparse signal."""
    if isinstance(x, SparseSignal):
        return x.with_values(dropout(x.values))
    y: Tensor = dropout(x)
    return y


class GroupedMLP(nn.Module):
    """One MLP a group, all of the same shape, computed together.

    Args:
        groups: number of networks; 1 is an ordinary MLP, shared by whatever stands before it.
        in_channels: inputs of each.
        out_channels: outputs of each.
        hidden: width.
        depth: number of linear layers; 1 is a linear map.
        activation: the name of one in `torch.nn`, or a callable.
        dropout: after every activation.
        zero: start with a last layer of zeros, so that the output is 0 before training.

    Shapes:
        - input: (..., groups, in_channels)
        - output: (..., groups, out_channels)
    """

    def __init__(
        self,
        groups: int,
        in_channels: int,
        out_channels: int,
        *,
        hidden: int = 32,
        depth: int = 2,
        activation: str = "relu",
        dropout: float = 0.0,
        zero: bool = False,
    ) -> None:
        super().__init__()
        self.sizes = [in_channels, *[hidden] * (depth - 1), out_channels]
        self.groups = groups
        self.zero = zero
        self.dropout = dropout
        self.activation = activation_of(activation)
        pairs = list(pairwise(self.sizes))
        self.weights = nn.ParameterList(torch.empty(groups, a, b) for a, b in pairs)
        self.biases = nn.ParameterList(torch.empty(groups, b) for _, b in pairs)
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in pairs[1:])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters: uniform as ``nn.Linear`` does, the last layer zero if asked."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = 1 / math.sqrt(max(weight.shape[1], 1))
            nn.init.uniform_(weight, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)
        if self.zero:
            nn.init.zeros_(self.weights[-1])
            nn.init.zeros_(self.biases[-1])

    def forward(self, x: Tensor) -> Tensor:
        """All networks at once."""
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if self.groups == 1 and x.ndim == 2:
                x = torch.addmm(bias, x, weight.squeeze(0))
            elif self.groups == 1:
                x = nn.functional.linear(x, weight.squeeze(0).mT, bias.squeeze(0))
            else:
                x = torch.einsum("...gi,gio->...go", x, weight) + bias
            if i < last:
                x = self.dropouts[i](self.activation(x))
        return x

    @staticmethod
    def count(groups: int, in_channels: int, out_channels: int, hidden: int, depth: int) -> int:
        """How many parameters such a network has."""
        sizes = [in_channels, *[hidden] * (depth - 1), out_channels]
        return groups * sum((a + 1) * b for a, b in pairwise(sizes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.groups} x {self.sizes})"


class Head(nn.Module):
    """Linear maps with batch normalisation, ReLU and dropout in between.

    Args:
        sizes: the width of every layer, that of the input first.
        dropout: after every ReLU.
        batch_norm: whether there is batch normalisation, over all leading dimensions.

    Shapes:
        - input: (..., sizes[0])
        - output: (..., sizes[-1])
    """

    def __init__(
        self, sizes: Sequence[int], *, dropout: float = 0.0, batch_norm: bool = True
    ) -> None:
        super().__init__()
        self.sizes = list(sizes)
        inner = self.sizes[1:-1]
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(self.sizes))
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(size) if batch_norm else nn.Identity() for size in inner
        )
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in inner)

    def reset_parameters(self) -> None:
        """Draws new parameters and forgets the running statistics."""
        for part in (*self.lins, *self.norms):
            if not isinstance(part, nn.Identity):
                part.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """All layers."""
        leading = x.shape[:-1]
        x = x.reshape(-1, x.shape[-1])
        *inner, last = self.lins
        for lin, norm, dropout in zip(inner, self.norms, self.dropouts, strict=True):
            x = dropout(norm(lin(x)).relu())
        x = last(x)
        return x.reshape(*leading, x.shape[-1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sizes})"


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
