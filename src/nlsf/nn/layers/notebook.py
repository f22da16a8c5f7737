"""What a notebook shows of a layer: its settings, and what it has learned so far."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn

from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.nn.responses.psi import Psi
from nlsf.spectral.notebook import bars, boxes, panel

_PROBED = 2_000_000
"""Outputs of a response up to which it is tried for a drawing."""


def filter_html(
    layer: SpectralLayer, facts: Sequence[tuple[str, str]] = (), drawing: str = ""
) -> str:
    """A filter: its settings, its bands, and a drawing of what it has learned.

    Args:
        layer: the filter.
        facts: settings that other levels do not have.
        drawing: HTML, as `response_drawing` gives it.
    """
    operator = {None: "L, the Laplacian", "sym": "N, the normalised Laplacian"}
    loops = ", with self loops" if layer.self_loops else ""
    rest = ", and what they leave out" if layer.complement else ""
    shared = [
        ("channels", f"{layer.in_channels} to {layer.out_channels}"),
        ("operator", operator[layer.normalization] + loops),
        ("bands", f"{layer.bands}{rest}"),
        ("parameters", number_of_parameters(layer)),
    ]
    return panel(type(layer).__name__, [*shared, *facts], boxes(*layer.bands.places()), drawing)


def response_drawing(response: Psi) -> str:
    """The response to a signal with as much energy in one band as in any other."""
    if response.form != "diagonal" or response.n_bands * response.channels > _PROBED:
        return ""
    trial = copy.deepcopy(response).eval()  # dropout would blur it, and the layer stays as it is
    weight = next(trial.parameters(), torch.ones(()))
    one = torch.ones(trial.n_bands, trial.channels, dtype=weight.dtype, device=weight.device)
    with torch.no_grad():
        gain = trial(one, one[:, 0]).mean(-1)
    if response.multiplicative:
        return bars(
            gain.tolist(), "factor on the start's gain, band by band; 1 at the start", line=1.0
        )
    return bars((gain - 1).tolist(), "added to the start's gain, band by band; 0 at the start")


def number_of_parameters(module: nn.Module) -> str:
    """In digits by the thousand."""
    return f"{sum(parameter.numel() for parameter in module.parameters()):,}"
