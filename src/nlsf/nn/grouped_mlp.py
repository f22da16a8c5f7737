"""Several small networks side by side: `GroupedMLP`."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from nlsf.nn.activation import activation_of
from nlsf.nn.dropout import Dropout


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
