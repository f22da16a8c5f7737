"""The node-level filters: `NodeNLSF`, and `MixingNLSF` with a linear map for every band."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.spectra import SpectrumArgument
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.networks import FeatureLinear
from nlsf.nn.responses.psi import ResponseName, Start, StartName, make_response
from nlsf.spectral import Bands, View
from nlsf.spectral.lens.view import band_scale
from nlsf.spectral.operators.shift import Normalization


class NodeNLSF(SpectralLayer):
    r"""The node-level nonlinear spectral filter: Eq. 4 with `IndexBands`, Eq. 5 with value bands.

    From "Equivariant Machine Learning on Graphs with Nonlinear Spectral Filters" (Lin, Talmon,
    Levie, NeurIPS 2024):

    .. math::
        \Theta(\Delta, X) = \left[ \frac{P_j X}{\|P_j X\|^a + e} \right]_{j=1}^{B}
            \Psi\bigl( (\|P_i X\|)_{i=1}^{B} \bigr)

    It commutes with the functional shifts of its bands (Prop. 1) for the norm p = 2. Other norms
    are not kept by unitary maps: with them it commutes with permutations of the nodes only.

    Diagonal and bandwise responses have as many outputs as inputs; where ``out_channels`` differs,
    a linear map without bias follows (a bias would break the symmetry). The full form has B d'
    outputs, and always ends in such a map.

    Args:
        in_channels: d.
        out_channels: channels of the output.
        bands: the partition of the spectrum; `IndexBands` for the index form.
        normalization: which Laplacian to build of ``edge_index``: ``"sym"`` for N, ``None`` for L.
        response: ``"diagonal"``, ``"bandwise"``, ``"full"`` or ``"constant"``, see `Response`, or
            the name of one of your own, see `register_response`.
        complement: whether what the bands leave out is filtered too, or dropped (*lead*); by
            default it is filtered where they leave anything out.
        a: exponent of the norm in the denominator, 0 to 1; 0 by default. With 0 the layer is,
            before training, the linear filter that ``start`` names. With 1, the paper's choice,
            every band is scaled to norm 1, so the size of the output depends on the number of
            nodes.
        eps: the e of the denominator.
        norm_p: the p of the norm.
        norm_per_node: divide norms by :math:`N^{1/p}`. With a = 0 and relative norms it cancels.
        start: the linear filter before training: ``"all-pass"``, ``"heat"``, ``"ppr"``,
            ``"high-pass"``, ``"walk"``, ``"random"``, or a `Start`.
        self_loops: add self loops before building N.
        response_options: further options of `Response`: ``sharing``, ``mode``, ``relative``,
            ``hidden``, ``depth``, ``activation``, ``dropout``.

    Shapes:
        - x: (N, in_channels) for one graph or a PyTorch Geometric batch, or (..., N, in_channels)
          for many signals on one graph
        - output: the same with out_channels
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bands: Bands | None = None,
        normalization: Normalization = "sym",
        response: ResponseName = "diagonal",
        complement: bool | None = None,
        a: float | None = None,
        eps: float = 1e-6,
        norm_p: float = 2.0,
        norm_per_node: bool = False,
        start: StartName | Start = "all-pass",
        self_loops: bool = False,
        **response_options: Any,
    ) -> None:
        super().__init__(bands, normalization, complement, norm_p, norm_per_node, self_loops)
        self.in_channels, self.out_channels = in_channels, out_channels
        if a is None:
            self._needs_of_old_weights.append("a=1.0")
        self.a, self.eps = a or 0.0, eps
        self.start = Start.of(start)
        self.response = make_response(
            response,
            self.n_bands,
            in_channels,
            out_channels=out_channels,
            start=self.start,
            **response_options,
        )
        form = self.response.form
        filtered = {
            "diagonal": in_channels,
            "matrices": out_channels,
            "full": self.n_bands * out_channels,
        }[form]
        needs_map = form == "full" or filtered != out_channels
        self.lin = FeatureLinear(filtered, out_channels, bias=False) if needs_map else nn.Identity()

    def reset_parameters(self) -> None:
        """Back to the start."""
        self.response.reset_parameters()
        if isinstance(self.lin, nn.Linear):
            self.lin.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: SpectrumArgument = None,
    ) -> Tensor:
        """The filtered signal.

        Args:
            x: the signal.
            edge_index: (2, E), undirected; its spectrum is computed once and remembered.
            edge_weight: (E,).
            batch: (N,), the graph of each node, ascending.
            spectrum: instead of ``edge_index``: a `Spectrum`, one a graph, or a `Lens`.
        """
        return self.respond(self.view(x, edge_index, edge_weight, batch, spectrum=spectrum))

    def respond(self, view: View) -> Tensor:
        """The same for a view that is there already."""
        if self.response.form == "full":
            # [Q_1, ..., Q_B] (R W): the product of R and W is small, and then d' channels are
            # synthesised in place of B d'.
            return self._filtered(view, self.lin)
        weight = self.lin.weight.mT if isinstance(self.lin, nn.Linear) else None
        return self._filtered(view, weight=weight)

    def filter(self, view: View) -> Tensor:
        """Analysis, response and synthesis, without the linear map at the end."""
        return self._filtered(view)

    def _filtered(
        self, view: View, of_coefficients: nn.Module | None = None, weight: Tensor | None = None
    ) -> Tensor:
        norms = self.norms(view)
        r = self.response(norms, self.start.gains(view.frequencies))
        if of_coefficients is not None:
            r = of_coefficients(r)
        form, a, eps = self.response.form, self.a, self.eps
        return view.synthesize(r, form=form, a=a, eps=eps, norms=norms, weight=weight)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, bands={self.bands}, "
            f"normalization={self.normalization!r}, response={self.response.name!r}, "
            f"complement={self.complement})"
        )

    def _repr_html_(self) -> str:
        response = self.response
        facts = [
            ("response", f"{response.name}, {response.sharing}"),
            ("start", self.start.name),
        ]
        return self._html(facts, response.drawing())


