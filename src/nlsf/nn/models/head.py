"""The last network of a model: `Head`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from nlsf.nn.dropout import Dropout


class Head(nn.Module):
    """Linear maps with batch normalisation, ReLU and dropout in between.

    Args:
        sizes: the width of every layer, that of the input first.
        dropout: after every ReLU.
        standardize: whether there is batch normalisation, over all leading dimensions.

    Shapes:
        - input: (..., sizes[0])
        - output: (..., sizes[-1])
    """

    def __init__(
        self, sizes: Sequence[int], *, dropout: float = 0.0, standardize: bool = True
    ) -> None:
        super().__init__()
        self.sizes = list(sizes)
        inner = self.sizes[1:-1]
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(self.sizes))
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(size) if standardize else nn.Identity() for size in inner
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
