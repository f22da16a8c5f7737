"""A node-level filter with a linear map for every band: `MixingNLSF`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.spectra import SpectrumArgument
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.responses.psi import ResponseName, Start, StartName, make_response
from nlsf.spectral import Bands
from nlsf.spectral.lens.view import band_scale


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
