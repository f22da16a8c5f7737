"""The graph-level filter Phi: `GraphNLSF`."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.spectra import SpectrumArgument
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.networks import GroupedMLP
from nlsf.spectral import Bands, View
from nlsf.spectral.lens import FixedNorms
from nlsf.spectral.notebook import bars
from nlsf.spectral.operators.shift import Normalization


class GraphNLSF(SpectralLayer):
    r"""The graph-level filter, fully spectral: there is no synthesis (Eq. 6).

    .. math::
        \Phi(\Delta, X) = \widehat\Psi\bigl( (\|P_i X\|)_{i=1}^{B} \bigr)

    It is invariant to the functional shifts of its bands (for the norm p = 2), and reads nothing of
    the graph but :math:`V^* X`.

    Args:
        in_channels: d.
        out_channels: outputs a graph.
        bands: the partition of the spectrum.
        normalization: which Laplacian to build of ``edge_index``.
        complement: whether what the bands leave out counts too; by default where they leave
            anything out.
        norm_p: the p of the norm.
        norm_per_node: divide norms by :math:`N^{1/p}`. It hides the size of the graph.
        channels: map the signal linearly to so many channels first; ``None`` for no map. A map
            without bias keeps the invariance.
        batch_norm: batch normalisation of the norms before the network.
        hidden: width of the network.
        depth: its number of linear layers.
        activation: its activation.
        dropout: its dropout.
        self_loops: add self loops before building N.

    Shapes:
        - x: (N, in_channels) for one graph or a batch, (..., N, in_channels) for many signals on
          one graph
        - output: (G, out_channels) for G graphs, G = 1 without ``batch``; (..., out_channels) for
          many signals
    """

    invariant = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bands: Bands | None = None,
        normalization: Normalization = "sym",
        complement: bool | None = None,
        norm_p: float = 2.0,
        norm_per_node: bool = False,
        channels: int | None = None,
        batch_norm: bool = False,
        hidden: int = 64,
        depth: int = 2,
        activation: str = "relu",
        dropout: float = 0.0,
        self_loops: bool = False,
    ) -> None:
        super().__init__(bands, normalization, complement, norm_p, norm_per_node, self_loops)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.channels = in_channels if channels is None else channels
        has_map = channels is not None
        self.lin = nn.Linear(in_channels, self.channels, bias=False) if has_map else nn.Identity()
        size = self.n_bands * self.channels
        self.standard = nn.BatchNorm1d(size) if batch_norm else nn.Identity()
        self.network = GroupedMLP(
            1,
            size,
            out_channels,
            hidden=hidden,
            depth=depth,
            activation=activation,
            dropout=dropout,
        )

    def reset_parameters(self) -> None:
        """Draws new parameters."""
        for part in (self.lin, self.standard, self.network):
            if not isinstance(part, nn.Identity):
                part.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: SpectrumArgument = None,
    ) -> Tensor:
        """The outputs of every graph; arguments as in `NodeNLSF.forward`."""
        return self.respond(self.view(x, edge_index, edge_weight, batch, spectrum=spectrum))

    def mapped(self, x: Tensor) -> Tensor:
        """The signal after the linear map."""
        y: Tensor = self.lin(x)
        return y

    def respond(self, view: View | FixedNorms) -> Tensor:
        """The same for a view that is there already, of the mapped signal."""
        return self.respond_norms(self.norms(view))

    def respond_norms(self, norms: Tensor) -> Tensor:
        """The network on norms (..., B, d) that are there already."""
        features = norms.flatten(-2)
        if features.ndim == 1:
            features = features.unsqueeze(0)
        flat: Tensor = self.network(self.standard(features.flatten(0, -2)))
        return flat.reshape(*features.shape[:-1], self.out_channels)

    def prepare(self, x: Tensor, *graph: Any, spectrum: SpectrumArgument = None) -> FixedNorms:
        """The fast path: many graphs, or many signals on one; arguments as in ``forward``.

        Raises:
            ModelError: for norms other than L_2, or normalised ones: what is prepared does not know
                the nodes any more, nor how many they were.
        """
        if self.norm_p != 2 or self.norm_per_node:
            raise ModelError(
                "The fast path of the graph level needs norm_p=2 and norm_per_node=False, "
                f"not {self.norm_p!r} and {self.norm_per_node!r}: call the layer itself."
            )
        lens = self.lens(x, *graph, spectrum=spectrum)
        if lens.nodes is None and x.ndim != 3:
            raise ModelError(
                "The fast path of the graph level is for many graphs: pass batch; or for signals "
                "(S, N, channels) on one graph."
            )
        return FixedNorms.of(x, lens)

    def of_prepared(self, prepared: FixedNorms) -> FixedNorms:
        """The view that `respond` takes, of what `prepare` gave."""
        return prepared.map(self.lin.weight.T if isinstance(self.lin, nn.Linear) else None)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, bands={self.bands}, "
            f"normalization={self.normalization!r}, complement={self.complement})"
        )

    def _repr_html_(self) -> str:
        weight = self.network.weights[0].detach()[0]
        by_band = weight.reshape(self.n_bands, -1).square().mean(-1).sqrt()
        caption = "root mean square of the first weights, band by band"
        return self._html(drawing=bars(by_band.tolist(), caption))