class MixingNLSF(SpectralLayer):
    r"""A nonlinear gain for every band and channel, then a linear map for every band.

    .. math::
        \Theta(\Delta, X) = \sum_{j=1}^{B} \frac{P_j X}{\|P_j X\|^a + e} \odot
            \Psi_j\bigl( (\|P_i X\|)_{i=1}^{B} \bigr) \, W_j

    It is the full form of `NodeNLSF` with a response that does not mix bands, factorised so that
    only the gains depend on the signal. Few channels can become many different ones, which one map
    for all bands cannot do; it commutes with the functional shifts of its bands.

    The maps are a polynomial of the mean frequency of a band, with Chebyshev's basis on [0, 2]:

    .. math::
        W_j = \sum_{k=0}^{K} T_k(\lambda_j - 1) \, C_k

    Where bands are narrow, a linear filter of this form reaches K hops. Maps that are free for
    every band would be filters with sharp edges in frequency, which reach over the whole graph.
    Before training the gains are those of the start, 1 by default, and C is random.

    Args:
        in_channels: d.
        out_channels: d'.
        bands: the partition of the spectrum.
        response: form of :math:`\Psi`: ``"diagonal"``, ``"bandwise"``, or ``"constant"`` for linear
            filters.
        degree: K.
        a: exponent of the norm in the denominator, 0 to 1.
        eps: the e of the denominator.
        start: the gains before training, as in `NodeNLSF`.
        complement: as in `NodeNLSF`.
        response_options: further options of `Response`.

    Shapes:
        - x: (N, in_channels), or (..., N, in_channels) for many signals on one graph
        - output: the same with out_channels
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bands: Bands | None = None,
        response: ResponseName = "diagonal",
        degree: int = 5,
        a: float = 0.0,
        eps: float = 1e-6,
        start: StartName | Start = "all-pass",
        complement: bool | None = None,
        **response_options: Any,
    ) -> None:
        super().__init__(bands, "sym", complement)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.degree, self.a, self.eps = degree, a, eps
        self.start = Start.of(start)
        self.response = make_response(
            response, self.n_bands, in_channels, start=self.start, **response_options
        )
        if self.response.form != "diagonal":
            raise ModelError(
                f"The maps of a MixingNLSF mix channels; its response must not, as {response!r} "
                "does. Use response='diagonal', 'bandwise' or 'constant'."
            )
        self.weight = nn.Parameter(torch.empty(degree + 1, in_channels, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The gains of the start, and a new polynomial."""
        self.response.reset_parameters()
        nn.init.normal_(self.weight, std=math.sqrt(2 / (self.in_channels * (self.degree + 1))))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        spectrum: SpectrumArgument = None,
    ) -> Tensor:
        """The filtered signal; arguments as in `NodeNLSF.forward`."""
        view = self.view(x, edge_index, edge_weight, None, spectrum=spectrum)
        if view.graph_of_nodes is not None:
            raise ModelError(
                "A MixingNLSF is for one graph, with one signal or many (..., N, channels): for a "
                "batch of graphs use NodeNLSF."
            )
        norms, frequencies = self.norms(view), view.frequencies
        gains = self.response(norms, self.start.gains(frequencies))
        gains = gains * band_scale(norms, self.a, self.eps)
        maps = self.maps(frequencies).to(view.signal.dtype)
        return view.gained_and_mixed(gains, maps)

    def maps(self, frequencies: Tensor) -> Tensor:
        """The maps (B, d, d') of bands with these mean frequencies (B,)."""
        angle = torch.arccos((frequencies.to(self.weight) - 1).clamp(-1, 1))
        basis = torch.cos(torch.arange(self.degree + 1).to(angle) * angle[:, None])
        maps: Tensor = (basis @ self.weight.flatten(1)).unflatten(1, self.weight.shape[1:])
        return maps

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, bands={self.bands}, "
            f"response={self.response.name!r}, degree={self.degree})"
        )
