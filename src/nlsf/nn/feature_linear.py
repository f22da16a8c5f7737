"""A linear layer that also takes sparse features: `FeatureLinear`."""

from __future__ import annotations

from torch import Tensor, nn

from nlsf.nn.dropout import Dropout
from nlsf.spectral.sparse_signal import SparseSignal


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
