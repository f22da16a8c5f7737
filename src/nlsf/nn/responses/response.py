"""Nonlinear frequency responses Psi: from invariant norms to spectral coefficients."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.networks import GroupedMLP
from nlsf.nn.responses.psi import RESPONSES, Psi, Start
from nlsf.spectral.kernels.dense import relative

NetworkName: TypeAlias = Literal["diagonal", "bandwise", "full", "constant"]
Sharing: TypeAlias = Literal["shared", "channelwise", "mixing"]
Mode: TypeAlias = Literal["multiplicative", "additive"]

_MAX_PARAMETERS = 20_000_000


class Response(Psi):
    r"""The response :math:`\Psi` as a network, around its linear start :math:`h_0`.

    - ``diagonal``: :math:`\mathbb{R}^{B d} \to \mathbb{R}^{B d}` (App. C.1)
    - ``bandwise``: :math:`\gamma_j`, one a band, which sees only the norms of its own band (App.
      F.6); with ``relative`` as shares of all bands, so that only ``relative=False`` is separable
    - ``full``: :math:`\mathbb{R}^{B d} \to \mathbb{R}^{B d \times B d'}` (Eq. 4 and 5)
    - ``constant``: free numbers instead of a network: with a = 0, a linear filter, the control for
      all others

    The diagonal and bandwise forms are by default *multiplicative*, :math:`h_0 (1 + \Psi(c))`, with
    a last layer of zeros, and *shared*: one network sees the norms of one channel at a time. That
    has few parameters and starts as a sensible linear filter, which is what few labels need. The
    full form is additive, :math:`h_0 + \Psi(c)` with :math:`h_0` on its diagonal.

    Args:
        name: the form.
        n_bands: B, the complement included if there is one.
        channels: d.
        out_channels: d', for the full form.
        sharing: ``"shared"``: one network for all channels; ``"channelwise"``: one a channel;
            ``"mixing"``: one that sees all channels (the paper's form; always so for full).
            Numbers of a constant response are shared by channels, or not.
        mode: ``"multiplicative"`` or ``"additive"``; always the latter for full, and for a random
            start, which has no gain to multiply.
        start: the linear filter that it starts as.
        relative: feed :math:`c_j / \sqrt{\sum_i c_i^2}` to the network, so that it does not depend
            on the signal's scale, rather than the norms themselves.
        hidden: width of the network.
        depth: its number of linear layers.
        activation: its activation.
        dropout: its dropout.

    Shapes:
        - norms: (..., B, d)
        - gains: (..., B), of the start
        - output: (..., B, d); full: (..., B d, B d')
    """

    def __init__(
        self,
        name: NetworkName,
        n_bands: int,
        channels: int,
        out_channels: int | None = None,
        *,
        sharing: Sharing = "shared",
        mode: Mode = "multiplicative",
        start: Start | None = None,
        relative: bool = True,
        hidden: int = 32,
        depth: int = 2,
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(n_bands, channels)
        _check("response", name, get_args(NetworkName))
        _check("sharing", sharing, ("shared", "channelwise", "mixing"))
        _check("mode", mode, ("multiplicative", "additive"))
        self.name = name
        self.form = "full" if name == "full" else "diagonal"
        self.out_channels = (out_channels if name == "full" else None) or channels
        self.sharing = "mixing" if name == "full" else sharing
        self.start = start or Start()
        self.relative = relative
        self.multiplicative = (
            mode == "multiplicative" and name != "full" and self.start.name != "random"
        )
        self.numbers: nn.Parameter | None = None
        if name == "constant":
            self.numbers = nn.Parameter(
                torch.zeros(n_bands, 1 if sharing == "shared" else channels)
            )
            self.gain_parameters = ("numbers",)
            self.reset_parameters()
            return
        groups, size, out = self._layout()
        needed = GroupedMLP.count(groups, size, out, hidden, depth)
        if needed > _MAX_PARAMETERS:
            raise ModelError(
                f"A {name} response of {n_bands} bands, {channels} channels and "
                f"{self.out_channels} outputs would need {needed:,} parameters. Use "
                "response='diagonal' with sharing='shared', fewer bands, or a narrower encoder "
                "before it."
            )
        self.network = GroupedMLP(
            groups,
            size,
            out,
            hidden=hidden,
            depth=depth,
            activation=activation,
            dropout=dropout,
            zero=self.start.name != "random",
        )
        self.gain_parameters = (f"network.biases.{depth - 1}",)

    def _layout(self) -> tuple[int, int, int]:
        """Groups, inputs and outputs of the network."""
        B, d = self.n_bands, self.channels
        if self.name == "full":
            return 1, B * d, B * d * B * self.out_channels
        if self.name == "bandwise":
            return {"shared": (B, 1, 1), "channelwise": (B * d, 1, 1), "mixing": (B, d, d)}[
                self.sharing
            ]
        return {"shared": (1, B, B), "channelwise": (d, B, B), "mixing": (1, B * d, B * d)}[
            self.sharing
        ]

    def reset_parameters(self) -> None:
        """Back to the start."""
        if self.numbers is None:
            self.network.reset_parameters()
        elif self.start.name == "random":
            nn.init.normal_(self.numbers)
        else:
            nn.init.zeros_(self.numbers)

    def forward(self, norms: Tensor, gains: Tensor) -> Tensor:
        """The coefficients for these norms; see the class for the shapes."""
        c = relative(norms) if self.relative else norms
        gains = gains.to(norms).unsqueeze(-1)
        if self.name == "full":
            return self._full_start(gains.squeeze(-1)) + self._full(c)
        psi = self._psi(c)
        return torch.addcmul(gains, gains, psi) if self.multiplicative else gains + psi

    def _psi(self, c: Tensor) -> Tensor:
        """The network on (..., B, d), in the layout that it needs, and back."""
        B, d = self.n_bands, self.channels
        if self.numbers is not None:
            return self.numbers.expand_as(c)
        if self.name == "bandwise":
            if self.sharing == "mixing":
                out: Tensor = self.network(c)
            elif self.sharing == "shared":
                out = self.network(c.mT.unsqueeze(-1)).squeeze(-1).mT
            else:
                out = self.network(c.flatten(-2).unsqueeze(-1)).squeeze(-1).unflatten(-1, (B, d))
        elif self.sharing == "mixing":
            out = self.network(c.flatten(-2)).unflatten(-1, (B, d))
        else:
            out = self.network(c.mT).mT
        return out

    def _full(self, c: Tensor) -> Tensor:
        B, d = self.n_bands, self.channels
        matrix: Tensor = self.network(c.flatten(-2))
        return matrix.reshape(*matrix.shape[:-1], B * d, B * self.out_channels)

    def _full_start(self, gains: Tensor) -> Tensor:
        """The start as a matrix: band j and channel c go to band j and channel c, times h_0."""
        B, d, out = self.n_bands, self.channels, self.out_channels
        eye = torch.eye(d, out, dtype=gains.dtype, device=gains.device)
        blocks = torch.diag_embed(gains)[..., :, None, :, None] * eye[None, :, None, :]
        return blocks.reshape(*gains.shape[:-1], B * d, B * out)


for _name in get_args(NetworkName):
    RESPONSES[_name] = partial(Response, _name)


def _check(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ModelError(f"{what} must be one of {', '.join(known)}, not {value!r}.")
