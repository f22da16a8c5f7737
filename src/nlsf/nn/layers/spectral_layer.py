"""What every layer shares: a graph or a spectrum in, invariant norms out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.errors import ModelError
from nlsf.nn.layers.spectra import SpectrumArgument, check_signal, lens_for
from nlsf.spectral import Bands, DyadicBands, Lens, View
from nlsf.spectral.lens import FixedNorms
from nlsf.spectral.notebook import boxes, panel
from nlsf.spectral.operators.shift import Normalization

_HALF = (torch.bfloat16, torch.float16)


class SpectralLayer(nn.Module):
    """A layer that sees its signal through bands.

    Args:
        bands: the partition of the spectrum; 6 dyadic bands by default.
        normalization: which Laplacian to build of ``edge_index``: ``"sym"`` for N, ``None`` for L.
        complement: whether what the bands leave out is a last band; by default where they leave
            anything out.
        norm_p: the p of the norm.
        norm_per_node: divide norms by N^(1/p).
        self_loops: add self loops before building N.
    """

    in_channels: int
    """Channels that a signal must have; a layer that does not say takes any."""

    out_channels: int

    invariant = False
    """Whether its output ignores functional shifts; otherwise it moves along with the signal."""

    _version = 2
    """Of the state dict. The weights are those of 1, from nlsf 0.1, which had other defaults."""

    checks_values = True
    """Whether a signal is searched for NaN and infinity; not inside of a model."""

    def __init__(
        self,
        bands: Bands | None = None,
        normalization: Normalization = "sym",
        complement: bool | None = None,
        norm_p: float = 2.0,
        norm_per_node: bool = False,
        self_loops: bool = False,
    ) -> None:
        super().__init__()
        if normalization not in (None, "sym"):
            raise ModelError(
                f"normalization must be 'sym', for N, or None, for L, not {normalization!r}."
            )
        if bands is not None and not isinstance(bands, Bands):
            raise ModelError(f"bands must be bands, DyadicBands() for example, not {bands!r}.")
        self.bands = DyadicBands() if bands is None else bands
        self.normalization: Normalization = normalization
        self.complement = self.bands.has_complement(complement)
        self.norm_p, self.norm_per_node = norm_p, norm_per_node
        self.self_loops = self_loops
        self.n_bands = self.bands.n_bands + int(self.complement)
        self._needs_of_old_weights: list[str] = []
        if complement is None and self.bands.covers_all:
            self._needs_of_old_weights.append("complement=True")

    @property
    def spectral_branches(self) -> list[SpectralLayer]:
        """The layers that the ``spectrum`` argument is for: this one."""
        return [self]

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *others: Any
    ) -> None:
        if local_metadata.get("version", 2) < 2 and self._needs_of_old_weights:
            raise ModelError(
                "These weights were saved by nlsf 0.1, where these were the defaults: construct "
                f"{type(self).__name__} with {', '.join(self._needs_of_old_weights)}."
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    def _repr_html_(self) -> str:
        return self._html()

    def _html(self, facts: Sequence[tuple[str, str]] = (), drawing: str = "") -> str:
        """What a notebook shows: the settings, the bands, and a drawing of what was learned."""
        operator = {None: "L, the Laplacian", "sym": "N, the normalised Laplacian"}
        loops = ", with self loops" if self.self_loops else ""
        rest = ", and what they leave out" if self.complement else ""
        shared = [
            ("channels", f"{self.in_channels} to {self.out_channels}"),
            ("operator", operator[self.normalization] + loops),
            ("bands", f"{self.bands}{rest}"),
            ("parameters", f"{sum(p.numel() for p in self.parameters()):,}"),
        ]
        return panel(type(self).__name__, [*shared, *facts], boxes(*self.bands.places()), drawing)

    def mapped(self, x: Tensor) -> Tensor:
        """What is seen through the bands: the signal, or what a layer makes of it first."""
        return x

    def lens(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        spectrum: SpectrumArgument = None,
    ) -> Lens:
        """The layer's bands on a graph; arguments as in ``forward``."""
        find = lens_for
        if torch.compiler.is_compiling():
            # A compiler cannot trace an eigensolver, and need not: it runs once. As a decorator
            # this would import the compiler, which costs as much as PyTorch without it.
            find = torch.compiler.disable(lens_for)
        return find(
            x,
            self.bands,
            self.complement,
            spectrum=spectrum,
            edge_index=edge_index,
            edge_weight=edge_weight,
            batch=batch,
            normalization=self.normalization,
            self_loops=self.self_loops,
        )

    def view(self, x: Tensor, *graph: Tensor | None, spectrum: SpectrumArgument = None) -> View:
        """The signal seen through the layer's bands; arguments as in ``forward``."""
        check_signal(x, getattr(self, "in_channels", None), values=self.checks_values)
        x = self.mapped(x)
        if x.dtype in _HALF and torch.is_autocast_enabled(x.device.type):
            x = x.float()  # half precision would round the small bands away
        lens = self.lens(x, *graph, spectrum=spectrum)
        with _full_precision(x.device):
            return lens(x, check_finite=False)

    def norms(self, view: View | FixedNorms) -> Tensor:
        """The invariant norms (..., B, d)."""
        with _full_precision(view.device):
            return view.norms(self.norm_p, self.norm_per_node)


def spectral_branches(model: nn.Module) -> list[SpectralLayer]:
    """The layers whose bands a model's ``spectrum`` argument is for; none for other models.

    A module says it as its attribute of this name. Otherwise the first one inside that does counts.
    """
    for part in model.modules():
        found: list[SpectralLayer] | None = getattr(part, "spectral_branches", None)
        if found is not None:
            return found
    return []


def _full_precision(device: torch.device) -> AbstractContextManager[object]:
    """No autocast: half precision would round the small bands away, and dtypes would not add up."""
    # The context takes longer than a small product, also where it changes nothing.
    on = torch.is_autocast_enabled(device.type)
    return torch.autocast(device.type, enabled=False) if on else nullcontext()


def require_real(y: Tensor) -> Tensor:
    """The filtered signal itself, if an activation or a network can follow."""
    if y.is_complex():
        raise ModelError(
            "The filtered signal is complex, as with a magnetic Laplacian, and activations and "
            "networks are real: use NodeNLSF, and make real channels of its output "
            "(torch.view_as_real), or GraphNLSF, whose norms are real."
        )
    return y


def leave_values_unchecked(layers: nn.Module) -> None:
    """For filters inside of a model: what they see was computed, and not handed in."""
    for part in layers.modules():
        if isinstance(part, SpectralLayer):
            part.checks_values = False
