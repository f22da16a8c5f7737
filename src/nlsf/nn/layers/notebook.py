"""What a notebook shows of a layer: its settings, and what it has learned so far."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn

from nlsf.spectral.notebook import bands_drawing, bars, panel

if TYPE_CHECKING:
    from nlsf.nn.layers.attention import Branch, LaplacianAttention
    from nlsf.nn.layers.graph import GraphNLSF
    from nlsf.nn.layers.node import NodeNLSF
    from nlsf.nn.responses.psi import Psi

_PROBED = 2_000_000
"""Outputs of a response up to which it is tried for a drawing."""


def node_html(layer: NodeNLSF) -> str:
    """A node-level filter: its settings, its bands, and its response so far."""
    facts = [
        *_facts(layer),
        ("response", f"{layer.response.name}, {layer.response.sharing}"),
        ("start", layer.start.name),
    ]
    drawings = (bands_drawing(layer.bands), _response(layer.response))
    return panel(type(layer).__name__, facts, *drawings)


def graph_html(layer: GraphNLSF) -> str:
    """A graph-level filter: its settings, its bands, and how strongly it reads each."""
    weight = layer.network.weights[0].detach()[0]
    by_band = weight.reshape(layer.n_bands, -1).square().mean(-1).sqrt()
    reading = bars(by_band.tolist(), "root mean square of the first weights, band by band")
    return panel(type(layer).__name__, _facts(layer), bands_drawing(layer.bands), reading)


def attention_html(layer: LaplacianAttention) -> str:
    """Both branches of an attention, and how much each weighs."""
    alpha = layer.alpha
    if layer.score == "scalar":
        alpha = layer.scores.detach().softmax(-1)[0]
    if alpha is None or not alpha.numel():
        weight = "not known before the first call"
    else:
        mean = float(alpha.mean())
        weight = f"{100 * mean:.1f} % and {100 * (1 - mean):.1f} %"
        if alpha.numel() > 1:
            weight += f" (mean over {alpha.numel():,} graphs of the last call)"
    facts = [
        ("weights of the branches", weight),
        ("score", layer.score),
        ("parameters", f"{_count(layer):,}"),
    ]
    branches = (_branch(layer.first), _branch(layer.second))
    return panel(type(layer).__name__, facts, *branches)


def _branch(branch: Branch) -> str:
    from nlsf.nn.layers.graph import GraphNLSF
    from nlsf.nn.layers.node import NodeNLSF

    if isinstance(branch, GraphNLSF):
        return graph_html(branch)
    return node_html(branch if isinstance(branch, NodeNLSF) else branch.node)


def _facts(layer: NodeNLSF | GraphNLSF) -> list[tuple[str, str]]:
    operator = {None: "L, the Laplacian", "sym": "N, the normalised Laplacian"}
    channels = f"{layer.in_channels} to {layer.out_channels}"
    loops = ", with self loops" if layer.self_loops else ""
    rest = ", and what they leave out" if layer.complement else ""
    return [
        ("channels", channels),
        ("operator", operator[layer.normalization] + loops),
        ("bands", f"{layer.bands}{rest}"),
        ("parameters", f"{_count(layer):,}"),
    ]


def _response(response: Psi) -> str:
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


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
