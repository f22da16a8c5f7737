"""The small networks inside of layers, models and peers.

`FeatureLinear` also takes sparse features, `GroupedMLP` is several networks side by side, `Head`
the last network of a model; `activation_of` finds an activation by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.modules import activation as modules

from nlsf.errors import ModelError, unknown_name
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
