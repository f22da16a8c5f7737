"""From node signals to one vector a graph: `Readout`."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.spectral.norms import energy, power
from nlsf.spectral.segment_sum import segment_sum

ReadoutName: TypeAlias = Literal["mean", "sum", "max", "lp", "rms"]


class Readout(nn.Module):
    r"""Mean, sum, maximum or norm over the nodes of each graph, channel by channel.

    - ``lp``: :math:`(\sum_n |y_n|^p)^{1/p}`, or with 1/N before the sum
    - ``rms``: :math:`(\frac{1}{N} \sum_n |y_n|^2)^{1/2}`

    Args:
        name: which of them.
        p: of ``"lp"``, at least 1.
        normalize: of ``"lp"``: divide the sum by the number of nodes.

    Shapes:
        - y: (N, d) with ``batch`` (N,) of G graphs, or (..., N, d)
        - output: (G, d), or (..., d); (1, d) for (N, d) without ``batch``
    """

    def __init__(self, name: ReadoutName = "mean", p: float = 2.0, normalize: bool = False) -> None:
        super().__init__()
        if name not in ("mean", "sum", "max", "lp", "rms"):
            raise ModelError(f"readout must be mean, sum, max, lp or rms, not {name!r}.")
        if not p >= 1:
            raise ModelError(f"The p of a readout must be at least 1, not {p!r}.")
        self.name: ReadoutName = name
        self.p = 2.0 if name == "rms" else p
        self.normalize = normalize or name == "rms"

    def forward(self, y: Tensor, batch: Tensor | None = None, num_graphs: int = 1) -> Tensor:
        """One vector a graph."""
        if self.name in ("mean", "sum", "max"):
            return _reduce(y, self.name, batch, num_graphs)
        if self.p == math.inf:
            return _reduce(y.abs(), "max", batch, num_graphs)
        how = "mean" if self.normalize else "sum"
        if self.p == 2:
            return power(_reduce(energy(y), how, batch, num_graphs), 0.5)
        size = y.abs()
        # Divided by the largest of its graph first, no power overflows, and none is lost.
        largest = _reduce(size.detach(), "max", batch, num_graphs)
        unit = largest.masked_fill(largest == 0, 1.0)
        if batch is None:
            size = size / unit.reshape(*size.shape[:-2], 1, size.shape[-1])
        else:
            size = size / unit.index_select(-2, batch)
        return power(_reduce(size.pow(self.p), how, batch, num_graphs), 1 / self.p) * unit

    def __repr__(self) -> str:
        norm = f", p={self.p}, normalize={self.normalize}" if self.name in ("lp", "rms") else ""
        return f"{type(self).__name__}({self.name!r}{norm})"


def _reduce(y: Tensor, how: str, batch: Tensor | None, num_graphs: int) -> Tensor:
    if batch is not None:
        return _reduce_graphs(y, how, batch, num_graphs)
    reduced: Tensor
    if y.shape[-2] == 0:
        reduced = y.new_zeros(*y.shape[:-2], y.shape[-1])
    else:
        reduced = y.amax(-2) if how == "max" else y.sum(-2) if how == "sum" else y.mean(-2)
    return reduced.unsqueeze(0) if reduced.ndim == 1 else reduced


def _reduce_graphs(y: Tensor, how: str, batch: Tensor, num_graphs: int) -> Tensor:
    """One vector a graph, 0 where it has no nodes; nothing in place, for `torch.func.vmap`."""
    if how == "max":
        none = y.new_zeros(*y.shape[:-2], num_graphs, y.shape[-1])
        index = batch[:, None].expand_as(y)
        return none.scatter_reduce(-2, index, y, "amax", include_self=False)
    total = segment_sum(y, batch, num_graphs)
    if how == "sum":
        return total
    ones = y.new_ones(len(batch), 1)
    return total / segment_sum(ones, batch, num_graphs).clamp(min=1)
