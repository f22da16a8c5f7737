"""Attention between two filters: `LaplacianAttention`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.graph import GraphNLSF
from nlsf.nn.layers.node import NodeNLSF
from nlsf.nn.layers.pooling import PoolingNLSF
from nlsf.nn.layers.spectra import SpectrumArgument
from nlsf.nn.layers.spectral_layer import (
    SpectralLayer,
    spectral_branches,
)
from nlsf.nn.networks import GroupedMLP
from nlsf.spectral import View
from nlsf.spectral.kernels.dense import relative
from nlsf.spectral.kernels.transforms import is_vmapped
from nlsf.spectral.notebook import panel

Branch: TypeAlias = NodeNLSF | GraphNLSF | PoolingNLSF
Score: TypeAlias = Literal["scalar", "spectral"]


class LaplacianAttention(nn.Module):
    r"""A soft choice between two filters (Sec. 3.5), index on L and value on N for example.

    .. math::
        \mathtt{att}(\Theta_1, \Theta_2)(X)
            = \alpha \, \Theta_1(X) \,\Vert\, (1 - \alpha) \, \Theta_2(X),
        \qquad (\alpha, 1 - \alpha) = \mathrm{softmax}(s_1, s_2)

    The scores are learned numbers, or functions of the invariant norms of each branch (one alpha a
    graph). Either way the symmetry of the branches is kept. For the paper's strict setting both
    branches must share a group; the shifts that commute with both are always respected.

    Args:
        first: a branch, any of `NodeNLSF`, `GraphNLSF`, `PoolingNLSF`.
        second: another branch of the same level.
        score: ``"scalar"`` or ``"spectral"``.
        hidden: width of the networks of the spectral scores.

    Attributes:
        alpha: the weight of the first branch in the last call: (), or one a graph; ``None`` after
            a call inside of `torch.func.vmap`, where a number would be that of many models.

    Shapes:
        - x: (N, d), or (..., N, d)
        - output: the outputs of both branches side by side
    """

    def __init__(
        self, first: Branch, second: Branch, score: Score = "scalar", hidden: int = 16
    ) -> None:
        super().__init__()
        if score not in ("scalar", "spectral"):
            raise ModelError(f"score must be 'scalar' or 'spectral', not {score!r}.")
        if isinstance(first, NodeNLSF) != isinstance(second, NodeNLSF):
            raise ModelError("Both branches must be of one level: nodes, or graphs.")
        self.first, self.second = first, second
        self.out_channels = first.out_channels + second.out_channels
        self.score: Score = score
        self.alpha: Tensor | None = None
        if score == "scalar":
            self.scores = nn.Parameter(torch.zeros(2))
        else:
            self.first_score, self.second_score = (
                GroupedMLP(1, _bands(b), 1, hidden=hidden, zero=True) for b in (first, second)
            )

    @property
    def spectral_branches(self) -> list[SpectralLayer]:
        """The layers that the pair ``spectrum`` is for."""
        return [*spectral_branches(self.first), *spectral_branches(self.second)]

    def reset_parameters(self) -> None:
        """Back to the start, where both branches weigh the same."""
        if self.score == "scalar":
            nn.init.zeros_(self.scores)
        else:
            self.first_score.reset_parameters()
            self.second_score.reset_parameters()
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: Sequence[SpectrumArgument] | None = None,
    ) -> Tensor:
        """Both branches, weighted.

        Args:
            x: the signal.
            edge_index: (2, E); each branch builds its own Laplacian of it.
            edge_weight: (E,).
            batch: (N,), the graph of each node.
            spectrum: instead of ``edge_index``: a pair, one spectrum (or list of them) a branch.
        """
        views = []
        for branch, given in zip((self.first, self.second), pair_of(spectrum), strict=True):
            views.append(branch.view(x, edge_index, edge_weight, batch, spectrum=given))
        return self.respond(views)

    def respond(self, views: Sequence[Any]) -> Tensor:
        """The same for views that are there already, one a branch."""
        first, second = views
        norms = []
        if self.score == "spectral":
            norms = [self.first.norms(first), self.second.norms(second)]
        weights = self.weights(norms)
        if isinstance(self.first, NodeNLSF):
            weights = _per_node(weights, first)
        return self.combine(weights, [self.first.respond(first), self.second.respond(second)])

    def weights(self, norms: Sequence[Tensor]) -> Tensor:
        """The weights (2,), or (..., 2) with one pair a graph; the first is kept as ``alpha``.

        Args:
            norms: of each branch, (..., B, d); not looked at for scalar scores.
        """
        if self.score == "scalar":
            weights = self.scores.softmax(-1)
        else:
            scores = []
            for network, c in zip((self.first_score, self.second_score), norms, strict=True):
                scores.append(network(relative(c).mean(-1)))
            weights = torch.cat(scores, dim=-1).softmax(-1)
        alpha = weights[..., 0].detach()
        self.alpha = None if is_vmapped(alpha) else alpha
        return weights

    @staticmethod
    def combine(weights: Tensor, outputs: Sequence[Tensor]) -> Tensor:
        """The outputs of the branches, weighted, side by side."""
        return torch.cat([weights[..., i, None] * y for i, y in enumerate(outputs)], dim=-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.first}, {self.second}, score={self.score!r})"

    def _repr_html_(self) -> str:
        alpha = self.scores.detach().softmax(-1)[0] if self.score == "scalar" else self.alpha
        if alpha is None or not alpha.numel():
            weight = "not known before the first call"
        else:
            mean = float(alpha.mean())
            weight = f"{100 * mean:.1f} % and {100 * (1 - mean):.1f} %"
            if alpha.numel() > 1:
                weight += f" (mean over {alpha.numel():,} graphs of the last call)"
        facts = [
            ("weights of the branches", weight),
            ("score", self.score),
            ("parameters", f"{sum(p.numel() for p in self.parameters()):,}"),
        ]
        branches = [branch._repr_html_() for branch in (self.first, self.second)]
        return panel(type(self).__name__, facts, *branches)


def pair_of(spectrum: Any) -> tuple[SpectrumArgument, SpectrumArgument]:
    """The spectra of both branches; ``None`` stands for those of a graph still to be read."""
    if spectrum is None:
        return None, None
    if not isinstance(spectrum, Sequence) or len(spectrum) != 2:
        raise ModelError(
            "An attention takes a pair, spectrum=(of the first branch, of the second)."
        )
    return spectrum[0], spectrum[1]


def _bands(branch: Branch) -> int:
    return branch.node.n_bands if isinstance(branch, PoolingNLSF) else branch.n_bands


def _per_node(weights: Tensor, view: View) -> Tensor:
    """Weights of graphs (G, 2) as weights of nodes (N, 2); of signals (..., 2) as (..., 1, 2)."""
    index = view.graph_of_nodes
    if index is not None and weights.ndim == 2:
        return weights[index]
    return weights.unsqueeze(-2) if weights.ndim > 1 else weights
